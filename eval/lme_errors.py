"""Why answers were wrong, as in figure 7 of the LongMemEval-V2 paper, for questions whose evidence is known.

The official questions carry no evidence, so this works for generated questions and for those whose evidence somebody
has looked up. A wrong answer counts once, by the first of these that holds:

1. a flawed-premise question (type ends in `-abs`) is a `premise` error, whatever was retrieved;
2. without known evidence the cause is `evidence unknown`;
3. no state of the evidence retrieved: `major retrieval miss`; some, but not all of any one set: `minor retrieval miss`;
4. everything needed was there: `gotcha reading` for the gotchas, else `reading error`.

Correct answers whose evidence was not retrieved are counted too: guesses, or the evidence known is not the only one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

State = tuple[str, int]
"""(trajectory id, state index)"""


class Cause(StrEnum):
    """Why an answer was wrong."""

    MAJOR_MISS = "major retrieval miss"
    MINOR_MISS = "minor retrieval miss"
    READING = "reading error"
    GOTCHA = "gotcha reading"
    PREMISE = "premise"
    NO_EVIDENCE = "evidence unknown"


@dataclass(frozen=True, slots=True)
class Answered:
    """One question as answered. `correct` is None when unscored.

    `evidence` holds alternative sets of states, any one of which suffices; empty when it is not known. `retrieved`
    holds the states whose text was in the context that the reader saw.
    """

    question_id: str
    question_type: str
    correct: bool | None
    retrieved: frozenset[State]
    evidence: tuple[frozenset[State], ...]
    unknown: bool = False


def of_row(row: Mapping[str, Any], *, strict: bool = False) -> Answered:
    """A row of a LongMemEval-V2 run.

    Read are `id`, `question_type`, `scored`, `correct`, `strict_correct`, `unknown`, `retrieved`
    (states in the context shown, as [trajectory, index]) and `evidence_states` (all of them needed; None: not known).
    """
    points = frozenset((str(name), int(index)) for name, index in row.get("evidence_states") or ())
    scored = bool(row.get("scored"))
    return Answered(
        question_id=str(row["id"]),
        question_type=str(row["question_type"]),
        correct=bool(row["strict_correct" if strict else "correct"]) if scored else None,
        retrieved=frozenset((str(name), int(index)) for name, index in row.get("retrieved") or ()),
        evidence=(points,) if points else (),
        unknown=bool(row.get("unknown")),
    )


def evidence_recall(row: Answered) -> float | None:
    """The largest share of an evidence set that was retrieved; None when no evidence is known."""
    shares = [len(states & row.retrieved) / len(states) for states in row.evidence if states]
    return max(shares, default=None)


def cause(row: Answered) -> Cause | None:
    """Why the answer is wrong; None for one that is right or unscored."""
    if row.correct is not False:
        return None
    if row.question_type.endswith("-abs"):
        return Cause.PREMISE
    recall = evidence_recall(row)
    if recall is None:
        return Cause.NO_EVIDENCE
    if recall < 1:
        return Cause.MINOR_MISS if recall > 0 else Cause.MAJOR_MISS
    return Cause.GOTCHA if row.question_type == "errors-gotchas" else Cause.READING


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Counts over a run. `causes` sums to `wrong`; shares are of all scored rows."""

    scored: int
    unscored: int
    correct: int
    wrong: int
    causes: Mapping[Cause, int]
    unknown: int
    """Wrong answers that say "unknown"."""
    lucky: int
    """Right answers although no evidence set was retrieved in full."""
    recall: float | None
    """Mean evidence recall over the rows with known evidence, scored or not."""

    def share(self, cause: Cause) -> float:
        return self.causes[cause] / self.scored if self.scored else 0.0


def analyse(rows: Iterable[Answered]) -> Breakdown:
    """Count the causes. A question may occur once only."""
    rows = list(rows)
    twice = [key for key, count in Counter(row.question_id for row in rows).items() if count > 1]
    if twice:
        raise ValueError(f"question {twice[0]} occurs twice")
    recalls = [recall for row in rows if (recall := evidence_recall(row)) is not None]
    wrong = [row for row in rows if row.correct is False]
    right = [row for row in rows if row.correct is True]
    counts = Counter(cause(row) for row in wrong)
    return Breakdown(
        scored=len(wrong) + len(right),
        unscored=len(rows) - len(wrong) - len(right),
        correct=len(right),
        wrong=len(wrong),
        causes={kind: counts[kind] for kind in Cause},
        unknown=sum(row.unknown for row in wrong),
        lucky=sum((recall := evidence_recall(row)) is not None and recall < 1 for row in right),
        recall=sum(recalls) / len(recalls) if recalls else None,
    )


def render(columns: Mapping[str, Breakdown]) -> list[str]:
    """Systems side by side: one line a cause, shares of all scored rows."""
    width = max(map(len, Cause))
    names = list(columns)

    def line(label: str, cells: Sequence[str]) -> str:
        padded = (f"{cell:>{max(14, len(name))}}" for cell, name in zip(cells, names, strict=True))
        return f"{label:<{width}}  {'  '.join(padded)}"

    lines = [line("", names)]
    lines.append(line("correct", [f"{run.correct} of {run.scored}" for run in columns.values()]))
    for kind in Cause:
        lines.append(line(kind, [f"{run.causes[kind]} ({run.share(kind):.1%})" for run in columns.values()]))
    lines.append(line("said unknown", [str(run.unknown) for run in columns.values()]))
    lines.append(line("right without it", [str(run.lucky) for run in columns.values()]))
    recalls = ["-" if run.recall is None else f"{run.recall:.1%}" for run in columns.values()]
    lines.append(line("evidence recall", recalls))
    lines.append(line("unscored", [str(run.unscored) for run in columns.values()]))
    return lines
