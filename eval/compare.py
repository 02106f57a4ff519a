"""Compare two finished runs task by task: `python -m eval compare A B`.

A run is a folder with `run.json` (what made it; `n` counts tasks) and `rows.jsonl` (one row a task and sample). Only
runs of the same tasks under the same grader are compared. A row without a score in either run leaves the pair.

Several samples of a task: their mean goes into accuracies, rates and the bootstrap; McNemar's tests need one 0 or 1 a
task and take the first sample (index 0). "Improved" is said only when the exact McNemar test says so.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval.stats import (
    ALPHA,
    INVALID_EXIT,
    UNSCORED_LIMIT,
    mcnemar_corrected,
    mcnemar_exact,
    paired_bootstrap,
    wilson,
)
from lme_v2_env.chat import SURROGATE_ESCAPE
from lme_v2_env.trajectory import SURROGATE
from rewards import strict_json
from rewards.commands import Parser, answered
from rewards.errors import UserError

MUST_MATCH = ("task_set", "grader_version")
"""Numbers of different tasks or different graders are not comparable."""

MAY_DIFFER = (
    "model",
    "adapter",
    "adapter_sha256",
    "engine",
    "condition",
    "data",
    "protocol",
    "prompt_hash",
    "sampling",
    "stale_weight",
    "code_version",
)
"""What a comparison may be about; the report names those that do differ."""

ROW_KEYS = ("id", "sample", "scored", "unscored_reason", "r_cur", "r_stale", "verdict", "answer", "gold")

EXAMPLE = """example:
  python -m eval compare runs/base runs/trained
  python -m eval compare runs/full runs/bounded --json"""


@dataclass(frozen=True, slots=True)
class Row:
    """One task and sample. `right` and `stale` are None when the row is unscored."""

    id: str
    sample: int
    right: int | None
    stale: int | None
    hedged: bool
    is_stale: bool
    unscored_reason: str
    answer: str
    gold: str


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run; `tasks` maps an id to its rows in sample order."""

    name: str
    info: dict[str, Any]
    tasks: dict[str, list[Row]]

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.tasks.values() for row in rows]

    @property
    def unscored(self) -> list[Row]:
        return [row for row in self.rows if row.right is None]

    @property
    def invalid(self) -> bool:
        """More rows without a score than `UNSCORED_LIMIT` allows."""
        return len(self.unscored) > UNSCORED_LIMIT * len(self.rows)


@dataclass(frozen=True, slots=True)
class Side:
    """One run over the tasks that both scored. Rates and the interval are proportions."""

    run: str
    accuracy: float
    low: float
    high: float
    stale_rate: float
    hedge_rate: float
    rows: int
    unscored: list[tuple[str, int, str]]
    excluded: list[list[str]]


@dataclass(frozen=True, slots=True)
class Discordant:
    """A task that only one run answered right (first samples)."""

    id: str
    right: str
    answer_a: str
    answer_b: str
    gold: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """B against A over `n` tasks; `n_first` have a scored first sample on both sides (McNemar)."""

    n: int
    n_first: int
    samples: tuple[int, int]
    a: Side
    b: Side
    difference: float
    difference_low: float
    difference_high: float
    only_a: int
    only_b: int
    mcnemar_exact_p: float
    mcnemar_chi2: float
    mcnemar_chi2_p: float
    verdict: str
    differs_in: list[str]
    discordant: list[Discordant]


def run(args: list[str]) -> int:
    """Entry of `python -m eval compare`. 0: compared; 2: refused; 3: INVALID (too many rows unscored)."""
    parser = Parser("python -m eval compare", "Paired comparison of run B with run A over the same tasks.", EXAMPLE)
    parser.add_argument("a", metavar="A", type=Path, help="folder of the first run (run.json, rows.jsonl)")
    parser.add_argument("b", metavar="B", type=Path, help="folder of the second run")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--resamples", type=int, default=10_000, help="bootstrap resamples (default 10000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default 0)")
    options = parser.read(args)
    return answered("compare", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    if options.resamples < 1:
        raise UserError(f"--resamples is {options.resamples}: give a positive number")
    a, b = load_run(options.a), load_run(options.b)
    refuse_incomparable(a, b)
    result = compare(a, b, resamples=options.resamples, seed=options.seed)
    if result is None:
        print(json.dumps({"verdict": "INVALID", "n": 0}) if options.json else "INVALID: no task is scored in both runs")
        return INVALID_EXIT
    print(json.dumps(asdict(result), indent=2) if options.json else render(result))
    return INVALID_EXIT if result.verdict == "INVALID" else 0


def load_run(folder: Path) -> Run:
    """Read and check one run. Raises `UserError` for anything missing, cut short, doubled or malformed."""
    text = _read(folder / "run.json")
    try:
        info = strict_json.loads(text)
    except ValueError as error:
        raise UserError(f"{folder / 'run.json'} is damaged: {error}") from error
    if not isinstance(info, dict):
        raise UserError(f"{folder / 'run.json'}: expected an object")
    info = _printable(info)
    for key in (*MUST_MATCH, "n"):
        if info.get(key) is None:
            raise UserError(f"{folder / 'run.json'}: '{key}' is missing")
    samples, excluded = info.get("samples"), info.get("excluded")
    if samples is not None and (type(samples) is not int or not 1 <= samples < 10**9):
        raise UserError(f"{folder / 'run.json'}: 'samples' is {samples!r}, not a number of repeats")
    if excluded is not None and not (isinstance(excluded, list) and all(isinstance(pair, list) for pair in excluded)):
        raise UserError(f"{folder / 'run.json'}: 'excluded' is no list of pairs")
    file = folder / "rows.jsonl"
    tasks: dict[str, list[Row]] = {}
    for number, line in enumerate(_read(file).split("\n"), 1):  # not splitlines: answers may hold U+2028
        if line.strip():
            row = _row(line, f"{file}, line {number}")
            tasks.setdefault(row.id, []).append(row)
    for rows in tasks.values():
        rows.sort(key=lambda row: row.sample)
    _refuse_incomplete(file, tasks, info["n"], samples)
    return Run(f"{folder.parent.name}/{folder.name}", info, tasks)  # .../trained/bounded: both parts tell runs apart


def _printable(record: dict[str, Any]) -> dict[str, Any]:
    """Halves of characters replaced: no terminal takes them."""
    return json.loads(SURROGATE.sub("\ufffd", json.dumps(record, ensure_ascii=False)))


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        raise UserError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error


def _row(line: str, where: str) -> Row:
    try:
        record = strict_json.loads(line)
    except ValueError:
        raise UserError(f"{where}: no valid JSON; the file is truncated or damaged") from None
    if isinstance(record, dict) and SURROGATE_ESCAPE.search(line.encode()):
        record = _printable(record)
    missing = [key for key in ROW_KEYS if not isinstance(record, dict) or key not in record]
    if missing:
        raise UserError(f"{where}: '{missing[0]}' is missing")
    if not isinstance(record["id"], str):
        raise UserError(f"{where}: 'id' is {record['id']!r}, not a text")
    if isinstance(record["sample"], bool) or not isinstance(record["sample"], int):
        raise UserError(f"{where}: 'sample' is {record['sample']!r}, not a repeat index")
    scored = record["scored"] is True
    if scored and record["r_cur"] not in (0, 1):
        raise UserError(f"{where}: 'r_cur' is {record['r_cur']!r}, not 0 or 1")
    if scored and record["r_stale"] not in (0, -1):
        raise UserError(f"{where}: 'r_stale' is {record['r_stale']!r}, not 0 or -1")
    return Row(
        id=record["id"],
        sample=record["sample"],
        right=int(record["r_cur"]) if scored else None,
        stale=int(record["r_stale"]) if scored else None,
        hedged=record["verdict"] == "hedged",
        is_stale=record["verdict"] == "stale",
        unscored_reason=str(record["unscored_reason"] or "no reason given"),
        answer="" if record["answer"] is None else str(record["answer"]),
        gold=str(record["gold"]),
    )


def _refuse_incomplete(file: Path, tasks: dict[str, list[Row]], n: object, samples: int | None) -> None:
    for task, rows in tasks.items():
        indices = [row.sample for row in rows]
        if len(set(indices)) < len(indices):
            raise UserError(f"{file}: task '{task}' occurs twice with the same sample index")
    if len(tasks) != n or not tasks:
        raise UserError(f"{file}: {len(tasks)} of {n} tasks; the run is not finished or the file was cut")
    most = samples or max(len(rows) for rows in tasks.values())
    for task, rows in tasks.items():
        if [row.sample for row in rows] != list(range(most)):
            have = f"{len(rows)} of the samples 0 to {most - 1}"
            raise UserError(f"{file}: task '{task}' has {have}; the run is not finished")


def refuse_incomparable(a: Run, b: Run) -> None:
    """Raise `UserError` unless both runs hold the same tasks under the same grader."""
    for key in MUST_MATCH:
        if a.info[key] != b.info[key]:
            raise UserError(
                f"{key} differs: {a.info[key]} in {a.name}, {b.info[key]} in {b.name}; they are not comparable"
            )
    unpaired = sorted(a.tasks.keys() ^ b.tasks.keys())
    if unpaired:
        raise UserError(f"{len(unpaired)} tasks are in one run only, among them '{unpaired[0]}'")


def compare(a: Run, b: Run, *, resamples: int, seed: int) -> Comparison | None:
    """All figures, or None when no task has a score on both sides."""
    paired = [task for task in a.tasks if _scored(a.tasks[task]) and _scored(b.tasks[task])]
    if not paired:
        return None
    means_a, means_b = (_means(run, paired, lambda row: row.right or 0) for run in (a, b))
    interval = paired_bootstrap(means_a, means_b, resamples=resamples, seed=seed)
    first = [(a.tasks[task][0], b.tasks[task][0]) for task in paired]
    first = [(x, y) for x, y in first if x.right is not None and y.right is not None]
    discordant = [(x, y) for x, y in first if x.right != y.right]
    only_a = sum(x.right == 1 for x, _ in discordant)
    only_b = len(discordant) - only_a
    p = mcnemar_exact(only_a, only_b)
    chi2, chi2_p = mcnemar_corrected(only_a, only_b)
    invalid = a.invalid or b.invalid
    better = "improved" if only_b > only_a else "worse"
    return Comparison(
        n=len(paired),
        n_first=len(first),
        samples=(len(next(iter(a.tasks.values()))), len(next(iter(b.tasks.values())))),
        a=_side(a, paired, means_a),
        b=_side(b, paired, means_b),
        difference=sum(means_b) / len(paired) - sum(means_a) / len(paired),
        difference_low=interval.low,
        difference_high=interval.high,
        only_a=only_a,
        only_b=only_b,
        mcnemar_exact_p=p,
        mcnemar_chi2=chi2,
        mcnemar_chi2_p=chi2_p,
        verdict="INVALID" if invalid else better if p < ALPHA else "no difference shown",
        differs_in=[key for key in MAY_DIFFER if a.info.get(key) != b.info.get(key)],
        discordant=[Discordant(x.id, "A" if x.right else "B", x.answer, y.answer, x.gold) for x, y in discordant],
    )


def _scored(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.right is not None]


def _means(run: Run, tasks: list[str], value: Callable[[Row], float]) -> list[float]:
    """Per task the mean of `value` over its scored samples."""
    scored = [_scored(run.tasks[task]) for task in tasks]
    return [sum(value(row) for row in rows) / len(rows) for rows in scored]


def _side(run: Run, tasks: list[str], means: list[float]) -> Side:
    n = len(tasks)
    interval = wilson(sum(means), n)
    return Side(
        run=run.name,
        accuracy=sum(means) / n,
        low=interval.low,
        high=interval.high,
        stale_rate=sum(_means(run, tasks, lambda row: float(row.is_stale))) / n,
        hedge_rate=sum(_means(run, tasks, lambda row: float(row.hedged))) / n,
        rows=len(run.rows),
        unscored=[(row.id, row.sample, row.unscored_reason) for row in run.unscored],
        excluded=[[str(part) for part in pair] for pair in run.info.get("excluded") or ()],
    )


def render(result: Comparison) -> str:
    """The report as text."""
    a, b = result.a, result.b
    lines = [f"A = {a.run}", f"B = {b.run}", f"n = {result.n} tasks scored in both runs"]
    lines += [f"A and B differ in: {', '.join(result.differs_in) or 'nothing that is recorded'}"]
    if max(result.samples) > 1:
        lines.append(
            f"{result.samples[0]} and {result.samples[1]} samples a task: averaged for accuracies and the bootstrap, "
            f"the first sample for McNemar (n = {result.n_first}); Wilson intervals count tasks"
        )
    lines.append("")
    for label, side in (("A", a), ("B", b)):
        lines.append(
            f"{label}  accuracy {_percent(side.accuracy)} {_range(side.low, side.high)} (Wilson 95 %)   "
            f"stale {_percent(side.stale_rate)}   hedged {_percent(side.hedge_rate)}"
        )
    lines += [
        f"B - A  {100 * result.difference:+.1f} points {_range(result.difference_low, result.difference_high)} "
        "(paired bootstrap over tasks, 95 %)",
        f"discordant: {result.only_a} only A right, {result.only_b} only B right",
        f"exact McNemar p = {_p(result.mcnemar_exact_p)}; continuity-corrected chi2 = {result.mcnemar_chi2:.2f}, "
        f"p = {_p(result.mcnemar_chi2_p)}",
        "",
    ]
    for label, side in (("A", a), ("B", b)):
        lines.append(f"{label}: {len(side.unscored)} of {side.rows} rows unscored")
        lines += [f"  {task}, sample {sample}: {reason}" for task, sample, reason in side.unscored]
        lines += [f"  excluded {': '.join(pair)}" for pair in side.excluded]
    for case in result.discordant:
        lines += [
            "",
            f"{case.id}: only {case.right} right",
            f"  gold: {_line(case.gold)}",
            f"  A:    {_line(case.answer_a)}",
            f"  B:    {_line(case.answer_b)}",
        ]
    return "\n".join([*lines, "", _conclusion(result)])


def _conclusion(result: Comparison) -> str:
    if result.verdict == "INVALID":
        sides = (("A", result.a), ("B", result.b))
        over = [f"{label} {len(side.unscored)} of {side.rows}" for label, side in sides if side.unscored]
        return f"INVALID: more than {100 * UNSCORED_LIMIT:.0f} % of a run's rows are unscored ({'; '.join(over)})"
    p = f"exact McNemar p = {_p(result.mcnemar_exact_p)}"
    if result.verdict == "improved":
        return f"B improved on A ({p})"
    if result.verdict == "worse":
        return f"B is worse than A ({p})"
    return f"No difference shown between A and B ({p})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _range(low: float, high: float) -> str:
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"


def _line(text: str, width: int = 160) -> str:
    """One line of at most `width` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."
