"""LME-V2 as a `MultiTurnEnv`, the API that verifiers had before v1 (0.3.x is its last home).

A thin adapter over the same `RetrievalRollout` as the v1 taskset: `get_prompt_messages` gives the protocol's prompt.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from lme_v2_env.data import DataConfig, Task, explorer_of_world, load_tasks
from lme_v2_env.messages import NoReply, reply_of
from lme_v2_env.protocol import TOOLS, ProtocolConfig, RetrievalRollout
from lme_v2_env.reading import ReaderConfig, read_async
from lme_v2_env.scoring import METRICS, Outcome, RewardConfig, metrics, reward_parts
from lme_v2_env.trajectory import QuestionView
from rewards.copied_metrics import CopiedMetrics
from rewards.errors import UserError, refuse_unknown
from rewards.options import build

try:
    import verifiers as vf

    MultiTurnEnv = vf.MultiTurnEnv
except AttributeError as error:
    raise ImportError(
        "load_environment needs verifiers 0.3.x: MultiTurnEnv was removed in 0.4. On 0.4 use the v1 taskset "
        "(`vf-eval lme-v2-env`), or install 'verifiers>=0.3.1.dev59,<0.4'."
    ) from error

PARTS = ("correct", "evidence", "actions", "tokens", "abstention")
"""Parts of the reward, as `scoring.reward_parts` names them."""


class LmeV2MultiTurnEnv(MultiTurnEnv):
    """One rollout is one question."""

    def __init__(self, protocol: ProtocolConfig, reader: ReaderConfig, reward: RewardConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.protocol, self.reader, self.reward = protocol, reader, reward

    async def setup_state(self, state: vf.State) -> vf.State:
        task = Task.from_record(json.loads(state["info"]["row"]))
        view = task.question.view() if self.protocol.show_image else QuestionView(task.question.text)
        state["task_row"] = task
        state["retrieval"] = RetrievalRollout(view, explorer_of_world(task.world), self.protocol)
        return state

    async def get_prompt_messages(self, state: vf.State) -> Any:
        """The protocol's messages, tool calls in this API's own form."""
        return [_flat(message) for message in state["retrieval"].prompt()]

    async def env_response(self, messages: Any, state: vf.State, **kwargs: Any) -> Any:
        """Never called: `get_prompt_messages` makes every prompt."""
        raise NotImplementedError

    async def add_trajectory_step(self, state: vf.State, trajectory_step: Any) -> None:
        """Give the reply to the protocol; read and grade at the end, so that a failing reader fails the rollout.

        The rubric would swallow an exception as reward 0.
        """
        await super().add_trajectory_step(state, trajectory_step)
        rollout: RetrievalRollout = state["retrieval"]
        try:
            rollout.step(reply_of(_message(trajectory_step["completion"][-1])))
        except NoReply as error:
            raise vf.EmptyModelResponseError(f"action {len(rollout.history) + 1}: {error}") from error
        if rollout.done:
            await self._score(state, Outcome.of(rollout))

    async def _score(self, state: vf.State, outcome: Outcome) -> None:
        task: Task = state["task_row"]
        try:
            reading = await read_async(
                task.question,
                task.evidence,
                explorer_of_world(task.world),
                outcome,
                self.reader,
                spans_only=self.protocol.spans_only,
            )
            state["reward_parts"] = reward_parts(task.question, outcome, reading, self.reward)
            state["outcome_metrics"] = metrics(task.question, outcome, reading)
        except Exception as error:  # whatever reader or grader raise: the row is unscored, with the reason
            raise vf.Error(f"the submission could not be graded: {error}") from error
        state["outcome"], state["reading"] = outcome.to_record(), reading.to_record()

    @vf.stop
    async def submitted(self, state: vf.State) -> bool:
        return state["retrieval"].done

    async def render_completion(self, state: vf.State) -> None:
        """A rollout that was stopped before its end is failed: the base class would leave it at reward 0."""
        rollout = state.get("retrieval")
        if rollout is not None and not rollout.done and state.get("error") is None:
            stop = state.get("stop_condition") or "an early end"
            state["error"] = vf.Error(f"no submission: the rollout was stopped by {stop} before its end")
        await super().render_completion(state)


def _message(message: Any) -> dict[str, Any]:
    """An assistant message of this API as an endpoint's; list content is joined."""
    content = message.content
    if isinstance(content, list):
        content = "".join(part.get("text", "") if isinstance(part, dict) else part.text for part in content)
    calls = [call.model_dump() for call in message.tool_calls or ()]
    return {"content": content, "tool_calls": calls, "reasoning_content": message.reasoning_content}


def _flat(message: dict[str, Any]) -> dict[str, Any]:
    if "tool_calls" not in message:
        return message
    calls = [{"id": call["id"], **call["function"]} for call in message["tool_calls"]]
    return message | {"tool_calls": calls}


def _part(name: str) -> Any:
    async def part(state: vf.State) -> float:
        return state["reward_parts"].get(name, 0.0) if "reward_parts" in state else 0.0

    part.__name__ = name
    return part


class OutcomeRubric(CopiedMetrics, vf.Rubric):
    names = METRICS


def load_environment(eval_data: str | None = None, max_turns: int = -1, **options: Any) -> vf.Environment:
    """The environment for `vf-eval` and other users of the classic API.

    Args:
        eval_data: what the evaluation dataset is, when it differs from `data`.
        max_turns: leave it out; a value below `max_actions` would stop rollouts before their end and is refused.
        **options: fields of `DataConfig` (data, tier, questions, domain, num_questions, search, embedder), of
            `ProtocolConfig` (actions, wording, max_actions, spans_only...), of `ReaderConfig` (reader, base_url,
            judge...) and of `RewardConfig` (evidence_weight, action_cost, token_cost, abstention_bonus); unknown ones
            are refused with the nearest name.
    """
    from datasets import Dataset

    kinds = (DataConfig, ProtocolConfig, ReaderConfig, RewardConfig)
    known = {name: kind for kind in kinds for name in kind.__dataclass_fields__}
    refuse_unknown(options, [*known, "eval_data", "max_turns"], "option")
    if isinstance(max_turns, bool) or not isinstance(max_turns, int):
        raise UserError(f"max_turns is {max_turns!r}: give a number")

    def chosen(kind: Any) -> Any:
        return build(kind, {name: value for name, value in options.items() if known[name] is kind})

    data, protocol, reader, reward = map(chosen, kinds)
    if 0 < max_turns < protocol.max_actions:
        raise UserError(
            f"max_turns is {max_turns}, but a rollout takes up to {protocol.max_actions} turns (max_actions): give at "
            "least that many, or leave it out"
        )

    def dataset(config: DataConfig) -> Dataset:
        tasks = load_tasks(
            config,
            pictures=reader.images,
            judged=reader.judge is not None,
            premises=reward.abstention_bonus > 0,
        )
        return Dataset.from_list([_row(task) for task in tasks])

    train = dataset(data)
    evaluation = train if eval_data is None else dataset(dataclasses.replace(data, data=eval_data))
    rubric = OutcomeRubric(funcs=[_part(name) for name in PARTS], weights=[1.0] * len(PARTS))
    extra = {"tool_defs": _tool_defs()} if protocol.actions == "tools" else {}
    return LmeV2MultiTurnEnv(
        protocol,
        reader,
        reward,
        dataset=train,
        eval_dataset=evaluation,
        rubric=rubric,
        max_turns=max_turns,
        env_id="lme-v2-env",
        **extra,
    )


def _tool_defs() -> list[Any]:
    from verifiers.legacy.types import Tool

    return [Tool(**tool["function"]) for tool in TOOLS]


def _row(task: Task) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": task.question.text}],
        "answer": task.question.gold,
        "info": {"row": json.dumps(task.to_record())},  # as text: the rows' nested fields differ in type
    }
