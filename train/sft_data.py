"""`python -m train.sft_data`: the warm start's examples as a file, for an `sft` stage with prime-rl or another trainer.

One line a turn: {"messages": [system, user, assistant]}, the environment's own prompt and the generator's oracle notes
or answer, which alone are to be learnt. The local engine makes the same examples on the fly (train/supersede.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rewards.commands import Parser, answered
from rewards.options import build
from supersede_env.data import DataConfig, generated_records
from supersede_env.protocol import ProtocolConfig

EXAMPLE = """example:
  python -m train.sft_data --out data/supersede_sft --n 500
  sft @ configs/supersede_sft.toml          # prime-rl's command, see docs/train_prime_rl.md"""


def episodes(data: DataConfig, protocol: ProtocolConfig) -> Iterator[list[dict[str, Any]]]:
    """The lines of the file, episode by episode."""
    from train.supersede import oracle_examples

    for record in generated_records(data):
        yield [
            {"messages": [*example.prompt, {"role": "assistant", "content": example.reply}]}
            for example in oracle_examples(record, protocol)
        ]


def main(args: Sequence[str] | None = None) -> int:
    """Entry of `python -m train.sft_data`. 0 done, 2 refused."""
    top = Parser(
        "python -m train.sft_data",
        description="Oracle notes and answers as supervised examples.",
        epilog=EXAMPLE,
    )
    add = top.add_argument
    add("--out", type=Path, required=True, help="folder; train.jsonl is written into it")
    add("--n", type=int, default=500, help="episodes, each with sessions + 1 examples (default 500)")
    add("--preset", help="generator preset; without it the fixed training set")
    add("--first-seed", type=int, default=0, help="first generator seed of a preset")
    add("--budget", type=int, default=300, help="B, characters of the notes (default 300)")
    add("--wording", default="standard", help="prompt texts: standard, or plain for small models")
    add("--no-dates", action="store_true", help="show no dates, as the paper's code does")
    options = top.read(args)
    return answered("sft_data", lambda: _run(options), "start it again")


def _run(options: argparse.Namespace) -> int:
    data = {"data": "train", "preset": options.preset, "num_episodes": options.n, "first_seed": options.first_seed}
    protocol = {"budget": options.budget, "wording": options.wording, "show_dates": not options.no_dates}
    made = list(episodes(build(DataConfig, data), build(ProtocolConfig, protocol)))
    lines = [json.dumps(row, ensure_ascii=False) for episode in made for row in episode]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "train.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{options.out / 'train.jsonl'}: {len(lines)} examples of {len(made)} episodes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
