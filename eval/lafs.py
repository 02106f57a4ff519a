"""LAFS, LongMemEval-V2's latency-accuracy score: `python -m eval lafs --tier small --point 62@15`.

A set of operating points (accuracy in percent, mean seconds of a memory query) is scored by the best accuracy that a
latency budget T allows, averaged over log T from 1 to 200 seconds. A submission's score is what it adds to the four
published reference systems of its tier. A system that makes no query has no latency and stays out.
"""

from __future__ import annotations

import argparse
import json
import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from eval.arguments import picture
from eval.lme_metrics import join, overview
from eval.pictures import load_pyplot
from rewards import strict_json
from rewards.commands import Parser, answered
from rewards.errors import UserError, refuse_unknown

T_MIN, T_MAX = 1.0, 200.0
"""Bounds of the latency budget in seconds, as published."""

TIERS = ("small", "medium")

EXAMPLE = """examples:
  python -m eval lafs --tier small --point 62@15 --point 73@55
  python -m eval lafs --tier small --run mine=runs/mine_web_small,runs/mine_enterprise_small --plot figure6.png"""

Point = tuple[float, float]
"""(accuracy in percent, seconds)"""


@dataclass(frozen=True, slots=True)
class Operating:
    """A named point; `reference` when it belongs to the leaderboard's fixed frontier."""

    name: str
    accuracy: float
    seconds: float
    reference: bool = False

    @property
    def point(self) -> Point:
        return self.accuracy, self.seconds


def published(tier: str) -> list[Operating]:
    """The published points of a tier, those of the paper's figure 6."""
    refuse_unknown([tier], TIERS, "tier")
    table = tomllib.loads(files("configs").joinpath("lme_v2_published.toml").read_text("utf-8"))
    return [
        Operating(row["name"], row["accuracy"], row["seconds"], row["reference"])
        for row in table["point"]
        if row["tier"] == tier
    ]


def reference(tier: str) -> list[Operating]:
    """The four systems that a submission is measured against."""
    return [point for point in published(tier) if point.reference]


def frontier(points: Iterable[Point]) -> list[Point]:
    """The points that beat every faster one, by latency. Raises `UserError` for a latency that is not positive."""
    best: list[Point] = []
    for accuracy, seconds in sorted(points, key=lambda point: (point[1], -point[0])):
        if not (seconds > 0 and math.isfinite(seconds) and math.isfinite(accuracy)):
            raise UserError(f"{accuracy:g}@{seconds:g}: a latency must be positive; a system without queries has none")
        if not best or accuracy > best[-1][0]:
            best.append((accuracy, seconds))
    return best


def lafs(points: Iterable[Point]) -> float:
    """Mean over log T of the best accuracy with latency <= T, in percentage points; 0 where nothing is fast enough."""
    best = frontier(points)
    edges = sorted({T_MIN, T_MAX, *(seconds for _, seconds in best if T_MIN < seconds < T_MAX)})
    area = 0.0
    for left, right in pairwise(edges):
        area += max((accuracy for accuracy, seconds in best if seconds <= left), default=0.0) * math.log(right / left)
    return area / math.log(T_MAX / T_MIN)


def gain(points: Iterable[Point], tier: str) -> float:
    """What the points add to the tier's reference frontier, in percentage points."""
    fixed = [system.point for system in reference(tier)]
    return lafs([*fixed, *points]) - lafs(fixed)


def summary(points: Sequence[Operating], tier: str) -> dict[str, Any]:
    """The `lafs` object of a submission's overview, field by field as published."""
    fixed = reference(tier)
    base, together = lafs(p.point for p in fixed), lafs(p.point for p in [*fixed, *points])
    return {
        "tier": tier,
        "t_min_seconds": T_MIN,
        "t_max_seconds": T_MAX,
        "floor_accuracy": 0.0,
        "accuracy_unit": "percentage_points",
        "reference_lafs": base,
        "submission_lafs": together,
        "lafs_gain": together - base,
        "reference_frontier": _named_frontier(fixed),
        "submission_frontier": _named_frontier([*fixed, *points]),
    }


def _named_frontier(points: Sequence[Operating]) -> list[dict[str, Any]]:
    best = frontier(point.point for point in points)
    named = [next(point for point in points if point.point == place) for place in best]
    return [{"name": p.name, "accuracy": p.accuracy, "latency_seconds": p.seconds} for p in named]


def run(args: list[str]) -> int:
    """Entry of `python -m eval lafs`. 0: done; 2: refused."""
    parser = Parser(
        "python -m eval lafs",
        "LongMemEval-V2's latency-accuracy frontier score, and what points add to the published frontier.",
        EXAMPLE,
    )
    parser.add_argument("--tier", choices=TIERS, required=True)
    parser.add_argument(
        "--point", action="append", default=[], metavar="[NAME=]ACC@SECONDS", help="an operating point (repeatable)"
    )
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="NAME=WEB,ENTERPRISE",
        help="a point from two finished runs: folders with aggregated_metrics.json (repeatable)",
    )
    parser.add_argument("--plot", type=picture, help="accuracy against latency with the published points (.png, .svg)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    options = parser.read(args)
    return answered("lafs", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    points = [parse_point(text) for text in options.point] + [point_of_runs(text) for text in options.run]
    result = summary(points, options.tier)
    print(json.dumps(result, indent=2) if options.json else render(result, points))
    if options.plot:
        plot(points, options.tier, options.plot)
    return 0


def parse_point(text: str) -> Operating:
    """`62@15` or `name=62@15`."""
    name, _, value = text.rpartition("=")
    accuracy, at, seconds = value.partition("@")
    try:
        point = Operating(name or value, float(accuracy), float(seconds))
    except ValueError:
        raise UserError(f"--point {text}: expected ACCURACY@SECONDS, for example 62@15") from None
    if not at or not 0 <= point.accuracy <= 100:
        raise UserError(f"--point {text}: accuracy is in percent, 0 to 100")
    return point


def point_of_runs(text: str) -> Operating:
    """`name=web-folder,enterprise-folder`: accuracy over both and mean latency of a query."""
    name, equals, folders = text.partition("=")
    if not equals or not name:
        raise UserError(f"--run {text}: expected NAME=WEB,ENTERPRISE")
    pair = folders.split(",")
    if len(pair) != 2 or pair[0] == pair[1]:
        raise UserError(f"--run {text}: expected two folders, NAME=WEB,ENTERPRISE")
    parts = []
    for folder in pair:
        file = Path(folder) / "aggregated_metrics.json"
        try:
            parts.append(strict_json.loads(file.read_bytes()))
        except FileNotFoundError:
            raise UserError(f"{file}: no such file") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{file} cannot be read: {error}") from None
        if not isinstance(parts[-1], dict):
            raise UserError(f"{file}: expected an object")
    row = overview(join(parts))
    if row["overall_full_set"] is None or not row["memory_query_avg_seconds"]:
        raise UserError(f"--run {name}: no accuracy or no latency; a system without queries stays out of LAFS")
    return Operating(name, 100.0 * row["overall_full_set"], row["memory_query_avg_seconds"])


def render(result: dict[str, Any], points: Sequence[Operating]) -> str:
    """The report as text."""
    lines = [f"tier {result['tier']}, budgets {T_MIN:g} to {T_MAX:g} s, accuracy in percentage points"]
    on = {(p["accuracy"], p["latency_seconds"]) for p in result["submission_frontier"]}
    for point in points:
        where = "on the frontier" if point.point in on else "dominated"
        if point.seconds >= T_MAX:
            where = f"slower than {T_MAX:g} s: adds nothing"
        lines.append(f"  {point.name}: {point.accuracy:.2f} at {point.seconds:.2f} s, {where}")
    alone = lafs(point.point for point in points)
    lines += [
        f"reference LAFS  {result['reference_lafs']:.6f}",
        f"with the points {result['submission_lafs']:.6f}",
        f"LAFS gain       {result['lafs_gain']:+.6f}",
        f"points alone    {alone:.6f}",
    ]
    return "\n".join(lines)


def plot(points: Sequence[Operating], tier: str, file: Path) -> None:
    """Accuracy against log latency: the published points, the frontier, and the given ones (the paper's figure 6)."""
    pyplot = load_pyplot("--plot")
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    known = [point for point in published(tier) if point.seconds > 0]
    for group, color, marker in ((known, "#7f7f7f", "o"), (points, "#c0504d", "s")):
        axes.scatter([p.seconds for p in group], [p.accuracy for p in group], color=color, marker=marker, zorder=3)
        for p in group:
            axes.annotate(p.name, (p.seconds, p.accuracy), textcoords="offset points", xytext=(5, 5), fontsize=8)
    for system in published(tier):
        if system.seconds == 0:
            axes.axhline(system.accuracy, color="#7f7f7f", linestyle=":", linewidth=1)
            axes.annotate(f"{system.name} (no query)", (T_MAX, system.accuracy), ha="right", va="bottom", fontsize=8)
    best = frontier(p.point for p in [*reference(tier), *points])
    axes.step([p[1] for p in best] + [T_MAX], [p[0] for p in best] + [best[-1][0]], where="post", color="#4878a8")
    axes.set_xscale("log")
    axes.set_xlabel("mean latency of a memory query (s)")
    axes.set_ylabel("accuracy (%)")
    axes.set_title(f"LongMemEval-V2, {tier}: published points and frontier")
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
