"""Every benchmark in one table: `python -m benchmarks [--only NAME ...] [--repeats 3] [--out FILE.md]`.

Each measure runs in a process of its own, `--repeats` times, our side and the peer's in the same process one after the
other. A figure is the median, with the lowest and the highest in brackets. Peers: for rollouts a MultiTurnEnv of the
same shape that does nothing; for memory numpy brute force and bm25s; for training TRL's GRPOTrainer (`pip install trl`;
without it that line is left out). Measure on a machine that does nothing else.

example: python -m benchmarks --only rollouts grader --repeats 5
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from benchmarks import measures
from rewards.commands import Parser

MEASURES: dict[str, Callable[[Path], measures.Found]] = {
    "rollouts": lambda data: measures.rollouts(),
    "grader": lambda data: measures.grader(),
    "timelines": lambda data: measures.timelines(),
    "worlds": lambda data: measures.worlds(),
    "memory-2k": lambda data: measures.memory(2_500, data),
    "memory-15k": lambda data: measures.memory(15_000, data),
    "memory-60k": lambda data: measures.memory(60_000, data),
    "training": lambda data: {},  # its two sides need a process each: see _training
}

EXAMPLE = """example:
  python -m benchmarks --repeats 3 --out table.md"""


def main(args: list[str]) -> int:
    parser = Parser("python -m benchmarks", __doc__ or "", EXAMPLE)
    parser.add_argument("--only", nargs="+", choices=MEASURES, help="these measures (default: all)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/workarena_trajectories"))
    parser.add_argument("--out", type=Path, help="write the table here too")
    parser.add_argument("--one", choices=MEASURES, help=argparse.SUPPRESS)
    options = parser.read(args)
    if options.one:
        print(json.dumps(MEASURES[options.one](options.data)))
        return 0
    lines = [
        f"Python {platform.python_version()}, verifiers {version('verifiers')}, numpy {version('numpy')}, "
        f"{options.repeats} repeats: median (lowest-highest).",
        "",
        "| figure | ours | peer | ours / peer |",
        "|---|---|---|---|",
    ]
    for name in options.only or MEASURES:
        if name.startswith("memory") and not options.data.is_dir():
            print(f"benchmarks: {name}: skipped: no folder {options.data}; name one with --data", file=sys.stderr)
            continue
        print(f"benchmarks: {name}", file=sys.stderr)
        found = _training(options.repeats) if name == "training" else _repeated(name, options.data, options.repeats)
        lines += _lines(found)
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    return 0


Repeats = dict[str, dict[str, list[float]]]


def _repeated(name: str, data: Path, repeats: int) -> Repeats:
    found: Repeats = {}
    for _ in range(repeats):
        command = [sys.executable, "-m", "benchmarks", "--one", name, "--data", str(data)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"benchmarks: {name} failed\n{done.stderr[-2000:]}")
        for figure, sides in json.loads(done.stdout.splitlines()[-1]).items():
            for side, value in sides.items():
                found.setdefault(figure, {}).setdefault(side, []).append(value)
    return found


def _training(repeats: int) -> Repeats:
    """Our engine beside TRL's trainer, each in a process of its own, in turns."""
    found: Repeats = {"training tokens/s": {}, "training peak MB": {}}
    sides = {"ours": "ours", "trl": "peer"} if find_spec("trl") else {"ours": "ours"}
    for _ in range(repeats):
        for side, column in sides.items():
            command = [sys.executable, "benchmarks/train_beside_trl.py", "--side", side, "--steps", "1"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"benchmarks: training failed\n{done.stderr[-2000:]}")
            row = json.loads(done.stdout.splitlines()[-1])
            found["training tokens/s"].setdefault(column, []).append(row["per_second"])
            found["training peak MB"].setdefault(column, []).append(row["peak_mb"])
    return found


def _lines(found: Repeats) -> list[str]:
    lines = []
    for figure, sides in found.items():
        ours = statistics.median(sides["ours"])
        peer = f"{ours / statistics.median(sides['peer']):.2f}" if "peer" in sides else ""
        lines.append(f"| {figure} | {_spread(sides['ours'])} | {_spread(sides.get('peer', []))} | {peer} |")
    return lines


def _spread(values: list[float]) -> str:
    if not values:
        return ""
    digits = 0 if min(values) >= 100 else 1
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f}-{max(values):,.{digits}f})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
