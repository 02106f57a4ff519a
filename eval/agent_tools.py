"""What coding agents' commands were for: `python -m eval agent-tools`. The paper's figures 8 and 9 from a run's rows.

Figure 8 counts commands a question by kind, figure 9 shares of the kinds in each of the first rounds.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.arguments import picture
from eval.baselines.coding.accounting import Kind, by_round, mean_counts
from eval.pictures import load_pyplot
from eval.row_shape import LME, refuse_misshapen
from eval.rows import ROWS_FILE
from rewards import strict_json
from rewards.commands import Parser, answered
from rewards.errors import UserError

PUBLISHED = (
    "published, medium: Codex 21.8 raw exploration; AgentRunbook-C 18.0 guided retrieval and 1.2 raw exploration"
)

EXAMPLE = """example:
  python -m eval agent-tools runs/lme/codex runs/lme/agentrunbook_c --plot tools.png"""

Rows = Sequence[Mapping[str, Any]]


def run(args: list[str]) -> int:
    """Entry of `python -m eval agent-tools`. 0: done; 2: refused."""
    parser = Parser("python -m eval agent-tools", "What coding agents' commands were for.", EXAMPLE)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of systems, as OUT/codex")
    parser.add_argument("--plot", type=picture, help="draw both figures (.png, .svg or .pdf)")
    options = parser.read(args)
    return answered("agent-tools", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    runs = {_name(folder, options.runs): _rows(folder) for folder in options.runs}
    print("\n".join(render(runs)))
    if options.plot:
        plot(runs, options.plot)
        print(f"plot: {options.plot}")
    return 0


def render(runs: Mapping[str, Rows]) -> list[str]:
    """Both figures as tables, then what sandboxes stopped and why contexts are empty."""
    width = max(map(len, runs))
    kinds = [str(kind) for kind in Kind]
    lines = ["commands a question:", f"{'':<{width}}  {'n':>4}  " + "  ".join(f"{kind:>16}" for kind in kinds)]
    for name, rows in runs.items():
        count, means = mean_counts(rows)
        lines.append(f"{name:<{width}}  {count:>4}  " + "  ".join(f"{means[kind]:>16.1f}" for kind in kinds))
    lines += [f"  {PUBLISHED}", "", "share of each kind by round (first attempts):"]
    for name, rows in runs.items():
        for number, shares in enumerate(by_round(rows), 1):
            lines.append(f"{name:<{width}}  {number:>4}  " + "  ".join(f"{shares[kind]:>16.0%}" for kind in kinds))
    lines += ["", *(f"{name}: {note}" for name, rows in runs.items() for note in _notes(rows))]
    return lines


def _notes(rows: Rows) -> list[str]:
    gathered = [row["gathered"] for row in rows if row.get("gathered")]
    stopped = Counter(name for report in gathered for name in report["incidents"])
    empty = Counter(report["empty_because"] for report in gathered if report["empty_because"])
    again = sum(len(report["attempts"]) - 1 for report in gathered)
    dropped = sum(len(report["spans_dropped"]) for report in gathered)
    notes = [f"{again} further attempt(s), {dropped} span(s) dropped, {sum(empty.values())} empty context(s)"]
    notes += [f"{count} question(s) met: {name}" for name, count in stopped.most_common()]
    return notes + [f"{count} empty: {reason}" for reason, count in empty.most_common()]


def plot(runs: Mapping[str, Rows], file: Path) -> None:
    """Figure 8 on the left, figure 9 beside it, one panel a system."""
    pyplot = load_pyplot("--plot")
    figure, axes = pyplot.subplots(1, 1 + len(runs), figsize=(4.5 * (1 + len(runs)), 4), squeeze=False)
    counts = {name: mean_counts(rows)[1] for name, rows in runs.items()}
    for place, kind in enumerate(map(str, Kind)):
        color = f"C{place}"
        lower = [sum(list(means.values())[:place]) for means in counts.values()]
        axes[0][0].bar(list(counts), [means[kind] for means in counts.values()], bottom=lower, color=color, label=kind)
        for panel, rows in zip(axes[0][1:], runs.values(), strict=True):
            rounds = by_round(rows)
            lower = [sum(list(shares.values())[:place]) for shares in rounds]
            panel.bar(range(1, len(rounds) + 1), [shares[kind] for shares in rounds], bottom=lower, color=color)
    axes[0][0].set_ylabel("commands a question")
    axes[0][0].tick_params(axis="x", labelrotation=20)
    axes[0][0].legend(fontsize=7)
    for panel, name in zip(axes[0][1:], runs, strict=True):
        panel.set_title(name, fontsize=10)
        panel.set_xlabel("round")
        panel.set_ylabel("share of commands")
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


def _name(folder: Path, others: Sequence[Path]) -> str:
    """The system's name, with its run's where two have the same."""
    twice = sum(other.name == folder.name for other in others) > 1
    return f"{folder.parent.name}/{folder.name}" if twice else folder.name


def _rows(folder: Path) -> Rows:
    file = folder / ROWS_FILE
    if not file.is_file():
        raise UserError(f"{folder}: no {ROWS_FILE} in it: give a system's folder below --out of python -m eval lme-v2")
    try:
        rows = [strict_json.loads(line) for line in file.read_bytes().split(b"\n") if line.strip()]
    except ValueError as error:
        raise UserError(f"{file} is damaged: {error}") from None
    for number, row in enumerate(rows, 1):
        refuse_misshapen(row, LME, f"{file}, row {number}")
    if not any((row.get("gathered") or {}).get("tools") for row in rows):
        raise UserError(f"{folder}: its rows count no commands: it is no coding agent's run")
    return rows
