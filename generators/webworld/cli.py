"""Write worlds as the files of the published layout, print one for reading, or check that guessing does not pay.

`python -m generators webworld`
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from generators.commands import Parser, answered
from generators.webworld.closedbook import CEILING, check, premise_from_words
from generators.webworld.config import PRESETS, SPLITS, WorldConfig, config_from
from generators.webworld.dataset import Bundle, bundle, write_dataset
from generators.webworld.fixed import DATASET_VERSION, fingerprints

EXAMPLE = """examples:
  python -m generators webworld write DIR --worlds 100 --preset easy
  python -m generators webworld write DIR --worlds 50 --split heldout
  python -m generators webworld show --seed 7
  python -m generators webworld check --worlds 200
  python -m generators webworld fingerprints

Exit status: 0 done, 1 guessing pays (check), 2 refused (one line says why), 130 interrupted."""


def parser() -> Parser:
    p = Parser("python -m generators webworld", (__doc__ or "").split("\n")[0], EXAMPLE)
    commands = p.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "fingerprints", help="print the version and sha256 that bank/fixed.json records", epilog=EXAMPLE
    )
    for name, about in (
        ("write", "write a data set folder"),
        ("show", "print one world for reading"),
        ("check", "guess every answer without looking; fails above 15 %%"),
    ):
        command = commands.add_parser(name, help=about, description=about, epilog=EXAMPLE)
        command.add_argument("--preset", default="standard", choices=tuple(PRESETS))
        command.add_argument(
            "--config", default="{}", help="settings over the preset as JSON: '{\"trajectories\": 12}'"
        )
        command.add_argument("--split", default="train", choices=tuple(SPLITS))
        command.add_argument("--seed", type=int, help="first seed (default: the first of the split)")
        if name != "show":
            command.add_argument("--worlds", type=int, default=100, help="how many, from consecutive seeds")
        if name == "write":
            command.add_argument("folder", type=Path)
    return p


def main(argv: list[str] | None = None) -> int:
    args = parser().parse_args(argv)
    return answered("webworld", lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    if args.command == "fingerprints":
        print(json.dumps({"version": DATASET_VERSION, **fingerprints()}, indent=1))
        return 0
    seeds = SPLITS[args.split]
    first = seeds.start if args.seed is None else args.seed
    count = getattr(args, "worlds", 1)
    if count < 1 or first not in seeds or first + count - 1 not in seeds:
        raise ValueError(f"--seed and --worlds must stay inside {args.split}: {seeds.start}..{seeds.stop - 1}")
    span, config = range(first, first + count), _settings(args)
    if args.command == "show":
        print(readable(bundle(first, config)))
        return 0
    started = time.process_time()
    if args.command == "write":
        counts = write_dataset(args.folder, span, config)
        made = ", ".join(f"{number} {name}" for name, number in counts.items())
        print(f"{args.folder}: {made} in {time.process_time() - started:.1f} s of CPU time")
        return 0
    return _check(span, config)


def _settings(args: argparse.Namespace) -> WorldConfig:
    try:
        over = json.loads(args.config)
    except json.JSONDecodeError as error:
        raise ValueError(f"--config is not JSON: {error}") from error
    if not isinstance(over, dict):
        raise ValueError(f"--config must be a JSON object, got {args.config}")
    return config_from(args.preset, over)


def _check(seeds: range, config: WorldConfig) -> int:
    rows = []
    for seed in seeds:
        made = bundle(seed, config)
        rows += zip(made.questions, made.evidence, strict=True)
    report = check(rows)
    print(f"{report.questions} questions that need no judge, of {len(seeds)} {config.preset} worlds")
    for name, share in report.strategies.items():
        print(f"  {100 * share:5.1f} %  {name}")
    print("the best guess of each template:")
    for template, (count, share, name) in report.templates.items():
        print(f"  {100 * share:5.1f} %  {template} ({count}): {name}")
    told, never = premise_from_words(rows)
    print(f"false premises: told from the words {100 * told:.1f} %, by always saying no {100 * never:.1f} %")
    passed = report.worst < CEILING
    verdict = "passed" if passed else "FAILED"
    print(f"{verdict}: {100 * report.worst:.1f} % with the best guess of each template, allowed {100 * CEILING:.0f} %")
    return 0 if passed else 1


def readable(made: Bundle) -> str:
    """A world's runs by their actions, and its questions with golds and evidence."""
    out = [f"{made.world.site} ({made.world.kind}, seed {made.world.seed})", ""]
    for record in made.trajectories:
        out.append(f"--- {record['id']} {record['outcome']}: {record['goal']}")
        for state in record["states"]:
            title = state["accessibility_tree"].split("\n")[0].split(", focused")[0]
            out += [f"    {state['action'] or 'start'} -> {title}", f"        {state['thought']}"]
    for row, hidden in zip(made.questions, made.evidence, strict=True):
        out += ["", f"=== {row['id']} {row['question_type']} ({hidden['template']})", row["question"]]
        out.append(f"gold: {row['answer']}   [{row['eval_function'].partition('|')[0]}]")
        for point in hidden["evidence"]:
            out.append(f"evidence: {point['trajectory_id']} state {point['state_index']}: {point['line']}")
        if "premise" in hidden:
            out.append(f"premise: {hidden['premise']}")
    return "\n".join(out)
