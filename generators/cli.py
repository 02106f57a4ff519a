"""Print episodes for people, or stream them as JSON lines: `python -m generators.timelines`."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

from generators.commands import Parser, answered
from generators.config import TimelineConfig, config_from_dict
from generators.language import SPLITS
from generators.timelines import DATASET_VERSION, fingerprint, generate, training_set, validation_set


def readable(record: dict[str, Any], width: int = 110, shorten: int = 0) -> str:
    """One episode with its true history, gold, superseded values and evidence.

    Assistant turns longer than `shorten` characters are cut (0: never).
    """
    tags, history = record["tags"], record["history"]
    out = [f"{record['id']}   {', '.join(f'{k}={v}' for k, v in tags.items())}", ""]
    evidence = {tuple(pair) for pair in record["evidence"]}
    for i, session in enumerate(record["sessions"]):
        out.append(f"--- session {i}, {session['date']}")
        for j, turn in enumerate(session["turns"]):
            mark = "*" if (i, j) in evidence else " "
            content = turn["content"]
            if shorten and turn["role"] == "assistant" and len(content) > shorten:
                content = f"{content[:shorten].rsplit(' ', 1)[0]} ... ({len(content.split())} words)"
            out.append(
                textwrap.fill(
                    f"{turn['role']}: {content}", width, initial_indent=f" {mark} ", subsequent_indent="     "
                )
            )
    out += [
        "",
        f"question ({record['question_date']}): {record['question']}",
        f"asks:       {record['asks']}",
        f"gold:       {record['gold']}",
        f"superseded: {', '.join(record['stale']) or '-'}",
        f"evidence:   {', '.join(f'session {s} turn {t}' for s, t in record['evidence']) or '-'} (marked *)",
        f"answer:     {history['oracle_answer']}",
        "",
        "true history (- = never told at the time):",
    ]
    for e in history["events"]:
        where = "-" if e["session"] is None else f"session {e['session']} turn {e['turn']}"
        told = "" if e["named"] else " (value not said)"
        ask = ">" if e["asked_slot"] else " "
        value = f"{e['value']} ({e['delta']:+d})" if e["delta"] else e["value"]
        out.append(
            f" {ask} {e['date']}  {where:18} {e['kind']:12} {e['style']:12} {e['person']}, {e['attribute']}: "
            f"{value}{told}"
        )
    out += ["", "oracle notes:"]
    out += [f"  after session {i}: {note}" for i, note in enumerate(history["oracle_notes"])]
    return "\n".join(out)


PAGE = (
    ("control", 1),
    ("curriculum", 1),
    ("curriculum", 2),
    ("curriculum", 3),
    ("curriculum", 4),
    ("curriculum", 5),
    ("curriculum", 6),
    ("hard", 1),
    ("hard", 2),
    ("quick", 1),
)
"""(preset, seed) of the episodes on the page of ten."""


def page() -> str:
    """Ten episodes as a Markdown page; the last is from the validation banks."""
    out = [
        "# Ten generated timelines",
        "",
        "Made by `python -m generators.timelines --page > docs/timelines_ten.md`. Long assistant turns are cut "
        "here; `*` marks the evidence, `>` the asked fact.",
        "",
    ]
    for i, (name, seed) in enumerate(PAGE):
        split = "validation" if i == len(PAGE) - 1 else "train"
        record = generate(seed, name, split=split)
        out += [f"## {i + 1}. {name}: {record['asks']}", "", "```text", readable(record, shorten=160), "```", ""]
    return "\n".join(out)


EXAMPLE = """examples:
  python -m generators.timelines --preset curriculum --seed 7 --show
  python -m generators.timelines --preset hard --count 100 > hard.jsonl"""


def parser() -> Parser:
    p = Parser("python -m generators.timelines", "Print episodes for people, or stream them as JSON lines.", EXAMPLE)
    p.add_argument("--preset", default="curriculum", help="control, curriculum, hard, ... (default: %(default)s)")
    p.add_argument("--config", help="settings over the preset as JSON, such as '{\"sessions\": [4, 5]}'")
    p.add_argument("--split", default="train", choices=SPLITS)
    p.add_argument("--seed", type=int, default=0, help="first seed")
    p.add_argument("--count", type=int, default=1, help="how many episodes, from consecutive seeds")
    p.add_argument("--show", action="store_true", help="print for reading instead of JSON lines")
    p.add_argument("--set", choices=("training", "validation"), help="stream one of the fixed sets instead")
    p.add_argument(
        "--fingerprints",
        action="store_true",
        help="print the version and sha256 of both fixed sets (language/fixed_sets.json)",
    )
    p.add_argument("--page", action="store_true", help="print the Markdown page of ten episodes")
    return p


def main(argv: list[str] | None = None) -> int:
    args = parser().parse_args(argv)
    return answered("timelines", lambda: _run(args))


def _settings(args: argparse.Namespace) -> TimelineConfig:
    try:
        over = json.loads(args.config or "{}")
    except json.JSONDecodeError as error:
        raise ValueError(f"--config is not JSON: {error}") from error
    if not isinstance(over, dict):
        raise ValueError(f"--config must be a JSON object, got {args.config}")
    return config_from_dict({"preset": args.preset, **over})


def _run(args: argparse.Namespace) -> int:
    config = _settings(args)
    if args.count < 0:
        raise ValueError(f"--count must not be negative, got {args.count}")
    if args.set and args.config:
        raise ValueError("--set streams a fixed set, which --config cannot change")
    if args.fingerprints:
        made = {
            "version": DATASET_VERSION,
            "training": fingerprint(training_set()),
            "validation": fingerprint(validation_set()),
        }
        print(json.dumps(made, indent=1))
        return 0
    if args.page:
        print(page(), end="")
        return 0
    if args.set:
        records = (training_set if args.set == "training" else validation_set)(args.preset)
    else:
        records = (generate(seed, config, split=args.split) for seed in range(args.seed, args.seed + args.count))
    for record in records:
        print(readable(record) + "\n" if args.show else json.dumps(record, ensure_ascii=False))
    return 0
