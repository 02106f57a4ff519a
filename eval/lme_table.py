"""LongMemEval-V2 runs side by side, recomputed from their rows, and accuracy drawn against latency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.lafs import TIERS, published
from eval.lme_errors import Answered, analyse
from eval.lme_errors import render as render_causes
from eval.lme_rows import LmeRun, summarise
from eval.pictures import load_pyplot
from eval.rows import ROWS_FILE

SHOWN_REASONS = 6
"""Reasons of unscored rows that the table lists, the most frequent first."""

Runs = Sequence[tuple[LmeRun, Sequence[Mapping[str, Any]], Path]]


def render(runs: Runs) -> list[str]:
    """One line a system, then what was left out or failed."""
    if not runs:
        return ["no system was run"]
    width = max(len(info.system) for info, _, _ in runs)
    lines = [
        f"{'system':<{width}}  {'n':>4} {'unscored':>8}  {'correct (95 % Wilson)':<24} {'strict':>6} {'unknown':>7}  "
        f"{'evidence: state':>15} {'line':>5}  {'query p50':>9} {'p95':>8}  {'context tokens':>14}"
    ]
    notes: list[str] = []
    for info, rows, _ in runs:
        summary = summarise(rows)
        correct = f"{summary.accuracy:6.1%} [{summary.interval.low:.1%}, {summary.interval.high:.1%}]"
        correct = correct if summary.scored else "no row was scored"
        lines.append(
            f"{info.system:<{width}}  {summary.scored:>4} {sum(summary.unscored.values()):>8}  {correct:<24} "
            f"{summary.strict:>6.1%} {summary.unknown:>7.1%}  {_share(summary.evidence.get('state')):>15} "
            f"{_share(summary.evidence.get('line')):>5}  {_seconds(summary.query_p50):>9} "
            f"{_seconds(summary.query_p95):>8}  {summary.tokens:>14,.0f}"
        )
        reasons: dict[str, list[str]] = {}
        for row, reason in info.excluded:
            reasons.setdefault(reason, []).append(row)
        notes += [
            f"{info.system}: left out {len(ids)}, {reason}: {', '.join(ids[:6])}" for reason, ids in reasons.items()
        ]
        failed = sorted(summary.unscored.items(), key=lambda pair: -pair[1])
        notes += [f"{info.system}: unscored {count}: {reason}" for reason, count in failed[:SHOWN_REASONS]]
        rest = failed[SHOWN_REASONS:]
        if rest:  # messages that hold a request's number differ in every row
            more = sum(count for _, count in rest)
            notes.append(f"{info.system}: unscored {more} for {len(rest)} other reasons, in its {ROWS_FILE}")
        if not summary.comparable:
            notes.append(f"{info.system}: latencies were measured at a concurrency over 1 and compare with nothing")
        if summary.images_withheld:
            notes.append(f"{info.system}: {summary.images_withheld} question(s) were read without their picture")
        if summary.invalid:
            notes.append(f"{info.system}: INVALID: too many unscored rows")
    if any(info.tier == "whole" for info, _, _ in runs):
        notes.append("tier 'whole' is a smoke test of the machinery, not a LongMemEval-V2 score")
    if any(info.reader["reader"] == "extractive" for info, _, _ in runs):
        notes.append("the extractive reader is no language model: accuracies compare with no published number")
    return [*lines, *(f"  {note}" for note in notes)]


def causes(runs: Runs) -> list[str]:
    """Why answers were wrong, where evidence is known (the paper's figure 7); nothing where it is not."""
    known = [(info, rows) for info, rows, _ in runs if any(row.get("evidence_states") for row in rows)]
    if not known:
        return []
    columns = {info.system: analyse(map(answered, rows)) for info, rows in known}
    return ["", "why answers were wrong:", *render_causes(columns)]


def answered(row: Mapping[str, Any]) -> Answered:
    """A row as the error analysis takes it: what the reader saw against the one set of evidence that is known."""
    evidence = row.get("evidence_states")
    return Answered(
        question_id=row["id"],
        question_type=row["question_type"],
        correct=row["correct"],
        retrieved=frozenset((name, index) for name, index in row.get("retrieved", ())),
        evidence=(frozenset((name, index) for name, index in evidence),) if evidence else (),
        unknown=bool(row.get("unknown")),
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


PUBLISHED_ENVIRONMENTS = frozenset({"workarena", "webarena-reddit", "webarena-cms", "webarena-onestopshop"})
"""Of the 451 published questions (questions.jsonl of the dataset)."""


def plot(runs: Runs, file: Path, environments: Iterable[str]) -> None:
    """Accuracy against the mean latency of a query, on a logarithmic axis.

    The published systems of the tier are drawn beside only where the questions are of published environments: they
    say nothing about other data, whatever its file of haystacks is called.
    """
    published_data = PUBLISHED_ENVIRONMENTS.issuperset(environments)
    pyplot = load_pyplot("--plot")
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    tiers = {info.tier for info, _, _ in runs}
    for tier in sorted(tiers & set(TIERS)) if published_data else ():
        points = [point for point in published(tier) if point.seconds > 0]
        axes.scatter(
            [point.seconds for point in points],
            [point.accuracy for point in points],
            color="#888888",
            label=f"published ({tier}, Qwen3.5-9B reads)",
        )
        for point in points:
            place = (point.seconds, point.accuracy)
            axes.annotate(point.name, place, xytext=(4, 5), textcoords="offset points", fontsize=7, color="#666666")
    for info, rows, _ in runs:
        summary = summarise(rows)
        if summary.query_mean is None or not summary.scored:
            continue  # no query, no latency
        axes.errorbar(
            summary.query_mean,
            100 * summary.accuracy,
            yerr=[
                [100 * (summary.accuracy - summary.interval.low)],
                [100 * (summary.interval.high - summary.accuracy)],
            ],
            fmt="s",
            capsize=3,
            label=f"{info.system} ({info.tier}, n = {summary.scored})",
        )
    axes.set_xscale("log")
    axes.set_xlim(0.005, 1000)
    axes.set_ylim(0, 100)
    axes.set_xlabel("mean seconds a query (reader and judge not counted)")
    axes.set_ylabel("correct, %")
    axes.legend(fontsize=8)
    title = "smoke test, not a LongMemEval-V2 score" if "whole" in tiers else "LongMemEval-V2"
    axes.set_title(title if published_data else "other data than LongMemEval-V2's: no published points", fontsize=10)
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
