"""Rows of a LongMemEval-V2 run: one a question, scored or unscored with the reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from eval.row_shape import LME
from eval.rows import RunFolder
from eval.stats import UNSCORED_LIMIT, Interval, wilson
from lme_v2_env.dataset import Dataset
from lme_v2_env.memory.api import ContextItem
from lme_v2_env.memory.slices import plain_line
from lme_v2_env.trajectory import EvidencePoint, Question


@dataclass(frozen=True, slots=True)
class LmeRun:
    """What made a run. Two invocations may share a run folder only when all of this is equal.

    `data` stands for the questions and haystacks by a hash; `excluded` holds (id, reason) of what was left out.
    """

    system: str
    settings: dict[str, Any]
    queries: bool
    tier: str
    data: str
    reader: dict[str, Any]
    judge: dict[str, Any] | None
    n: int
    excluded: list[list[str]]
    grader_version: str
    code_version: str


def open_run(folder: Path, info: LmeRun) -> RunFolder:
    """The run's folder, new or taken up again. Raises `UserError` when another configuration made it."""
    return RunFolder.open(folder, info, LME)


@cache
def code_version() -> str:
    """First 12 hex digits of the sha256 over the sources that shape a score."""
    digest = hashlib.sha256()
    for package in ("rewards", "lme_v2_env", "lme_v2_env.memory", "eval.baselines", "eval.baselines.coding"):
        for item in sorted(files(package).iterdir(), key=lambda item: item.name):
            if item.name.endswith((".py", ".json", ".md")):
                digest.update(item.name.encode() + item.read_bytes())
    return digest.hexdigest()[:12]


def data_hash(dataset: Dataset, questions: Sequence[Question]) -> str:
    """First 16 hex digits of the sha256 over the questions asked, their haystacks, and the file of trajectories."""
    rows: list[Any] = [
        [question.id, question.text, question.gold, question.eval_function, list(dataset.haystacks[question.id])]
        for question in questions
    ]
    rows.append(dataset.trajectories.sha256)
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()[:16]


def recalled(points: Sequence[EvidencePoint], items: Sequence[ContextItem]) -> dict[str, float]:
    """Shares of the known evidence that the context holds.

    `state`: the very state is shown. `line`: the line that answers is somewhere in the context, maybe on another run's
    page (element ids aside). `trajectory`: some state of its trajectory is shown.
    """
    states = {pair for item in items for pair in item.shows}
    trajectories = {name for name, _ in states}
    lines = {plain_line(line) for item in items if item.type == "text" for line in item.value.split("\n")}
    known = [plain_line(point.line) for point in points if point.line]
    return {
        "state": sum((point.trajectory_id, point.state_index) in states for point in points) / len(points),
        "trajectory": sum(point.trajectory_id in trajectories for point in points) / len(points),
        **({"line": sum(any(line in shown for shown in lines) for line in known) / len(known)} if known else {}),
    }


def percentiles(seconds: Sequence[float]) -> tuple[float, float] | None:
    """(p50, p95) by the published rule: sorted[n // 2] and sorted[min(n - 1, int(0.95 n))]."""
    ordered = sorted(seconds)
    count = len(ordered)
    return (ordered[count // 2], ordered[min(count - 1, int(0.95 * count))]) if count else None


def context_file(question_id: str) -> str:
    """Where in a run's folder the context of a question is kept: the items in full, gzipped JSON."""
    return f"contexts/{question_id}.json.gz"


@dataclass(frozen=True, slots=True)
class LmeSummary:
    """Counts over a run's rows; rates are over scored rows, in [0, 1]; seconds are of queries alone."""

    scored: int
    unscored: dict[str, int]
    accuracy: float
    interval: Interval
    strict: float
    unknown: float
    evidence: dict[str, float]
    query_mean: float | None
    query_p50: float | None
    query_p95: float | None
    comparable: bool
    tokens: float
    images_withheld: int

    @property
    def invalid(self) -> bool:
        failed = sum(self.unscored.values())
        return failed > UNSCORED_LIMIT * (self.scored + failed)


def summarise(rows: Sequence[Mapping[str, Any]]) -> LmeSummary:
    """Recomputed from the rows."""
    scored = [row for row in rows if row["scored"]]
    unscored: dict[str, int] = {}
    for row in rows:
        if not row["scored"]:
            unscored[row["unscored_reason"]] = unscored.get(row["unscored_reason"], 0) + 1
    n = max(len(scored), 1)
    right = sum(row["correct"] for row in scored)
    judged = [row["strict_correct"] for row in scored]
    shares: dict[str, list[float]] = {}
    for row in rows:
        for name, share in (row.get("evidence") or {}).items():
            shares.setdefault(name, []).append(share)
    seconds = [row["query_seconds"] for row in rows if row.get("query_seconds") is not None]
    middle, high = percentiles(seconds) or (None, None)
    return LmeSummary(
        scored=len(scored),
        unscored=unscored,
        accuracy=right / n,
        interval=wilson(right, n) if scored else Interval(0.0, 1.0),
        strict=sum(judged) / n,
        unknown=sum(row["unknown"] for row in scored) / n,
        evidence={name: sum(values) / len(values) for name, values in shares.items()},
        query_mean=sum(seconds) / len(seconds) if seconds else None,
        query_p50=middle,
        query_p95=high,
        comparable=all(row["concurrency"] == 1 for row in rows if row.get("query_seconds") is not None),
        tokens=sum(row["context_tokens_shown"] for row in scored) / n,
        images_withheld=sum(bool(row.get("image_withheld")) for row in rows),
    )
