"""Supersede as a `MultiTurnEnv`, the API that verifiers had before v1 (0.3.x is its last home).

A thin adapter over the same `NotesRollout` as the v1 taskset: `get_prompt_messages` replaces the growing chat with the
protocol's next fresh prompt, so nothing is ever shown twice.
"""

from __future__ import annotations

import dataclasses
import json
import math
from functools import lru_cache
from typing import Any

from rewards.copied_metrics import CopiedMetrics
from rewards.errors import UserError, refuse_unknown
from rewards.options import build
from supersede_env.data import DataConfig, episodes_told
from supersede_env.episode import Episode
from supersede_env.protocol import NoReply, NotesRollout, ProtocolConfig, visible_reply
from supersede_env.scoring import Outcome, grade_answer, metrics

try:
    import verifiers as vf

    MultiTurnEnv = vf.MultiTurnEnv
except AttributeError as error:
    raise ImportError(
        "load_environment needs verifiers 0.3.x: MultiTurnEnv was removed in 0.4. On 0.4 use the v1 taskset "
        "(`vf-eval supersede-env`), or install 'verifiers>=0.3.1.dev59,<0.4'."
    ) from error

METRICS = (
    "is_correct",
    "is_stale",
    "is_hedged",
    "is_wrong",
    "is_refused",
    "notes_chars",
    "overflows",
    "empty_notes",
    "turns",
    "gold_in_notes",
    "stale_in_notes",
)


class SupersedeMultiTurnEnv(MultiTurnEnv):
    """One rollout is one episode: n sessions, then the question."""

    def __init__(self, protocol: ProtocolConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.protocol = protocol

    async def setup_state(self, state: vf.State) -> vf.State:
        episode = _episode(state["info"]["episode"])
        state["episode"] = episode
        state["notes_rollout"] = NotesRollout(episode.view, self.protocol)
        return state

    async def get_prompt_messages(self, state: vf.State) -> Any:
        """Plain dicts; the base class turns them into its message types."""
        return state["notes_rollout"].prompt()

    async def env_response(self, messages: Any, state: vf.State, **kwargs: Any) -> Any:
        """Never called: `get_prompt_messages` makes every prompt."""
        raise NotImplementedError

    async def add_trajectory_step(self, state: vf.State, trajectory_step: Any) -> None:
        """Give the reply to the protocol; grade at the end, so that a failing grader fails the rollout.

        The rubric would swallow an exception as reward 0.
        """
        await super().add_trajectory_step(state, trajectory_step)
        rollout: NotesRollout = state["notes_rollout"]
        try:
            rollout.step(reply_of(trajectory_step["completion"][-1]))
        except NoReply as error:
            turn = f"turn {len(rollout.history) + 1} of {rollout.num_turns}"
            raise vf.EmptyModelResponseError(f"{turn}: {error}") from error
        if rollout.done:
            outcome = Outcome.of(rollout)
            try:
                grade = grade_answer(state["episode"], outcome.answer)
            except Exception as error:  # whatever the grader raises: the row is unscored, with the reason
                raise vf.Error(f"the answer could not be graded: {error}") from error
            state["outcome"] = outcome.to_record()
            state["grade"] = dataclasses.asdict(grade)
            state["outcome_metrics"] = metrics(state["episode"], outcome, grade.verdict)

    @vf.stop
    async def answered(self, state: vf.State) -> bool:
        return state["notes_rollout"].done

    async def render_completion(self, state: vf.State) -> None:
        """The answer turn; the default assumes one growing chat.

        A rollout that was stopped before it (a prompt over the window, a time or token limit) is failed: the base
        class would leave it without an error, at reward 0.
        """
        rollout = state.get("notes_rollout")
        if rollout is not None and not rollout.done and state.get("error") is None:
            stop = state.get("stop_condition") or "an early end"
            state["error"] = vf.Error(f"no answer: the rollout was stopped by {stop} before its last turn")
        state["completion"] = state["trajectory"][-1]["completion"] if state["trajectory"] else []


@lru_cache(maxsize=64)
def _episode(text: str) -> Episode:
    """Kept because a group plays the same one; episodes are frozen."""
    return Episode.from_record(json.loads(text))


def reply_of(message: Any) -> str:
    """The reply in an assistant message, whatever form its content has. Raises `NoReply`."""
    content = message.content
    if isinstance(content, list):
        content = "".join(part.get("text", "") if isinstance(part, dict) else part.text for part in content)
    return visible_reply(content, message.reasoning_content)


async def r_cur(state: vf.State) -> float:
    return float(state["grade"]["r_cur"]) if "grade" in state else 0.0


async def r_stale(state: vf.State) -> float:
    return float(state["grade"]["r_stale"]) if "grade" in state else 0.0


class OutcomeRubric(CopiedMetrics, vf.Rubric):
    names = METRICS


def load_environment(
    stale_weight: float = 0.5, eval_data: str | None = None, max_turns: int = -1, **options: Any
) -> vf.Environment:
    """The environment for `vf-eval` and other users of the classic API.

    Args:
        stale_weight: lambda in r = r_cur + lambda * r_stale.
        eval_data: what the evaluation dataset is, when it differs from `data`.
        max_turns: leave it out; a value below n + 1 would stop rollouts before their answer and is refused.
        **options: fields of `DataConfig` (data, preset, num_episodes, first_seed, path, exclusions) and of
            `ProtocolConfig` (condition, budget, wording, show_dates, max_session_chars); unknown ones are refused
            with the nearest name.
    """
    from datasets import Dataset

    data_fields = DataConfig.__dataclass_fields__
    protocol_fields = ProtocolConfig.__dataclass_fields__
    own = ("stale_weight", "eval_data", "max_turns")
    refuse_unknown(options, [*data_fields, *protocol_fields, *own], "option")
    for name, value, kind in (("stale_weight", stale_weight, int | float), ("max_turns", max_turns, int)):
        if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value):
            raise UserError(f"{name} is {value!r}: give a number")
    data = build(DataConfig, {name: value for name, value in options.items() if name in data_fields})
    protocol = build(ProtocolConfig, {name: value for name, value in options.items() if name in protocol_fields})

    def dataset(config: DataConfig) -> Dataset:
        episodes = episodes_told(config)
        _refuse_short(episodes, protocol, max_turns)
        return Dataset.from_list([_row(episode) for episode in episodes])

    train = dataset(data)
    evaluation = train if eval_data is None else dataset(dataclasses.replace(data, data=eval_data))
    rubric = OutcomeRubric(funcs=[r_cur, r_stale], weights=[1.0, stale_weight])
    return SupersedeMultiTurnEnv(
        protocol, dataset=train, eval_dataset=evaluation, rubric=rubric, max_turns=max_turns, env_id="supersede-env"
    )


def _row(episode: Episode) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": episode.question}],
        "answer": episode.gold,
        "info": {"episode": json.dumps(episode.to_record())},  # as text: the rows' nested fields differ in type
    }


def _refuse_short(episodes: tuple[Episode, ...], protocol: ProtocolConfig, max_turns: int) -> None:
    if max_turns <= 0:
        return
    needed, name = max((NotesRollout(episode.view, protocol).num_turns, episode.id) for episode in episodes)
    if max_turns < needed:
        raise UserError(
            f"max_turns is {max_turns}, but {name} takes {needed} turns (one a session and the answer): "
            "give at least that many, or leave it out"
        )
