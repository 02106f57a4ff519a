"""The framework's floor: a `MultiTurnEnv` of Supersede's shape that does nothing, and a client that answers at once.

Both sides play the same prompts, so what is measured beyond the floor is the protocol, the grader and the metrics.
verifiers 0.3.x only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import verifiers as vf
from verifiers.legacy.clients import Client
from verifiers.legacy.types import Response, ResponseMessage

from supersede_env import load_environment
from supersede_env.data import DataConfig, generated_records
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig
from tests.scripted_endpoint import echo

PRESET = "curriculum"
ANSWER = 60
"""Characters of an answer, about what models give."""


class Instant(Client[None, Any, Any, Any]):
    """Answers in this process, at once, with the end of what it is shown: long notes, and an answer of `ANSWER`."""

    def setup_client(self, config: Any) -> None:
        return None

    async def get_response(
        self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any
    ) -> Response:
        last = prompt[-1]
        text = echo([{"role": "user", "content": str(last["content"] if isinstance(last, dict) else last.content)}])
        text = text[-ANSWER:] if "\nQuestion: " in text else text
        message = ResponseMessage(content=text or "nothing", finish_reason="stop", is_truncated=False)
        return Response(id="instant", created=0, model=model, message=message)

    async def to_native_tool(self, tool: Any) -> Any:
        raise NotImplementedError

    async def to_native_prompt(self, messages: Any) -> tuple[Any, dict[str, Any]]:
        raise NotImplementedError

    async def get_native_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def raise_from_native_response(self, response: Any) -> None:
        raise NotImplementedError

    async def from_native_response(self, response: Any) -> Response:
        raise NotImplementedError

    async def close(self) -> None:
        return None


class FloorEnv(vf.MultiTurnEnv):
    """Sends prepared prompts one after the other; the reward is 0."""

    async def setup_state(self, state: vf.State) -> vf.State:
        state["prompts"] = json.loads(state["info"]["prompts"])
        return state

    async def get_prompt_messages(self, state: vf.State) -> Any:
        return state["prompts"][len(state["trajectory"])]

    async def env_response(self, messages: Any, state: vf.State, **kwargs: Any) -> Any:
        raise NotImplementedError

    @vf.stop
    async def played(self, state: vf.State) -> bool:
        return len(state["trajectory"]) == len(state["prompts"])

    async def render_completion(self, state: vf.State) -> None:
        state["completion"] = state["trajectory"][-1]["completion"]


def floor(count: int, first_seed: int) -> vf.Environment:
    """The floor over `count` training episodes."""
    from datasets import Dataset

    rows = []
    for record in generated_records(DataConfig(data="train", preset=PRESET, num_episodes=count, first_seed=first_seed)):
        rollout = NotesRollout(Episode.from_record(record).view, ProtocolConfig())
        prompts: list[Sequence[Any]] = []
        while not rollout.done:
            prompts.append(list(rollout.prompt()))
            rollout.step(echo([dict(message) for message in prompts[-1]]) or "nothing")
        question = [{"role": "user", "content": record["question"]}]
        rows.append({"prompt": question, "answer": record["gold"], "info": {"prompts": json.dumps(prompts)}})
    data = Dataset.from_list(rows)

    async def nothing(state: vf.State) -> float:
        return 0.0

    return FloorEnv(dataset=data, eval_dataset=data, rubric=vf.Rubric(funcs=[nothing]), env_id="floor")


def rollouts_per_second(environment: vf.Environment, episodes: int, group: int) -> float:
    began = time.perf_counter()
    done = environment.evaluate_sync(
        Instant(None), "instant", num_examples=episodes, rollouts_per_example=group, max_concurrent=64
    )
    seconds = time.perf_counter() - began
    failed = [row["error"] for row in done["outputs"] if row.get("error")]
    assert len(done["outputs"]) == episodes * group, "a rollout is missing"
    assert not failed, failed[0]
    return episodes * group / seconds


def measure(episodes: int, group: int) -> dict[str, float]:
    """Rollouts a second of Supersede and of the floor, one after the other, after 32 other episodes of each.

    Groups of 1 are an evaluation. Groups of 8, as in training, read an episode and its gold once.
    """
    warm, timed = (
        {"ours": _supersede(count, seed), "peer": floor(count, seed)} for count, seed in ((32, 0), (episodes, 32))
    )
    for environment in warm.values():
        rollouts_per_second(environment, 32, 1)
    return {name: rollouts_per_second(environment, episodes, group) for name, environment in timed.items()}


def _supersede(count: int, first_seed: int) -> vf.Environment:
    return load_environment(data="train", preset=PRESET, num_episodes=count, first_seed=first_seed)
