"""Supersede on verifiers v1: one task is one episode, one model call is one fresh prompt, the trace has n + 1 branches.

The harness runs in process: it drives a `NotesRollout` and posts each prompt to the rollout's interception endpoint,
so every call is recorded. Scoring reads only the task's data and `trace.info`, so a saved run can be replayed. A
rollout that did not reach its answer is failed, not scored 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Literal

import httpx
import verifiers.v1 as vf
from pydantic import model_validator

from rewards.errors import UserError, refuse_unknown
from supersede_env.data import DataConfig, episodes_told
from supersede_env.episode import Episode
from supersede_env.protocol import NoReply, NotesRollout, ProtocolConfig, visible_reply
from supersede_env.scoring import Outcome, gold_problem, grade_answer, metrics

RETRY_STATUSES = frozenset({429, 500, 502, 503, 504})
"""Answers of an endpoint that may be different a moment later."""


def _checked_keys(config: type[vf.TasksetConfig] | type[vf.TaskConfig], data: Any) -> Any:
    if isinstance(data, dict):
        refuse_unknown([str(key).replace("-", "_") for key in data], config.model_fields, "option")
    return data


class SupersedeData(vf.TaskData):
    """The row that travels: the whole episode and how it is played."""

    episode: dict[str, Any]
    protocol: dict[str, Any]


class SupersedeTaskConfig(vf.TaskConfig):
    stale_weight: float = 0.5
    """lambda in r = r_cur + lambda * r_stale: the price of asserting a superseded value. The paper's run used 0."""

    @model_validator(mode="before")
    @classmethod
    def _nearest_name(cls, data: Any) -> Any:
        return _checked_keys(cls, data)


class SupersedeTask(vf.Task[SupersedeData, vf.State, SupersedeTaskConfig]):
    @property
    def episode(self) -> Episode:
        return Episode.from_record(self.data.episode)

    @property
    def key(self) -> str:
        return self.data.episode["id"]

    def rollout(self) -> NotesRollout:
        """A fresh protocol object; it gets the agent's view only."""
        return NotesRollout(self.episode.view, ProtocolConfig(**self.data.protocol))

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Fail a rollout that was stopped before its answer: it is unscored, not wrong.

        A task that nobody has played is scored as no answer: `vf-validate` of 0.4 proves that it does not pass.
        """
        if "outcome" not in trace.info and not trace.nodes and trace.stop_condition is None and not trace.errors:
            trace.info["outcome"] = Outcome(answer="", notes=(), overflows=0, empty_notes=0, turns=0).to_record()
        if "outcome" not in trace.info:
            stop = trace.stop_condition or "an early end"
            raise UserError(f"no answer: the rollout was stopped by {stop} before its last turn")

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Prove that the gold is graded correct and that no superseded value is."""
        problem = gold_problem(self.episode)
        if problem is not None:
            raise UserError(f"{self.data.name}: {problem}")
        return True

    @vf.reward(weight=1.0)
    async def supersession(self, trace: vf.Trace) -> dict[str, float]:
        """r_cur, and lambda * r_stale: their sum is the reward."""
        grade = grade_answer(self.episode, trace.info["outcome"]["answer"])
        weight = self.config.stale_weight  # ty: ignore[missing-attribute]
        return {"r_cur": float(grade.r_cur), "r_stale_weighted": weight * grade.r_stale}

    @vf.metric
    async def outcome(self, trace: vf.Trace) -> dict[str, float]:
        """The verdict as indicators, the raw r_stale, and what the notes held."""
        outcome = Outcome.from_record(trace.info["outcome"])
        grade = grade_answer(self.episode, outcome.answer)
        return {"r_stale": float(grade.r_stale), **metrics(self.episode, outcome, grade.verdict)}


class SupersedeConfig(vf.TasksetConfig):
    data: str = "train"
    """What to play: `train` or `validation` (generated), `oracle` or `s` (LongMemEval), or a .jsonl file."""
    preset: str | None = None
    """Generator preset for train/validation (`quick`, `control`, `curriculum`, `hard`); None takes the fixed sets."""
    num_episodes: int | None = None
    """Take this many episodes from the start; None takes all."""
    first_seed: int = 0
    """First generator seed of a preset."""
    path: str | None = None
    """Where LongMemEval lies (file or folder); otherwise `LONGMEMEVAL_DIR` or a download."""
    exclusions: str = "default"
    """LongMemEval rows to leave out: `default` (the shipped file), `none`, or a JSON file of id: reason."""
    condition: Literal["bounded", "full"] = "bounded"
    """`bounded`: notes only, n + 1 calls. `full`: all sessions in one prompt, the upper bound."""
    budget: int = 300
    """B: the most characters that the notes may hold; longer replies are cut and counted."""
    wording: str = "standard"
    """Prompt texts: `standard`, or `plain` for small models."""
    show_dates: bool = True
    """Show the dates of sessions and question; the paper's code drops both."""
    max_session_chars: int | None = None
    """Split longer sessions at turn boundaries into parts of at most this many characters; None never splits."""
    task: SupersedeTaskConfig = SupersedeTaskConfig()  # ty: ignore[incompatible-mutable-override]

    @model_validator(mode="before")
    @classmethod
    def _nearest_name(cls, data: Any) -> Any:
        return _checked_keys(cls, data)

    @model_validator(mode="after")
    def _checked(self) -> SupersedeConfig:
        self.data_config()
        self.protocol_config()
        return self

    def data_config(self) -> DataConfig:
        return DataConfig(**{name: getattr(self, name) for name in DataConfig.__dataclass_fields__})

    def protocol_config(self) -> ProtocolConfig:
        return ProtocolConfig(**{name: getattr(self, name) for name in ProtocolConfig.__dataclass_fields__})


class SupersedeTaskset(vf.Taskset[SupersedeTask, SupersedeConfig]):  # ty: ignore[invalid-type-arguments]
    def load(self) -> Iterator[SupersedeTask]:
        protocol = asdict(self.config.protocol_config())
        for index, episode in enumerate(episodes_told(self.config.data_config())):
            data = SupersedeData(
                idx=index,  # 0.3.1 needs it; 0.4.0 sets it itself
                name=episode.id,
                prompt=episode.question,  # a launch needs one; the harness builds its own prompts
                episode=episode.to_record(),
                protocol=protocol,
            )
            yield SupersedeTask(data, self.config.task)


class SupersedeHarnessConfig(vf.HarnessConfig):
    request_timeout: float = 600.0
    """Seconds that one model call may take."""
    max_retries: int = 2
    """How often a call is tried again after 429 or a 5xx answer, with back-off of 1, 2, 4... seconds."""


class SupersedeHarness(vf.Harness[SupersedeHarnessConfig]):
    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
        **_: Any,
    ) -> vf.ProgramResult:
        """Play one episode; `data` is a `SupersedeData` row."""
        rollout = SupersedeTask(trace.task.data).rollout()
        # The endpoint is on loopback: no certificates (an SSL context costs 24 ms a rollout), no proxy.
        async with httpx.AsyncClient(
            base_url=endpoint,
            headers={"Authorization": f"Bearer {secret}"},
            timeout=self.config.request_timeout,
            verify=False,
            trust_env=False,
        ) as http:
            while not rollout.done:
                turn = f"turn {len(rollout.history) + 1} of {rollout.num_turns}"
                response = await self._call(http, {"model": ctx.model, "messages": rollout.prompt()})
                if response.status_code != 200:
                    return vf.ProgramResult(exit_code=1, stdout="", stderr=f"{turn}: {response.text[:300]}")
                message = response.json()["choices"][0]["message"]
                try:
                    reply = visible_reply(message.get("content"), message.get("reasoning_content"))
                except NoReply as error:
                    return vf.ProgramResult(exit_code=1, stdout="", stderr=f"{turn}: {error}")
                rollout.step(reply)
        trace.info["outcome"] = Outcome.of(rollout).to_record()
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def _call(self, http: httpx.AsyncClient, body: dict[str, Any]) -> httpx.Response:
        for attempt in range(self.config.max_retries):
            response = await http.post("chat/completions", json=body)
            if response.status_code not in RETRY_STATUSES:
                return response
            await asyncio.sleep(2**attempt)
        return await http.post("chat/completions", json=body)


class SupersedeEnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    """The one seat. Its runtime is this machine: the harness runs in process and needs no sandbox."""


class SupersedeEnv(vf.SingleAgentEnv, vf.Env[SupersedeEnvConfig]):  # ty: ignore[invalid-generic-class]
    async def start(self) -> None:
        """Refuse a `max_turns` that would stop a rollout before its answer, before any call is paid for."""
        limit = self.config.agent.max_turns
        if limit is None:
            return
        for task in self.taskset:
            needed = task.rollout().num_turns
            if limit < needed:
                raise UserError(
                    f"max_turns is {limit}, but {task.data.name} takes {needed} turns (one a session and the answer): "
                    f"set --env.agent.max-turns to {needed} or more, or leave it out"
                )


__all__ = ["SupersedeEnv", "SupersedeHarness", "SupersedeTaskset"]
