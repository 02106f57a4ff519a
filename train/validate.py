"""The validation curve of a local run: its base model, warm start and checkpoints on the same validation tasks.

    python -m train.validate RUN [--n 100] [--steps 8 16 24] [--temperature 1.0] [--plot curve.png]

Every checkpoint plays the same tasks, so that the points are paired: greedily, or with --temperature sampled, which is
what training improves. Rows go to RUN/validation.jsonl (validation-t1.jsonl and so on when sampled) as each checkpoint
is done; started again, only what is missing is played. Choose nothing by this curve that you will report on the same
tasks.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewards.commands import Parser, answered, leave
from rewards.errors import UserError
from train.checkpoint import RunFolder
from train.local_config import load_config
from train.overrides import load_toml
from train.policy import LocalPolicy
from train.rollouts import play
from train.tasks import OVER_WINDOW, Task, load_tasks

LOG = "validation.jsonl"


@dataclass(frozen=True, slots=True)
class Point:
    """A model of the run: `label`, GRPO steps done (-1: the base model), and its adapter."""

    label: str
    step: int
    adapter: Path | None


EXAMPLE = """example:
  python -m train.validate runs/mine --n 100 --steps 8 16 24 --plot curve.png"""


def main(args: list[str]) -> int:
    """Exit status: 0 done, 2 refused with one line, 130 interrupted (started again, it goes on)."""
    parser = Parser("python -m train.validate", __doc__ or "", EXAMPLE)
    parser.add_argument("run", type=Path, help="folder of a run of the local engine")
    parser.add_argument("--n", type=int, default=100, help="tasks (default 100)")
    parser.add_argument("--steps", type=int, nargs="+", help="these GRPO steps, beside base and warm (default: all)")
    parser.add_argument("--temperature", type=float, default=0.0, help="of sampling (default 0: greedy)")
    parser.add_argument("--plot", type=Path, help="draw the curve")
    options = parser.read(args)
    return answered("validate", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    if options.n < 1 or not 0 <= options.temperature < 100:
        raise UserError(f"--n {options.n} --temperature {options.temperature:g}: give tasks and a temperature from 0")
    rows = validate(options.run, options.n, options.steps, options.temperature)
    print(table(rows, len({row["id"] for row in rows}), options.temperature))
    if options.plot:
        draw(rows, options.plot)
    return 0


def log_name(temperature: float) -> str:
    """Where the rows are kept: a file a temperature."""
    return f"validation-t{temperature:g}.jsonl" if temperature else LOG


def validate(run: Path, count: int, steps: list[int] | None = None, temperature: float = 0.0) -> list[dict[str, Any]]:
    """One row a checkpoint and task, of all that were asked for. Raises `UserError`."""
    file = run / "config.toml"
    if not file.is_file():
        raise UserError(f"{run} has no config.toml: name the folder of a run of the local engine")
    config = load_config(file, env=load_toml(file).get("env", "supersede"))
    folder = RunFolder(run)
    tasks, log = list(load_tasks(config).validation(count)), log_name(temperature)
    try:
        done = {(row["label"], row["id"]): row for row in folder.rows(log)}
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{run / log} is damaged: delete it, and its points are played again") from error
    wanted = _points(folder, steps)
    for point in wanted:
        if all((point.label, task.id) in done for task in tasks):
            continue
        began = time.monotonic()
        policy = LocalPolicy.load(config.model, point.adapter, device=config.device, dtype=config.dtype)
        rows = _played(policy, tasks, point, temperature)
        _refuse_unscored(rows, point)
        folder.append(log, rows)
        done |= {(row["label"], row["id"]): row for row in rows}
        print(f"validate: {point.label}: {len(rows)} tasks, {time.monotonic() - began:.0f} s", file=sys.stderr)
    return [done[point.label, task.id] for point in wanted for task in tasks]


def _points(folder: RunFolder, steps: list[int] | None) -> list[Point]:
    points = [Point("base", -1, None)]
    for checkpoint in folder.checkpoints():
        name, position = checkpoint.folder.name, checkpoint.position
        if name == "warm":
            points.append(Point("warm", 0, checkpoint.folder))
        elif position.phase == "grpo" and position.step and (steps is None or position.step in steps):
            points.append(Point(f"step {position.step}", position.step, checkpoint.folder))
    if missing := set(steps or ()) - {point.step for point in points}:
        raise UserError(f"--steps {min(missing)}: {folder.root} has no checkpoint of that step")
    return points


def _played(policy: LocalPolicy, tasks: list[Task], point: Point, temperature: float) -> list[dict[str, Any]]:
    played = play(policy, [task.start() for task in tasks], temperature=temperature, seed="validation")
    return [
        {"label": point.label, "step": point.step, "id": task.id, "verdict": one.result.verdict}
        | {"reward": one.result.reward, "counts": one.result.counts}
        | ({"unscored_reason": one.result.record["unscored_reason"]} if one.result.verdict is None else {})
        for task, one in zip(tasks, played, strict=True)
    ]


def _refuse_unscored(rows: list[dict[str, Any]], point: Point) -> None:
    """Before they are kept: what a reader did not answer is played again, what is too long is not."""
    reasons = [row["unscored_reason"] for row in rows if row["verdict"] is None]
    failed = [reason for reason in reasons if reason != OVER_WINDOW]
    if failed or len(reasons) == len(rows):
        raise UserError(
            f"{point.label}: {len(failed) or len(rows)} of {len(rows)} tasks could not be scored "
            f"({(failed or reasons)[0]}); nothing of this point is kept: mend that, and the same command goes on"
        )


def table(rows: list[dict[str, Any]], count: int, temperature: float = 0.0) -> str:
    """The curve in numbers: each point, and its paired difference to the warm start (or to the base without one)."""
    from eval.stats import mcnemar_exact, wilson

    labels = list(dict.fromkeys(row["label"] for row in rows))
    correct = {
        label: {row["id"]: row["verdict"] == "correct" for row in rows if row["label"] == label and row["verdict"]}
        for label in labels
    }
    reference = "warm" if "warm" in labels else labels[0]
    lines = [
        f"{count} validation tasks, " + (f"sampled at temperature {temperature:g}" if temperature else "greedy"),
        "",
        f"| model | n | correct [95 %] | reward | over {reference}, points | exact McNemar p |",
        "|---|---|---|---|---|---|",
    ]
    for label in labels:
        found = correct[label]
        interval = wilson(sum(found.values()), len(found))
        rewards = [row["reward"] for row in rows if row["label"] == label and row["reward"] is not None]
        shared = [key for key in found if key in correct[reference]]
        gained = sum(found[key] and not correct[reference][key] for key in shared)
        lost = sum(correct[reference][key] and not found[key] for key in shared)
        paired = f"{100 * (gained - lost) / len(shared):+.1f} | {mcnemar_exact(gained, lost):.2g}"
        lines.append(
            f"| {label} | {len(found)} | {100 * sum(found.values()) / len(found):.1f} % "
            f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}] | {sum(rewards) / len(rewards):.3f} | "
            f"{paired if label != reference else ' | '} |"
        )
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Share of correct answers against GRPO steps, with 95 % Wilson bands."""
    from eval.pictures import load_pyplot
    from eval.stats import wilson

    plot = load_pyplot("--plot")
    points = []
    for step in sorted({row["step"] for row in rows if row["step"] >= 0}):
        scored = [row["verdict"] == "correct" for row in rows if row["step"] == step and row["verdict"]]
        interval = wilson(sum(scored), len(scored))
        points.append((step, sum(scored) / len(scored), interval.low, interval.high))
    base = [row["verdict"] == "correct" for row in rows if row["step"] < 0 and row["verdict"]]
    figure, axes = plot.subplots(figsize=(6, 3.5))
    steps = [point[0] for point in points]
    axes.plot(steps, [point[1] for point in points], marker="o", label="warm start, then GRPO")
    axes.fill_between(steps, [point[2] for point in points], [point[3] for point in points], alpha=0.2)
    axes.axhline(sum(base) / len(base), color="grey", linestyle="--", label="base")
    axes.set(xlabel="GRPO steps", ylabel=f"correct, {len(base)} validation tasks", ylim=(0, 1))
    axes.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    leave(lambda: main(sys.argv[1:]))
