"""The proof as a page: Markdown tables and the picture of its curves. Every number comes from `eval.proof`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.pictures import load_pyplot
from eval.proof import Evaluation, Proof, Run, over_seeds, tests
from supersede_env.diagnosis import DIAGNOSES
from train.proof import ENDS


def render(proof: Proof) -> list[str]:
    """The page, as Markdown."""
    lines = [*_made_by(proof), "### Validation episodes (generated; other values and phrasings than in training)", ""]
    lines += ROW_HEAD
    lines += [_row(e.label, e) for e in proof.base.values()]
    for one in proof.runs:
        for stage in ENDS:
            if stage in one.evaluations:
                lines.append(_row(f"{one.name} {stage}", one.evaluations[stage]))
    lines += ["", "### Paired tests, by run", ""]
    lines += ["| run | test | n | difference, points | exact McNemar p |", "|---|---|---|---|---|"]
    for one in proof.runs:
        for name, test in tests(proof, one).items():
            lines.append(f"| {one.name} | {name} | {test['n']} | {_points(test)} | {test['p']:.2g} |")
    lines += ["", *_over_seeds(proof), *_gap(proof), *_splits(proof), *_lost(proof), *_held(proof)]
    lines += [*_sampled(proof), *_real(proof), *_training(proof)]
    return lines


def _made_by(proof: Proof) -> list[str]:
    """Model and versions; a page whose evaluations were made by several versions of the code says so."""
    parts = [d for one in proof.runs for d in (one.evaluations, one.sampled, one.real)]
    of_base = [*proof.base.values(), *(e for e in (proof.sampled_base, proof.real_base) if e)]
    infos = [e.info for e in (*of_base, *(e for part in parts for e in part.values()))]
    if not infos:
        return []
    versions = sorted({str(info["code_version"]) for info in infos})
    several = "; it changed between the evaluations, the grader's version did not" if len(versions) > 1 else ""
    model, grader = infos[0]["model"], infos[0]["grader_version"]
    return [f"Model {model}, grader {grader}, environment's code {', '.join(versions)}{several}.", ""]


ROW_HEAD = ("| model | n | correct | stale | hedged |", "|---|---|---|---|---|")
"""The head of a table of `_row`s."""


def _row(label: str, evaluation: Evaluation) -> str:
    shares = [evaluation.rate(key) for key in ("is_stale", "is_hedged")]
    n = str(len(evaluation.rows))
    if evaluation.unscored:
        n += f" ({evaluation.unscored} unscored{', INVALID' if evaluation.invalid else ''})"
    return f"| {label} | {n} | {_share(evaluation)} | {shares[0]:.1%} | {shares[1]:.1%} |"


def _share(evaluation: Evaluation, key: str = "r_cur") -> str:
    interval = evaluation.interval(key)
    return f"{evaluation.rate(key):.1%} [{interval.low:.1%}, {interval.high:.1%}]"


def _points(test: Mapping[str, float]) -> str:
    return f"{100 * test['difference']:+.1f} [{100 * test['low']:+.1f}, {100 * test['high']:+.1f}]"


def _over_seeds(proof: Proof) -> list[str]:
    lines = ["### Over the seeds (permutation test clustered by episode)", ""]
    lines += ["| comparison | seeds | difference, points | p |", "|---|---|---|---|"]
    for label, test in over_seeds(proof).items():
        lines.append(f"| {label} | {test['seeds']:.0f} | {_points(test)} | {test['p']:.2g} |")
    return [*lines, ""]


def _gap(proof: Proof) -> list[str]:
    if not {"full", "bounded"} <= set(proof.base):
        return []
    gap = proof.base["full"].accuracy - proof.base["bounded"].accuracy
    line = f"The base's full context is {100 * gap:.1f} points above its bounded accuracy."
    shares = [
        f"{one.name} {(one.evaluations['trained'].accuracy - proof.base['bounded'].accuracy) / gap:.0%}"
        for one in proof.runs
        if "trained" in one.evaluations and gap > 0
    ]
    return [line + (f" Of that gap, training closed: {', '.join(shares)}." if shares else ""), ""]


def _splits(proof: Proof) -> list[str]:
    lines = []
    for tag, title in (("sessions_after_update", "sessions after the update"), ("update_style", "update style")):
        columns: list[tuple[str, list[Evaluation]]] = [(name, [e]) for name, e in proof.base.items()]
        warm: dict[int, Run] = {}  # the same for every lambda
        for run in (run for weight in proof.weights for run in proof.arm(weight, "warm")):
            warm.setdefault(run.seed, run)
        arms = [("warm", "warm", list(warm.values()))]
        arms += [(f"trained, lambda {weight:g}", "trained", proof.arm(weight, "trained")) for weight in proof.weights]
        for label, stage, arm in arms:
            if arm:
                columns.append((label + _some_seeds(proof, arm), [run.evaluations[stage] for run in arm]))
        rows = [(i, str(row["tags"].get(tag))) for _, es in columns for e in es for i, row in e.rows.items()]
        values = sorted({value for _, value in rows}, key=lambda v: (not v.isdigit(), int(v) if v.isdigit() else 0, v))
        lines += [f"### Correct by {title} (mean over seeds)", ""]
        lines += [
            f"| {title} | n | " + " | ".join(label for label, _ in columns) + " |",
            "|---" * (len(columns) + 2) + "|",
        ]
        for value in values:
            cells, count = [], len({i for i, found in rows if found == value})
            for _, evaluations in columns:
                hits = [r["r_cur"] for e in evaluations for r in e.rows.values() if str(r["tags"].get(tag)) == value]
                cells.append(f"{sum(hits) / len(hits):.0%}" if hits else "-")
            lines.append(f"| {value} | {count} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def _some_seeds(proof: Proof, arm: Sequence[Run]) -> str:
    """Which seeds a mean is over, where they are not all: it does not compare with the others."""
    seeds = {run.seed for run in arm}
    return "" if seeds == {run.seed for run in proof.runs} else f" (seed {', '.join(map(str, sorted(seeds)))})"


def _lost(proof: Proof) -> list[str]:
    """Share of episodes by where the fact was lost, at the base, the warm start, the checkpoints and the end."""
    lines = ["### Where the fact was lost, share of episodes (mean over seeds)", ""]
    words = [word for word in DIAGNOSES if word not in ("answered", "unknown")]
    lines += ["| model | n | " + " | ".join(word.replace("_", " ") for word in words) + " |"]
    lines += ["|---" * (len(words) + 2) + "|"]
    columns: list[tuple[str, list[Evaluation]]] = []
    if "bounded" in proof.base:
        columns.append(("base", [proof.base["bounded"]]))
    for weight in proof.weights:
        stages = sorted({s for one in proof.arm(weight) for s in one.evaluations}, key=_stage_order)
        for stage in stages:
            arm = proof.arm(weight, stage)
            label = f"lambda {weight:g} {stage}{_some_seeds(proof, arm)}"
            columns.append((label, [run.evaluations[stage] for run in arm]))
    for label, evaluations in columns:
        rows = [row for e in evaluations for row in e.rows.values()]
        shares = [sum(row.get("diagnosis") == word for row in rows) / len(rows) for word in words]
        lines.append(f"| {label} | {len(rows)} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    return [*lines, ""]


def _stage_order(stage: str) -> float:
    return {"warm": 0.0, "trained": 1e9}.get(stage, float(stage.removeprefix("step ")) if "step " in stage else 1e8)


def _held(proof: Proof) -> list[str]:
    """What the last notes held, and what the answer made of it: notes that keep old beside new values mislead it."""
    lines = ["### What the last notes held (greedy)", ""]
    lines += [
        "| model | characters | the current value | and a superseded one | correct with the current one alone | both |"
    ]
    lines += ["|---" * 6 + "|"]
    found = [("base", e) for name, e in proof.base.items() if name == "bounded"]
    found += [(f"{one.name} {s}", one.evaluations[s]) for one in proof.runs for s in ENDS if s in one.evaluations]
    for label, evaluation in found:
        current = [row for row in evaluation.rows.values() if row["metrics"]["gold_in_notes"]]
        both = [row for row in current if row["metrics"]["stale_in_notes"]]
        alone = [row for row in current if not row["metrics"]["stale_in_notes"]]
        n = len(evaluation.rows)
        cells = [f"{evaluation.rate('notes_chars'):.0f}", f"{len(current) / n:.0%}", f"{len(both) / n:.0%}"]
        cells += [
            f"{sum(r['r_cur'] for r in part) / len(part):.0%} of {len(part)}" if part else "-" for part in (alone, both)
        ]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _sampled(proof: Proof) -> list[str]:
    title = "The same validation episodes, sampled as in training (one rollout each)"
    return _beside(title, proof.sampled_base, [(one.name, one.sampled) for one in proof.runs])


def _real(proof: Proof) -> list[str]:
    title = "Real conversations (LongMemEval oracle rows that fit the model)"
    return _beside(title, proof.real_base, [(one.name, one.real) for one in proof.runs])


def _beside(title: str, base: Evaluation | None, runs: Sequence[tuple[str, Mapping[str, Evaluation]]]) -> list[str]:
    """Runs beside the base model; nothing where it was not evaluated."""
    if base is None:
        return []
    rows = [_row("base", base), *(_row(f"{name} {stage}", e) for name, stages in runs for stage, e in stages.items())]
    return [f"### {title}", "", *ROW_HEAD, *rows, ""]


def _training(proof: Proof) -> list[str]:
    lines = ["### Training", "", "| run | GRPO steps | minutes | reward, first 5 steps | last 5 | groups that varied |"]
    lines.append("|---|---|---|---|---|---|")
    for one in proof.runs:
        rewards = [row["reward"] for row in one.metrics if row["reward"] is not None]
        if rewards:
            first, last = rewards[:5], rewards[-5:]
            varied = sum(r["varied_groups"] for r in one.metrics) / sum(r["groups"] for r in one.metrics)
            lines.append(
                f"| {one.name} | {len(one.metrics)} | {one.minutes:.0f} | {sum(first) / len(first):.3f} "
                f"| {sum(last) / len(last):.3f} | {varied:.0%} |"
            )
    return [*lines, ""]


def plot(proof: Proof, file: Path) -> None:
    """Validation accuracy by GRPO step, and what became of the training rollouts: the mean over seeds with the range as
    a band. Rewards are not drawn: they mean something else under another lambda."""
    pyplot = load_pyplot("--out")
    common = drawn(proof)
    figure, (left, *others) = pyplot.subplots(1, 3, figsize=(14, 4), sharey=True)
    for weight, colour in zip(proof.weights, ("#4878a8", "#c0504d", "#777"), strict=False):
        curves = [curve(one, common) for one in proof.arm(weight, *ENDS)]
        _band(left, curves, colour, f"lambda {weight:g}")
        for axis, verdict in zip(others, TRAINING, strict=True):
            shares = [_shares(one, verdict) for one in proof.arm(weight)]
            _band(axis, [_smoothed(points) for points in shares if points], colour, f"lambda {weight:g}")
    for name, style in (("bounded", ":"), ("full", "--")):
        if name in proof.base and common:
            left.axhline(_accuracy(proof.base[name], common), color="#555", linestyle=style, label=f"base {name}")
    left.set(xlabel="GRPO step (0: warm start)", title=f"{len(common)} validation episodes: correct")
    left.set_ylim(bottom=0)
    left.yaxis.set_major_formatter("{x:.0%}")
    for axis, verdict in zip(others, TRAINING, strict=True):
        axis.set(xlabel="GRPO step", title=f"training rollouts: {verdict} (mean of 5 steps)")
    for axis in (left, *others):
        if axis.has_data():
            axis.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


TRAINING = ("correct", "stale")
"""Verdicts on training rollouts that are drawn."""


def _shares(one: Run, verdict: str) -> list[tuple[float, float]]:
    """(step, share of the scored rollouts with this verdict)."""
    counts = [(row["step"], row.get("verdicts") or {}) for row in one.metrics]
    return [(step, found.get(verdict, 0) / total) for step, found in counts if (total := sum(found.values()))]


def drawn(proof: Proof) -> set[str]:
    """The episodes that every point and line of the picture is over (checkpoints take fewer than the ends of a run):
    one warm start is one point, whatever lambda comes after it."""
    runs = [one for one in proof.runs if set(ENDS) <= set(one.evaluations)]
    evaluations = [e for one in runs for e in one.evaluations.values()]
    evaluations += [proof.base[name] for name in ("bounded", "full") if name in proof.base]
    return set.intersection(*(set(e.rows) for e in evaluations)) if evaluations else set()


def curve(one: Run, common: set[str]) -> list[tuple[float, float]]:
    """(step, accuracy) over these episodes."""
    steps = {"warm": 0.0, "trained": float(len(one.metrics))}
    stages = one.evaluations.items() if common else ()
    return sorted((steps.get(stage, _stage_order(stage)), _accuracy(found, common)) for stage, found in stages)


def _accuracy(evaluation: Evaluation, episodes: set[str]) -> float:
    return sum(evaluation.rows[i]["r_cur"] for i in episodes) / len(episodes)


def _smoothed(points: Sequence[tuple[float, float]], width: int = 5) -> list[tuple[float, float]]:
    return [
        (step, sum(v for _, v in points[max(0, i - width + 1) : i + 1]) / min(i + 1, width))
        for i, (step, _) in enumerate(points)
    ]


def _band(axis: Any, curves: Sequence[Sequence[tuple[float, float]]], colour: str, label: str) -> None:
    shared = [step for step in dict(curves[0]) if all(step in dict(curve) for curve in curves)] if curves else []
    if not shared:
        return
    columns = [[dict(curve)[step] for curve in curves] for step in shared]
    axis.plot(
        shared, [sum(c) / len(c) for c in columns], color=colour, marker=".", label=f"{label} (n = {len(curves)})"
    )
    axis.fill_between(shared, [min(c) for c in columns], [max(c) for c in columns], color=colour, alpha=0.2)
