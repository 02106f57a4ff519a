"""Finished runs side by side: `python -m eval table RUN... [--metrics FILE] [--plot FILE]`.

Every number is recomputed from the rows. With `--plot` the accuracies (and, with `--metrics`, the training curve) are
drawn into one picture.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.arguments import picture
from eval.compare import load_run
from eval.pictures import load_pyplot
from eval.report_runs import labels
from eval.row_shape import number
from eval.rows import ROWS_FILE, Summary, summarise
from rewards.commands import Parser, answered
from rewards.errors import UserError

EXAMPLE = """example:
  python -m eval table runs/quick/base/full runs/quick/base/bounded runs/quick/trained/bounded \\
      --metrics runs/quick/metrics.jsonl --plot runs/quick/summary.png"""


SHOWN = ("is_stale", "is_hedged", "is_wrong", "is_refused", "gold_in_notes")
"""Metrics of a row that the table shows."""


@dataclass(frozen=True, slots=True)
class Column:
    """One run: its label, rows and summary; `after` maps sessions after the update to (n, accuracy)."""

    label: str
    rows: list[dict[str, Any]]
    summary: Summary
    after: dict[int, tuple[int, float]]


def run(args: list[str]) -> int:
    """Entry of `python -m eval table`. 0: done; 2: refused."""
    parser = Parser(
        "python -m eval table", "Accuracies of finished runs side by side, recomputed from their rows.", EXAMPLE
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder with run.json and rows.jsonl")
    parser.add_argument("--metrics", type=Path, help="metrics.jsonl of the training run, for the plot")
    parser.add_argument("--plot", type=picture, help="write a picture (.png, .svg or .pdf)")
    options = parser.read(args)
    return answered("table", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    names = labels([Path(os.path.abspath(folder)) for folder in options.runs])
    columns = [column(folder, name) for folder, name in zip(options.runs, names, strict=True)]
    print("\n".join(render(columns)))
    if options.plot:
        plot(columns, _metrics(options.metrics), options.plot)
        print(f"plot: {options.plot}")
    return 0


def column(folder: Path, label: str) -> Column:
    """Read one run. Raises `UserError` for anything missing or damaged."""
    load_run(folder)  # the checks of `compare`: missing, cut, doubled or malformed rows
    lines = (folder / ROWS_FILE).read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line.strip()]
    after: dict[int, list[int]] = {}
    names: set[str] = set()
    for row in (row for row in rows if row["scored"]):
        _refuse_malformed(row, names or {*SHOWN}, f"{folder / ROWS_FILE}, task '{row['id']}'")
        names = set(row["metrics"])
        position = (row.get("tags") or {}).get("sessions_after_update")
        if position is not None:
            after.setdefault(position, []).append(row["r_cur"])
    return Column(
        label=label,
        rows=rows,
        summary=summarise(rows),
        after={key: (len(hits), sum(hits) / len(hits)) for key, hits in sorted(after.items())},
    )


def _refuse_malformed(row: dict[str, Any], names: set[str], where: str) -> None:
    """What `compare` does not read and the table does: metrics of the same names in every row, and the tags."""
    metrics, tags = row.get("metrics"), row.get("tags") or {}
    numbers = metrics if isinstance(metrics, dict) else {}
    bad = [name for name in names | set(numbers) if not number(numbers.get(name))]
    if bad:
        raise UserError(f"{where}: 'metrics' holds no number '{min(bad)}'")
    if not isinstance(tags, dict) or not isinstance(tags.get("sessions_after_update", 0), int | None):
        raise UserError(f"{where}: 'tags' holds no number of sessions after the update")
    if not isinstance(row.get("diagnosis"), str | None):
        raise UserError(f"{where}: 'diagnosis' is {row['diagnosis']!r}, not a word")


def render(columns: Sequence[Column]) -> list[str]:
    """The table as text: one line a run."""
    width = max(len(column.label) for column in columns)
    head = f"{'run':<{width}}  {'n':>4} {'unscored':>8}  {'correct (95 % Wilson)':<24} {'stale':>6} {'hedged':>6}"
    lines = [f"{head} {'wrong':>6} {'refused':>7} {'gold in notes':>13}  correct by sessions after the update"]
    for column in columns:
        summary, rates = column.summary, column.summary.rates
        unscored = sum(summary.unscored.values())
        if not summary.scored:
            lines.append(f"{column.label:<{width}}  {0:>4} {unscored:>8}  no row was scored")
            continue
        correct = f"{summary.accuracy:6.1%} [{summary.low:.1%}, {summary.high:.1%}]"
        after = ", ".join(f"{key}: {accuracy:.0%} of {n}" for key, (n, accuracy) in column.after.items())
        lines.append(
            f"{column.label:<{width}}  {summary.scored:>4} {unscored:>8}  {correct:<24} {rates['is_stale']:>6.1%} "
            f"{rates['is_hedged']:>6.1%} {rates['is_wrong']:>6.1%} {rates['is_refused']:>7.1%} "
            f"{rates['gold_in_notes']:>13.1%}  {after}"
        )
    return lines


CURVE = ("step", "reward", "varied_groups", "groups")
"""What is read of a line of metrics.jsonl."""


def _metrics(file: Path | None) -> list[dict[str, float]]:
    if file is None:
        return []
    if not file.is_file():
        raise UserError(f"{file}: no such file")
    try:
        lines = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line.strip()]
        # a step without a scored rollout has no reward
        return [{name: float("nan" if line[name] is None else line[name]) for name in CURVE} for line in lines]
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{file} is no metrics.jsonl of a training run: {type(error).__name__} {error}") from error


def plot(columns: Sequence[Column], metrics: Sequence[dict[str, float]], file: Path) -> None:
    """Accuracy of every run with its interval; beside it reward and varied groups by training step."""
    pyplot = load_pyplot("--plot")
    figure, axes = pyplot.subplots(1, 2 if metrics else 1, figsize=(11 if metrics else 6, 4), squeeze=False)
    left = axes[0][0]
    names = [column.label for column in columns]
    values = [column.summary.accuracy for column in columns]
    low = [column.summary.accuracy - column.summary.low for column in columns]
    high = [column.summary.high - column.summary.accuracy for column in columns]
    places = range(len(columns))
    left.bar(places, values, yerr=[low, high], capsize=4, color="#4878a8")
    left.bar(places, [column.summary.rates.get("is_stale", 0.0) for column in columns], width=0.4, color="#c0504d")
    left.set_ylim(0, 1)
    left.set_ylabel("share of episodes")
    left.set_title("correct (95 % interval) and, narrow, stale")
    left.set_xticks(places, names, rotation=20, ha="right")
    if metrics:
        right = axes[0][1]
        steps = [line["step"] for line in metrics]
        right.plot(steps, [line["reward"] for line in metrics], marker=".", label="mean reward")
        varied = [line["varied_groups"] / line["groups"] for line in metrics]
        right.plot(steps, varied, linestyle=":", label="groups with variance")
        right.set_xlabel("GRPO step")
        right.set_title("training (sampled)")
        right.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
