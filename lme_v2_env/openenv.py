"""LME-V2 behind an OpenEnv server: reset, step and state over a `RetrievalRollout`. No verifiers, no Docker.

    python -m lme_v2_env.openenv --port 8000 --data validation --preset easy

A client session is one environment with a rollout of its own; the questions and the memories of their worlds are made
once and shared. An observation is a whitelist: the conversation to send to the model, its tools, and at the end the
numbers that verifiers would log. Reward and metrics come with the last step, after the fixed reader has answered; a
reader that fails is an error, never reward 0.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pydantic import Field, ValidationError

from lme_v2_env.data import DataConfig, Task, explorer_of_world, load_tasks
from lme_v2_env.messages import reply_of
from lme_v2_env.protocol import ProtocolConfig, RetrievalRollout
from lme_v2_env.reading import ReaderConfig, read_async
from lme_v2_env.scoring import Outcome, RewardConfig, metrics, reward_parts
from lme_v2_env.trajectory import SURROGATE, QuestionView
from rewards.errors import UserError, refuse_unknown
from rewards.options import build_all, describe_flags, first_line, read_flags

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

USAGE = """usage: python -m lme_v2_env.openenv [options]

Serve LME-V2 to OpenEnv clients; Ctrl-C ends it.

example:
  python -m lme_v2_env.openenv --port 8000 --data validation --preset easy --num-questions 50

options (their meanings: docs/openenv.md, lme_v2_env/README.md):"""


class RetrievalAction(Action):
    """The model's message: a text that holds one action, or native tool calls as an endpoint sends them."""

    reply: str | None = Field(default=None, description="the text of the model's message; null beside tool calls")
    tool_calls: list[dict[str, Any]] = Field(default=[], description="OpenAI-style tool calls, with `actions` tools")
    reasoning: str | None = Field(default=None, description="the model's reasoning, kept for the conversation only")

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> RetrievalAction:
        """One clear line for what is wrong; OpenEnv would tell a client "Invalid message"."""
        if isinstance(obj, dict):
            refuse_unknown(obj, cls.model_fields, "field of the action")
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise UserError(first_line(error, "action")) from None


class RetrievalObservation(Observation):
    """What an agent may see. `metrics` is empty until the episode is over."""

    messages: list[dict[str, Any]] = Field(default=[], description="the conversation to send; empty at the end")
    tools: list[dict[str, Any]] = Field(default=[], description="tool definitions to send along, with `actions` tools")
    metrics: dict[str, float] = Field(default={}, description="numbers of the finished episode; empty before its end")


class RetrievalState(State):
    """How far the session is. `num_turns` are the model calls of the whole episode, at most."""

    num_turns: int | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Where to listen and how many clients at once."""

    host: str = "127.0.0.1"
    port: int = 8000
    max_sessions: int = 64

    def __post_init__(self) -> None:
        if self.max_sessions < 1 or not 0 <= self.port < 65536:
            raise UserError(f"port is {self.port} and max_sessions {self.max_sessions}: give 0 to 65535, and 1 or more")


@dataclass(frozen=True, slots=True)
class Table:
    """What all sessions share: the questions and how they are played. Without a seed they are dealt in order."""

    tasks: tuple[Task, ...]
    protocol: ProtocolConfig
    reader: ReaderConfig
    reward: RewardConfig
    order: Iterator[int] = field(default_factory=itertools.count)

    def task(self, seed: int | None) -> Task:
        number = next(self.order) if seed is None else seed
        return self.tasks[number % len(self.tasks)]


class LmeV2Environment(Environment[RetrievalAction, RetrievalObservation, RetrievalState]):
    """One client session. Steps run in the server's event loop: the shared memories take one caller at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._table = table
        self._task: Task | None = None
        self._rollout: RetrievalRollout | None = None
        self._name: str | None = None

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> RetrievalObservation:
        """Begin an episode: with seed i the i-th question (counted from 0, round and round), else the next in order.

        `episode_id` is the caller's name for it and comes back in the state.
        """
        refuse_unknown(options, ("seed", "episode_id"), "option")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise UserError(f"seed is {seed!r:.100}: give a whole number from 0; it says which question")
        if episode_id is not None and not isinstance(episode_id, str):
            raise UserError(f"episode_id is {episode_id!r:.100}: give a text")
        protocol, task = self._table.protocol, self._table.task(seed)
        view = task.question.view() if protocol.show_image else QuestionView(task.question.text)
        self._task, self._rollout = task, RetrievalRollout(view, explorer_of_world(task.world), protocol)
        self._name = episode_id or str(uuid4())
        return self._next(self._rollout)

    async def step_async(
        self, action: RetrievalAction, timeout_s: float | None = None, **_: Any
    ) -> RetrievalObservation:
        """Take a message. After the last one the reader answers: reward and metrics come with it."""
        task, rollout = self._task, self._rollout
        if task is None or rollout is None:
            raise UserError(
                "step before reset: call reset first, on the same session (a plain POST is a session of its own; "
                "OpenEnv's clients keep one open)"
            )
        if rollout.done:
            raise UserError("the episode is over: call reset for the next one")
        rollout.step(reply_of(_message(action)))
        if not rollout.done:
            return self._next(rollout)
        table, outcome = self._table, Outcome.of(rollout)
        try:
            reading = await read_async(
                task.question,
                task.evidence,
                rollout.explorer,
                outcome,
                table.reader,
                spans_only=table.protocol.spans_only,
            )
            parts = reward_parts(task.question, outcome, reading, table.reward)
            numbers = metrics(task.question, outcome, reading)
        except Exception as error:  # whatever reader or grader raise: the episode is unscored, with the reason
            raise UserError(f"the submission could not be graded, the episode is unscored: {error}") from error
        return RetrievalObservation(done=True, reward=sum(parts.values()), metrics=numbers)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> RetrievalObservation:
        """For callers without an event loop."""
        return asyncio.run(self.reset_async(seed, episode_id, **options))

    def step(self, action: RetrievalAction, timeout_s: float | None = None, **_: Any) -> RetrievalObservation:
        """For callers without an event loop."""
        return asyncio.run(self.step_async(action))

    def _next(self, rollout: RetrievalRollout) -> RetrievalObservation:
        return RetrievalObservation(messages=rollout.prompt(), tools=rollout.tools or [])

    @property
    def state(self) -> RetrievalState:
        rollout = self._rollout
        if rollout is None:
            return RetrievalState()
        return RetrievalState(
            episode_id=self._name, step_count=len(rollout.history), num_turns=rollout.num_turns, done=rollout.done
        )

    def get_metadata(self) -> EnvironmentMetadata:
        count = len(self._table.tasks)
        return EnvironmentMetadata(
            name="lme-v2-env",
            description=f"Gather evidence from web trajectories. {count} questions: seeds 0 to {count - 1}.",
        )


def _message(action: RetrievalAction) -> dict[str, Any]:
    """The action as an endpoint's message; halves of characters, which no request can carry, replaced."""
    reply, reasoning = (text and SURROGATE.sub("\ufffd", text) for text in (action.reply, action.reasoning))
    return {"content": reply, "tool_calls": action.tool_calls, "reasoning_content": reasoning}


CONFIGS = (ServerConfig, DataConfig, ProtocolConfig, ReaderConfig, RewardConfig)


def make_app(**options: Any) -> FastAPI:
    """The server as an ASGI application; `options` are fields of `CONFIGS`. Raises `UserError`."""
    server, data, protocol, reader, reward = build_all(CONFIGS, options)
    tasks = load_tasks(
        data, pictures=reader.images, judged=reader.judge is not None, premises=reward.abstention_bonus > 0
    )
    table = Table(tasks, protocol, reader, reward)

    def environment() -> LmeV2Environment:  # a function: OpenEnv's web page does not take a `partial`
        return LmeV2Environment(table)

    app = create_app(
        environment,
        RetrievalAction,
        RetrievalObservation,
        env_name="lme-v2-env",
        max_concurrent_envs=server.max_sessions,
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
    print(f"lme-v2-env at http://{server.host}:{listening.getsockname()[1]} (Ctrl-C ends it)", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
