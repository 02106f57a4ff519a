"""LME-V2 on verifiers v1: one task is one question, one rollout one growing chat, the trace one branch.

The harness runs in process: it drives a `RetrievalRollout` and posts each prompt to the rollout's interception
endpoint. When the rollout is over, `finalize` has the fixed reader answer from the submission and puts the answer, its
usage and its latency into `trace.info`; rewards and metrics read nothing else, so that a saved run can be replayed
without a reader. A reader that fails, or a rollout that was stopped from outside, leaves the rollout unscored, not 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Literal

import httpx
import verifiers.v1 as vf
from pydantic import model_validator

from lme_v2_env.data import DataConfig, Search, Task, explorer_of_world, load_tasks
from lme_v2_env.messages import NoReply, reply_of
from lme_v2_env.protocol import ProtocolConfig, RetrievalRollout
from lme_v2_env.reading import ReaderConfig, read_async
from lme_v2_env.scoring import Outcome, Reading, RewardConfig, metrics, reward_parts
from lme_v2_env.trajectory import QuestionView
from rewards.errors import UserError, refuse_unknown

RETRY_STATUSES = frozenset({429, 500, 502, 503, 504})
"""Answers of an endpoint that may be different a moment later."""


def _checked_keys(config: type[vf.TasksetConfig] | type[vf.TaskConfig], data: Any) -> Any:
    if isinstance(data, dict):
        refuse_unknown([str(key).replace("-", "_") for key in data], config.model_fields, "option")
    return data


class LmeV2Data(vf.TaskData):
    """The row that travels: the question with its gold, evidence and world, and how it is played."""

    row: dict[str, Any]
    protocol: dict[str, Any]


class LmeV2TaskConfig(vf.TaskConfig):
    evidence_weight: float = 0.0
    """Times the F2 of the kept states against the known evidence, added to the reward."""
    action_cost: float = 0.0
    """Taken off for every action: a price of latency."""
    token_cost: float = 0.0
    """Taken off for every 1,000 tokens (estimated) that the policy wrote."""
    abstention_bonus: float = 0.0
    """Given when the reader says UNKNOWN to a question with a wrong premise."""
    reader: str = "extractive"
    """Who answers from the submission: `extractive` (no model), or a model's name at `base_url`."""
    base_url: str | None = None
    """The reader's OpenAI-compatible endpoint."""
    api_key_var: str = "OPENAI_API_KEY"
    """Environment variable that holds the reader's key."""
    temperature: float = 0.6
    """The reader's sampling temperature; 0.6 is the published value."""
    max_tokens: int = 20_000
    """The reader's longest answer, thinking included; 20,000 is the published value."""
    thinking: bool = True
    """Whether the reader thinks; the published one does."""
    context_tokens: int = 200_000
    """The reader's context is cut to this by whole items."""
    images: bool = False
    """Send the reader screenshots and question pictures."""
    timeout_seconds: float = 600.0
    """Seconds for one request to the reader or the judge."""
    judge: str | None = None
    """A model that grades wrong premises and gotchas; without one such questions are left out."""
    judge_base_url: str | None = None
    """The judge's OpenAI-compatible endpoint."""
    judge_api_key_var: str = "OPENAI_API_KEY"
    """Environment variable that holds the judge's key."""

    @model_validator(mode="before")
    @classmethod
    def _nearest_name(cls, data: Any) -> Any:
        return _checked_keys(cls, data)

    @model_validator(mode="after")
    def _checked(self) -> LmeV2TaskConfig:
        self.reader_config()
        self.reward_config()
        return self

    def reader_config(self) -> ReaderConfig:
        names = set(ReaderConfig.__dataclass_fields__) - {"timeout"}
        return ReaderConfig(**{name: getattr(self, name) for name in names}, timeout=self.timeout_seconds)

    def reward_config(self) -> RewardConfig:
        return RewardConfig(**{name: getattr(self, name) for name in RewardConfig.__dataclass_fields__})


class LmeV2Task(vf.Task[LmeV2Data, vf.State, LmeV2TaskConfig]):
    @property
    def item(self) -> Task:
        return Task.from_record(self.data.row)

    @property
    def key(self) -> str:
        return self.data.row["question"]["id"]

    @property
    def protocol(self) -> ProtocolConfig:
        return ProtocolConfig(**self.data.protocol)

    def rollout(self) -> RetrievalRollout:
        """A fresh protocol object; of the question it gets the agent's view only."""
        task, protocol = self.item, self.protocol
        view = task.question.view() if protocol.show_image else QuestionView(task.question.text)
        return RetrievalRollout(view, explorer_of_world(task.world), protocol)

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Let the reader answer. A rollout that was stopped before its end is failed: it is unscored, not wrong.

        A task that nobody has played is read with an empty context: `vf-validate` of 0.4 proves that it does not pass.
        """
        if "outcome" not in trace.info and not trace.nodes and trace.stop_condition is None and not trace.errors:
            trace.info["outcome"] = Outcome.nothing().to_record()
        if "outcome" not in trace.info:
            stop = trace.stop_condition or "an early end"
            raise UserError(f"no submission: the rollout was stopped by {stop} before its end")
        task = self.item
        reading = await read_async(
            task.question,
            task.evidence,
            explorer_of_world(task.world),
            Outcome.from_record(trace.info["outcome"]),
            self.config.reader_config(),  # ty: ignore[missing-attribute]
            spans_only=self.protocol.spans_only,
        )
        trace.info["reading"] = reading.to_record()

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Prove that the gold passes its own strict grader, and that the evidence is in the world."""
        task = self.item
        if not task.question.needs_judge:
            gold = Reading(f"\\boxed{{{task.question.gold}}}", 0.0, 0, {}, None, {})
            if reward_parts(task.question, Outcome.nothing(), gold, RewardConfig())["correct"] != 1.0:
                raise UserError(f"{task.question.id}: the gold '{task.question.gold}' is not graded correct")
        inserted = explorer_of_world(task.world).memory.inserted
        for point in task.evidence:
            kept = inserted.get(point.trajectory_id)
            if kept is None or point.state_index >= kept.states:
                raise UserError(f"{task.question.id}: its evidence {tuple(point[:2])} is not in its world")
        return True

    @vf.reward(weight=1.0)
    async def retrieval(self, trace: vf.Trace) -> dict[str, float]:
        """Strict correctness of the reader's answer, and the parts that are switched on; their sum is the reward."""
        outcome, reading = _records(trace)
        config = self.config.reward_config()  # ty: ignore[missing-attribute]
        return reward_parts(self.item.question, outcome, reading, config)

    @vf.metric
    async def outcome(self, trace: vf.Trace) -> dict[str, float]:
        """What the rollout did, what of the evidence it kept, and how it ended."""
        return metrics(self.item.question, *_records(trace))


def _records(trace: vf.Trace) -> tuple[Outcome, Reading]:
    return Outcome.from_record(trace.info["outcome"]), Reading.from_record(trace.info["reading"])


class LmeV2Config(vf.TasksetConfig):
    data: str = "train"
    """What to play: `train`, `validation` or `heldout` (generated worlds), or a folder in the published layout."""
    preset: str = "standard"
    """Of generated worlds: `standard`, or `easy` for small models."""
    num_worlds: int | None = None
    """So many generated worlds; None: 100 to train, 20 of the other splits."""
    first_world: int = 0
    """Leave out this many worlds of the split."""
    tier: str = "small"
    """Of a folder: `small`, `medium`, or `whole` (every trajectory of the file in one haystack a domain)."""
    questions: str | None = None
    """Of a folder: another questions.jsonl."""
    domain: str | None = None
    """Only this domain's questions (`web` or `enterprise`)."""
    num_questions: int | None = None
    """Take this many questions from the start; None takes all."""
    search: Search = "bm25"
    """How the memory searches: `bm25`, or `hybrid` with an embedder."""
    embedder: str = "minilm"
    """Of hybrid search: `minilm` or `hashing`."""
    actions: Literal["text", "tools"] = "text"
    """`text`: the reply is the action. `tools`: native tool calls."""
    wording: str = "standard"
    """Prompt texts: `standard`, or `plain` for small models."""
    max_actions: int = 12
    """Replies of a rollout, malformed ones included."""
    max_malformed: int = 4
    """So many malformed replies in a row end the rollout."""
    observation_chars: int = 3_000
    """Longest answer to one action, in characters."""
    total_observation_chars: int = 24_000
    """Of all answers together."""
    chat_tokens: int = 32_000
    """Of the whole conversation, estimated at 3 characters a token."""
    max_kept: int = 20
    """States that may be kept; 20 is the published limit."""
    evidence_tokens: int = 200_000
    """Of the kept pages, estimated; what would not fit is refused."""
    markdown_chars: int = 2_000
    """The submitted notes are cut at this many characters."""
    spans_only: bool = False
    """Leave the notes out: the reader gets pages alone."""
    show_image: bool = False
    """Show the question's picture to the policy."""
    task: LmeV2TaskConfig = LmeV2TaskConfig()  # ty: ignore[incompatible-mutable-override]

    @model_validator(mode="before")
    @classmethod
    def _nearest_name(cls, data: Any) -> Any:
        return _checked_keys(cls, data)

    @model_validator(mode="after")
    def _checked(self) -> LmeV2Config:
        self.data_config()
        self.protocol_config()
        return self

    def data_config(self) -> DataConfig:
        return DataConfig(**{name: getattr(self, name) for name in DataConfig.__dataclass_fields__})

    def protocol_config(self) -> ProtocolConfig:
        return ProtocolConfig(**{name: getattr(self, name) for name in ProtocolConfig.__dataclass_fields__})


class LmeV2Taskset(vf.Taskset[LmeV2Task, LmeV2Config]):  # ty: ignore[invalid-type-arguments]
    def load(self) -> Iterator[LmeV2Task]:
        protocol = asdict(self.config.protocol_config())
        options = self.config.task
        tasks = load_tasks(
            self.config.data_config(),
            pictures=options.images,
            judged=options.judge is not None,
            premises=options.abstention_bonus > 0,
        )
        for index, task in enumerate(tasks):
            data = LmeV2Data(
                idx=index,  # 0.3.1 needs it; 0.4.0 sets it itself
                name=task.question.id,
                prompt=task.question.text,  # a launch needs one; the harness builds its own prompts
                row=task.to_record(),
                protocol=protocol,
            )
            yield LmeV2Task(data, options)


class LmeV2HarnessConfig(vf.HarnessConfig):
    request_timeout: float = 600.0
    """Seconds that one model call may take."""
    max_retries: int = 2
    """How often a call is tried again after 429 or a 5xx answer, with back-off of 1, 2, 4... seconds."""


class LmeV2Harness(vf.Harness[LmeV2HarnessConfig]):
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
        """Play one question; `data` is an `LmeV2Data` row."""
        rollout = LmeV2Task(trace.task.data).rollout()
        tools = {"tools": rollout.tools} if rollout.tools else {}
        # The endpoint is on loopback: no certificates (an SSL context costs 24 ms a rollout), no proxy.
        async with httpx.AsyncClient(
            base_url=endpoint,
            headers={"Authorization": f"Bearer {secret}"},
            timeout=self.config.request_timeout,
            verify=False,
            trust_env=False,
        ) as http:
            while not rollout.done:
                turn = f"action {len(rollout.history) + 1}"
                response = await self._call(http, {"model": ctx.model, "messages": rollout.prompt(), **tools})
                if response.status_code != 200:
                    return vf.ProgramResult(exit_code=1, stdout="", stderr=f"{turn}: {response.text[:300]}")
                try:
                    reply = reply_of(response.json()["choices"][0]["message"])
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


class LmeV2EnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    """The one seat. Its runtime is this machine: the harness runs in process and needs no sandbox."""


class LmeV2Env(vf.SingleAgentEnv, vf.Env[LmeV2EnvConfig]):  # ty: ignore[invalid-generic-class]
    async def start(self) -> None:
        """Refuse a `max_turns` that would stop a rollout before its end, before any call is paid for."""
        limit, needed = self.config.agent.max_turns, self.taskset.config.max_actions  # ty: ignore[missing-attribute]
        if limit is not None and limit < needed:
            raise UserError(
                f"max_turns is {limit}, but a rollout takes up to {needed} turns (taskset.max_actions): set "
                f"--env.agent.max-turns to {needed} or more or leave it out, or lower --env.taskset.max-actions"
            )


__all__ = ["LmeV2Env", "LmeV2Harness", "LmeV2Taskset"]
