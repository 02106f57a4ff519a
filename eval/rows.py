"""A run on disk: `run.json` says what made it, `rows.jsonl` holds one line a task and sample. Reports read only these.

A row is either scored (verdict, r_cur, r_stale, ...) or unscored with the reason; unscored rows count in neither the
numerator nor the denominator.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Protocol

from eval.row_shape import MEND, SUPERSEDE, Shape, refuse_misshapen
from eval.stats import UNSCORED_LIMIT, wilson
from lme_v2_env.trajectory import SURROGATE
from rewards import strict_json
from rewards.currency import GRADER_VERSION
from rewards.errors import UserError
from supersede_env.diagnosis import DIAGNOSES, diagnose
from supersede_env.episode import Episode
from supersede_env.scoring import Outcome, grade_answer, metrics

RUN_FILE, ROWS_FILE = "run.json", "rows.jsonl"

MOST_REASONS = 10
"""Reasons for unscored rows that a command prints: those of a user's own code may differ from row to row."""

OVER_WINDOW = "over window"
"""The reason of a row whose session or history does not fit the model's context window."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What made a run. Two invocations may share a run folder only when all of this is equal.

    `adapter` is the folder as given; `adapter_sha256` identifies its weights. `data` is the `DataConfig` as a dict;
    `sampling` holds temperature, token limit and, for local models, seed, batch size, device and data type. `n` counts
    tasks.
    """

    model: str
    adapter: str | None
    adapter_sha256: str | None
    condition: str
    engine: str
    data: dict[str, Any]
    protocol: dict[str, Any]
    sampling: dict[str, Any]
    samples: int
    n: int
    task_set: str
    prompt_hash: str
    grader_version: str
    code_version: str
    stale_weight: float
    excluded: list[list[str]]
    unscorable: list[list[str]]


@cache
def code_version() -> str:
    """First 12 hex digits of the sha256 over the sources that shape a score: the environment and the grader."""
    digest = hashlib.sha256()
    for package in ("rewards", "supersede_env"):
        folder = files(package)
        for item in sorted(folder.iterdir(), key=lambda item: item.name):
            if item.name.endswith((".py", ".json")):
                digest.update(item.name.encode() + item.read_bytes())
    return digest.hexdigest()[:12]


def scored_row(
    episode: Episode, sample: int, outcome: Outcome, stale_weight: float, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The row of a finished rollout; `extra` carries the engine's own fields (usage, seconds, date)."""
    grade = grade_answer(episode, outcome.answer)
    return {
        "id": episode.id,
        "sample": sample,
        "scored": True,
        "unscored_reason": None,
        "verdict": grade.verdict,
        "r_cur": grade.r_cur,
        "r_stale": grade.r_stale,
        "reward": grade.r_cur + stale_weight * grade.r_stale,
        "explanation": grade.explanation,
        **_task_fields(episode),
        **outcome.to_record(),
        "diagnosis": diagnose(episode, outcome, grade.verdict),
        "metrics": metrics(episode, outcome, grade.verdict),
        "grader_version": GRADER_VERSION,
        **extra,
    }


def at(seconds: float) -> str:
    """A moment as rows record it in `timestamp_utc`; `seconds` are of `time.time`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


EMPTY = {"verdict": None, "r_cur": None, "r_stale": None, "reward": None, "answer": None}


def unscored_row(episode: Episode, sample: int, reason: str) -> dict[str, Any]:
    """The row of a rollout that gave no answer to grade."""
    head = {"id": episode.id, "sample": sample, "scored": False, "unscored_reason": reason}
    return head | EMPTY | _task_fields(episode)


def no_gold_rows(info: RunInfo) -> list[dict[str, Any]]:
    """The rows of questions that nobody can score: they are not played."""
    return [
        {"id": row_id, "sample": sample, "scored": False, "unscored_reason": reason}
        | EMPTY
        | {"question": None, "gold": None}
        for row_id, reason in info.unscorable
        for sample in range(info.samples)
    ]


def _task_fields(episode: Episode) -> dict[str, Any]:
    return {
        "question": episode.question,
        "gold": episode.gold,
        "stale": list(episode.stale),
        "asks": episode.asks,
        "abstain": episode.abstain,
        "sessions": len(episode.sessions),
        "source": episode.source,
        "tags": dict(episode.tags),
    }


class RecordedInfo(Protocol):
    """Any dataclass: its fields, compared one by one, say whether two invocations are the same run."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class RunFolder:
    """One condition's run folder. `open` refuses a folder that another configuration made."""

    def __init__(self, folder: Path, info: RecordedInfo, shape: Shape = SUPERSEDE) -> None:
        self.folder, self.info, self.shape = folder, info, shape

    @classmethod
    def open(cls, folder: Path, info: RecordedInfo, shape: Shape = SUPERSEDE) -> RunFolder:
        """Create the folder, or take up the one that an equal invocation left. Raises `UserError`."""
        file = folder / RUN_FILE
        if file.is_file():
            try:
                before = dict(strict_json.loads(file.read_bytes()))
            except (ValueError, TypeError):
                raise UserError(f"{file} is damaged: give another --out, or delete the folder") from None
            now = asdict(info)
            differing = [key for key in now if before.get(key) != now[key]]
            if differing:
                key = differing[0]
                raise UserError(
                    f"{folder} holds another run: its {key} is {before.get(key)!r}, now {now[key]!r}. "
                    "Give another --out, or delete it."
                )
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(file, json.dumps(asdict(info), indent=2) + "\n")
        return cls(folder, info, shape)

    def read(self) -> list[dict[str, Any]]:
        """The rows so far. A last line that a killed writer left unfinished is cut off, so that it is made again.

        Raises `UserError` for a line that is no row, and for a row that is there twice.
        """
        file = self.folder / ROWS_FILE
        if not file.is_file():
            return []
        data = file.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with file.open("r+b") as handle:
                handle.truncate(whole)
        rows: dict[tuple[str, Any], dict[str, Any]] = {}
        for number, line in enumerate(data[:whole].split(b"\n"), 1):
            if not line.strip():
                continue
            where = f"{file}, line {number}"
            try:
                row = strict_json.loads(line)
            except ValueError:
                raise UserError(f"{where} is damaged: {MEND}") from None
            refuse_misshapen(row, self.shape, where)
            key = (row["id"], row.get("sample") if self.shape is SUPERSEDE else None)
            if key in rows:
                raise UserError(f"{where}: row '{row['id']}' is there twice; {MEND}")
            rows[key] = row
        return list(rows.values())

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows so that a crash leaves whole lines, at most the last one torn."""
        file = self.folder / ROWS_FILE
        try:
            with file.open("a", encoding="utf-8") as handle:
                handle.write("".join(map(_line, rows)))
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise not_written(file, error) from error

    def replace(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write all rows anew, atomically."""
        write_atomic(self.folder / ROWS_FILE, "".join(map(_line, rows)))


def _line(row: Mapping[str, Any]) -> str:
    """Halves of characters, which models and other people's code can hold, have no bytes."""
    return SURROGATE.sub("\ufffd", json.dumps(row, ensure_ascii=False)) + "\n"


def write_atomic(file: Path, text: str) -> None:
    """All of the text or the old file, never a part. Raises `UserError` when it cannot be written."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise not_written(file, error) from error


def not_written(file: Path, error: OSError) -> UserError:
    """What to tell when a file of the run cannot be written."""
    return UserError(f"{file} cannot be written: {error.strerror}; mend that, and the same command resumes")


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over a run's rows; rates are over scored rows. `lost` counts `supersede_env.diagnosis.DIAGNOSES` of the
    rows that were not answered correctly."""

    scored: int
    unscored: dict[str, int]
    accuracy: float
    low: float
    high: float
    rates: dict[str, float]
    lost: dict[str, int] = field(default_factory=dict)

    @property
    def invalid(self) -> bool:
        """More unscored rows than `UNSCORED_LIMIT` allows: what made them fail may hide more."""
        failed = sum(self.unscored.values())
        return failed > UNSCORED_LIMIT * (self.scored + failed)


def summarise(rows: Sequence[Mapping[str, Any]]) -> Summary:
    """Accuracy with its Wilson interval (repeats of a task do not narrow it) and the rates of the other metrics."""
    scored = [row for row in rows if row["scored"]]
    unscored: dict[str, int] = {}
    for row in rows:
        if not row["scored"]:
            unscored[row["unscored_reason"]] = unscored.get(row["unscored_reason"], 0) + 1
    if not scored:
        return Summary(0, unscored, 0.0, 0.0, 1.0, {})
    tasks = len({row["id"] for row in scored})
    accuracy = sum(row["r_cur"] for row in scored) / len(scored)
    interval = wilson(accuracy * tasks, tasks)
    names = scored[0]["metrics"]
    rates = {name: sum(row["metrics"][name] for row in scored) / len(scored) for name in names}
    found = Counter(row.get("diagnosis") for row in scored)
    lost = {word: found[word] for word in DIAGNOSES if found[word] and word != "answered"}
    return Summary(len(scored), unscored, accuracy, interval.low, interval.high, rates, lost)


def describe(name: str, summary: Summary, excluded: Sequence[Sequence[str]]) -> list[str]:
    """The lines that a command prints for one run."""
    if not summary.scored:
        lines = [f"{name}: no row was scored"]
    else:
        rates = summary.rates
        lines = [
            f"{name}: {summary.accuracy:.1%} correct [{summary.low:.1%}, {summary.high:.1%}], n = {summary.scored}"
            f" · stale {rates['is_stale']:.1%} · hedged {rates['is_hedged']:.1%} · wrong {rates['is_wrong']:.1%}"
            f" · refused {rates['is_refused']:.1%} · gold in notes {rates['gold_in_notes']:.1%}"
            f" · cut {rates['overflows']:.2f} a rollout"
        ]
        if set(summary.lost) - {"unknown"}:
            words = ", ".join(f"{word.replace('_', ' ')} {count}" for word, count in summary.lost.items())
            lines.append(f"  where the fact was lost: {words}")
    lines += [f"  excluded {row}: {reason}" for row, reason in excluded]
    reasons = sorted(summary.unscored.items(), key=lambda pair: -pair[1])
    lines += [f"  unscored: {count} row(s): {reason}" for reason, count in reasons[:MOST_REASONS]]
    if others := reasons[MOST_REASONS:]:
        lines.append(f"  unscored: {sum(count for _, count in others)} row(s): {len(others)} more reasons, in the rows")
    if summary.invalid:
        lines.append(f"  INVALID: more than {UNSCORED_LIMIT:.0%} of the rows are unscored")
    return lines
