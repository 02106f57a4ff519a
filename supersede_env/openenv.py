"""Supersede behind an OpenEnv server: reset, step and state over a `NotesRollout`. No verifiers, no Docker.

    python -m supersede_env.openenv --port 8000 --data validation --preset quick

A client session is one environment with a rollout of its own; the episodes are loaded once and shared. An observation
is a whitelist: the prompt's messages and, after the answer, the numbers that verifiers would log. Reward and metrics
come with the last step only. An answer that could not be graded is an error, never reward 0.
"""

from __future__ import annotations

import itertools
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pydantic import Field, ValidationError

from rewards.errors import UserError, refuse_unknown
from rewards.options import build_all, describe_flags, first_line, read_flags
from supersede_env.data import DataConfig, episodes_told
from supersede_env.episode import Episode, refuse_half_characters
from supersede_env.protocol import NotesRollout, ProtocolConfig
from supersede_env.scoring import Outcome, grade_answer, metrics

try:
    import uvicorn
    from fastapi import FastAPI, Request, WebSocketDisconnect
    from fastapi.responses import JSONResponse
    from openenv.core.env_server import Action, Environment, Observation, State, create_app
    from openenv.core.env_server.types import EnvironmentMetadata
except ModuleNotFoundError as error:
    needs = f"the OpenEnv server needs {error.name}: pip install 'openenv-core>=0.2.1'"
    if __name__ == "__main__":
        print(f"openenv: {needs}", file=sys.stderr)
        sys.exit(2)
    raise ImportError(needs) from error

USAGE = """usage: python -m supersede_env.openenv [options]

Serve Supersede to OpenEnv clients; Ctrl-C ends it.

example:
  python -m supersede_env.openenv --port 8000 --data validation --preset quick --num-episodes 50

options (their meanings: docs/openenv.md, README.md):"""


class NotesAction(Action):
    """The model's reply to the last prompt: new notes, or on the last turn the answer."""

    reply: str = Field(description="the model's whole reply: the new notes, or on the last turn the answer")

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> NotesAction:
        """One clear line for what is wrong; OpenEnv would tell a client "Invalid message"."""
        if isinstance(obj, dict):
            refuse_unknown(obj, cls.model_fields, "field of the action")
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise UserError(first_line(error, "action")) from None


class NotesObservation(Observation):
    """What an agent may see. `metrics` is empty until the episode is over."""

    messages: list[dict[str, str]] = Field(default=[], description="the next prompt for the model; empty at the end")
    metrics: dict[str, float] = Field(default={}, description="numbers of the finished episode; empty before its end")


class NotesState(State):
    """How far the session is. `num_turns` are the model calls of the whole episode."""

    num_turns: int | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Where to listen, how many clients at once, and lambda of the reward r_cur + lambda * r_stale."""

    host: str = "127.0.0.1"
    port: int = 8000
    max_sessions: int = 64
    stale_weight: float = 0.5

    def __post_init__(self) -> None:
        if self.max_sessions < 1 or not 0 <= self.port < 65536:
            raise UserError(f"port is {self.port} and max_sessions {self.max_sessions}: give 0 to 65535, and 1 or more")


@dataclass(frozen=True, slots=True)
class Table:
    """What all sessions share: the episodes and how they are played. Without a seed they are dealt in order."""

    episodes: tuple[Episode, ...]
    protocol: ProtocolConfig
    stale_weight: float
    order: Iterator[int] = field(default_factory=itertools.count)

    def episode(self, seed: int | None) -> Episode:
        number = next(self.order) if seed is None else seed
        return self.episodes[number % len(self.episodes)]


class SupersedeEnvironment(Environment[NotesAction, NotesObservation, NotesState]):
    """One client session."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._table = table
        self._episode: Episode | None = None
        self._rollout: NotesRollout | None = None
        self._name: str | None = None

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> NotesObservation:
        """Begin an episode: with seed i the i-th (counted from 0, round and round), without one the next in order.

        `episode_id` is the caller's name for it and comes back in the state.
        """
        refuse_unknown(options, ("seed", "episode_id"), "option")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise UserError(f"seed is {seed!r:.100}: give a whole number from 0; it says which episode")
        if episode_id is not None and not isinstance(episode_id, str):
            raise UserError(f"episode_id is {episode_id!r:.100}: give a text")
        self._episode = self._table.episode(seed)
        self._rollout = NotesRollout(self._episode.view, self._table.protocol)
        self._name = episode_id or str(uuid4())
        return NotesObservation(messages=self._rollout.prompt())

    def step(self, action: NotesAction, timeout_s: float | None = None, **_: Any) -> NotesObservation:
        """Take a reply. The last one is graded: reward and metrics come with it."""
        episode, rollout = self._episode, self._rollout
        if episode is None or rollout is None:
            raise UserError(
                "step before reset: call reset first, on the same session (a plain POST is a session of its own; "
                "OpenEnv's clients keep one open)"
            )
        if rollout.done:
            raise UserError("the episode is over: call reset for the next one")
        refuse_half_characters({"reply": action.reply}, "action")
        rollout.step(action.reply)
        if not rollout.done:
            return NotesObservation(messages=rollout.prompt())
        outcome = Outcome.of(rollout)
        try:
            grade = grade_answer(episode, outcome.answer)
        except Exception as error:  # whatever the grader raises: the episode is unscored, with the reason
            raise UserError(f"the answer could not be graded, the episode is unscored: {error}") from error
        return NotesObservation(
            done=True,
            reward=grade.r_cur + self._table.stale_weight * grade.r_stale,
            metrics={"r_stale": float(grade.r_stale), **metrics(episode, outcome, grade.verdict)},
        )

    @property
    def state(self) -> NotesState:
        rollout = self._rollout
        if rollout is None:
            return NotesState()
        return NotesState(
            episode_id=self._name, step_count=len(rollout.history), num_turns=rollout.num_turns, done=rollout.done
        )

    def get_metadata(self) -> EnvironmentMetadata:
        count = len(self._table.episodes)
        return EnvironmentMetadata(
            name="supersede-env",
            description=f"Keep bounded notes current over chat sessions. {count} episodes: seeds 0 to {count - 1}.",
        )


CONFIGS = (ServerConfig, DataConfig, ProtocolConfig)


def make_app(**options: Any) -> FastAPI:
    """The server as an ASGI application; `options` are fields of `CONFIGS`. Raises `UserError`."""
    server, data, protocol = build_all(CONFIGS, options)
    table = Table(episodes_told(data), protocol, server.stale_weight)

    def environment() -> SupersedeEnvironment:  # a function: OpenEnv's web page does not take a `partial`
        return SupersedeEnvironment(table)

    app = create_app(
        environment, NotesAction, NotesObservation, env_name="supersede-env", max_concurrent_envs=server.max_sessions
    )
    app.add_exception_handler(UserError, _refused)
    app.add_exception_handler(WebSocketDisconnect, _gone)
    return app


async def _refused(_: Request, error: Exception) -> JSONResponse:
    """Over plain HTTP, where OpenEnv would answer 500 without a word."""
    return JSONResponse({"detail": str(error)}, status_code=422)


async def _gone(_: Any, error: Exception) -> None:
    """A client that closed its session first: OpenEnv closes its own side once more, which would log a traceback."""


def main(args: Sequence[str]) -> int:
    """0: ended by Ctrl-C; 2: refused, with one line."""
    if "--help" in args or "-h" in args:
        print(f"{USAGE}\n{describe_flags(CONFIGS)}")
        return 0
    try:
        values = read_flags(args, CONFIGS)
        server = build_all(CONFIGS, values)[0]
        app = make_app(**values)
        try:
            listening = socket.create_server((server.host, server.port))
        except OSError as error:
            raise UserError(f"{server.host}:{server.port}: {error.strerror}") from None
    except UserError as error:
        print(f"openenv: {error}", file=sys.stderr)
        return 2
    print(f"supersede-env at http://{server.host}:{listening.getsockname()[1]} (Ctrl-C ends it)", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
