"""The fixed reader (and judge) behind a reward: which one, and one call that reads a submission.

Readers block, so they run in threads of their own; a failure is raised, never graded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from lme_v2_env.chat import Endpoint, EndpointError
from lme_v2_env.explore import Explorer
from lme_v2_env.extractive import ExtractiveReader
from lme_v2_env.judge import LmeJudge
from lme_v2_env.reader import PUBLISHED_CONTEXT_TOKENS, EndpointReader, Reader, Sampling
from lme_v2_env.scoring import Outcome, Reading, evidence_found, submission
from lme_v2_env.trajectory import EvidencePoint, Question, QuestionView
from rewards.address import refuse_secrets
from rewards.errors import UserError

EXTRACTIVE = "extractive"

THREADS = 64
"""Calls of readers and judges at once."""


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """Who answers from the submitted context, and who judges answers that no rule can grade.

    Attributes:
        reader: `extractive` (no model, the default) or a model's name at `base_url`.
        base_url: the reader's OpenAI-compatible endpoint.
        api_key_var: environment variable that holds its key.
        temperature, max_tokens, thinking: sampling; the published reader thinks, at 0.6 and 20,000.
        context_tokens: the context is cut to this by whole items.
        images: send screenshots and question pictures.
        timeout: seconds for one request.
        judge: a model that grades wrong premises and gotchas; without one such questions are left out.
        judge_base_url: the judge's endpoint.
        judge_api_key_var: environment variable that holds its key.
    """

    reader: str = EXTRACTIVE
    base_url: str | None = None
    api_key_var: str = "OPENAI_API_KEY"
    temperature: float = 0.6
    max_tokens: int = 20_000
    thinking: bool = True
    context_tokens: int = PUBLISHED_CONTEXT_TOKENS
    images: bool = False
    timeout: float = 600.0
    judge: str | None = None
    judge_base_url: str | None = None
    judge_api_key_var: str = "OPENAI_API_KEY"

    def __post_init__(self) -> None:
        if self.reader != EXTRACTIVE and not self.base_url:
            raise UserError(f"reader '{self.reader}' needs base_url; without a model take reader 'extractive'")
        if self.reader == EXTRACTIVE and self.images:
            raise UserError("the extractive reader takes no pictures: leave images out")
        if (self.judge is None) != (self.judge_base_url is None):
            raise UserError("judge and judge_base_url go together")
        for name in ("base_url", "judge_base_url"):  # here and not only in the client: configurations are stored
            refuse_secrets(getattr(self, name) or "", name)

    @property
    def reads_notes(self) -> bool:
        """The extractive reader copies, so that it would copy a claim; it gets pages alone."""
        return self.reader != EXTRACTIVE


@lru_cache(maxsize=8)
def reader_of(config: ReaderConfig) -> Reader:
    """One reader a configuration: its connections are shared."""
    if config.reader == EXTRACTIVE:
        return ExtractiveReader()
    assert config.base_url is not None
    return EndpointReader(
        Endpoint(config.base_url, config.reader, config.api_key_var, timeout=config.timeout),
        sampling=Sampling(temperature=config.temperature, max_tokens=config.max_tokens, thinking=config.thinking),
        context_tokens=config.context_tokens,
        images=config.images,
    )


@lru_cache(maxsize=8)
def _judge_of(config: ReaderConfig) -> LmeJudge:
    assert config.judge is not None
    assert config.judge_base_url is not None
    return LmeJudge(Endpoint(config.judge_base_url, config.judge, config.judge_api_key_var, timeout=config.timeout))


def read(
    question: Question,
    points: Sequence[EvidencePoint],
    explorer: Explorer,
    outcome: Outcome,
    config: ReaderConfig,
    *,
    spans_only: bool,
) -> Reading:
    """The reader's answer to the submission, judged where needed. Raises `UserError`: then the rollout is unscored."""
    items = submission(explorer, outcome, markdown=config.reads_notes and not spans_only)
    view = question.view() if config.images else QuestionView(question.text)
    reader = reader_of(config)
    started = time.perf_counter()
    try:
        answer = reader.read(view, question.domain, items)
    except (EndpointError, OSError) as error:
        raise UserError(f"the reader failed: {error}") from error
    reading = Reading(
        text=answer.text,
        seconds=time.perf_counter() - started,
        tokens=answer.tokens_shown,
        usage=dict(answer.usage),
        finish_reason=answer.finish_reason,
        reader=reader.settings,
        evidence=evidence_found(points, outcome.kept, explorer),
    )
    return replace(reading, judged=_judged(question, answer.text, config)) if question.needs_judge else reading


def _judged(question: Question, response: str, config: ReaderConfig) -> dict[str, Any] | None:
    if config.judge is None:
        return None
    row = _judge_of(config).graded(question, response)
    if not row.get("scored"):
        raise UserError(row["unscored_reason"])
    names = ("correct", "explanation", "judge", "judge_prompt_hash")
    return {name: row[name] for name in names}


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    """Of its own: the event loop's default pool has six threads on two cores."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix="lme-v2-reader")


async def read_async(
    question: Question,
    points: Sequence[EvidencePoint],
    explorer: Explorer,
    outcome: Outcome,
    config: ReaderConfig,
    *,
    spans_only: bool,
) -> Reading:
    """As `read`, without holding up the event loop while an endpoint answers."""
    if config.reader == EXTRACTIVE and config.judge is None:
        return read(question, points, explorer, outcome, config, spans_only=spans_only)

    def job() -> Reading:
        return read(question, points, explorer, outcome, config, spans_only=spans_only)

    return await asyncio.get_running_loop().run_in_executor(_threads(), job)
