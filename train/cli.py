"""`prime-rl train --env ...`: pick an engine, hand it the configuration."""

from __future__ import annotations

import argparse
import difflib
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from rewards.commands import Parser, answered, leave
from rewards.errors import UserError
from train.hub_spec import refuse_beside

EXAMPLE = """examples:
  prime-rl train --env supersede                                  # the small model on this machine, or prime-rl
  prime-rl train --env supersede --engine local --steps 20 --warm-start.steps 40 --output runs/mine
  prime-rl train --env supersede --engine local --output runs/mine --steps 20 --warm-start.steps 40 --resume
  prime-rl train --env supersede --engine prime-rl --config my_rl.toml --max_steps 200 --dry-run

Any key of the configuration can be set as --a.b value; --dry-run prints the result and stops.
Without --config: configs/{supersede,lme_v2}_local.toml (local), configs/{supersede,lme_v2}_rl.toml (prime-rl).
Exit status: 0 done, 2 refused, 130 interrupted (the run can be resumed)."""


OPTIONS = ("--engine", "--config", "--dry-run", "--prime-rl")
"""Those that a misspelling would turn into a key of the configuration."""


def parser() -> Parser:
    top = Parser("prime-rl", "Train language-model agents that keep their memory current.", EXAMPLE)
    commands = top.add_subparsers(dest="command", required=True, metavar="train")
    train = commands.add_parser(
        "train",
        help="train on an environment",
        description="Train on an environment with prime-rl, or with the local engine on this machine.",
        epilog=EXAMPLE,
        strict=False,  # what is no option of this parser is a key of the configuration
    )
    add = train.add_argument
    add("--env", required=True, choices=("supersede", "lme-v2"))
    add(
        "--engine",
        choices=("auto", "prime-rl", "local"),
        default="auto",
        help="auto (default): prime-rl where it is installed beside an NVIDIA GPU, else local",
    )
    add("--config", type=Path, help="TOML file instead of the one in configs/")
    add("--dry-run", action="store_true", help="print the resolved configuration and stop")
    add("--prime-rl", type=Path, metavar="DIR", help="prime-rl's checkout or virtual environment, if not this one")
    return top


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of `prime-rl ARGS`."""
    options, overrides = parser().parse_known_args(args)
    return answered("prime-rl", lambda: _train(options, overrides))


def _train(options: argparse.Namespace, overrides: list[str]) -> int:
    refuse_beside()
    for word in overrides:
        _refuse_misspelt(word.partition("=")[0])
    if options.config is not None and not options.config.is_file():
        raise UserError(f"--config {options.config}: no such file")
    from train import prime

    engine = options.engine
    if engine == "auto":
        usable = shutil.which("nvidia-smi") and prime.available(options.prime_rl)
        engine = "prime-rl" if usable else "local"
    if engine == "prime-rl":
        return prime.run(
            env=options.env,
            config=options.config,
            overrides=overrides,
            dry_run=options.dry_run,
            prime_rl=options.prime_rl,
        )
    from train.local_config import load_config

    config = load_config(options.config, overrides, options.env)
    if options.dry_run:
        print(prime.to_toml(asdict(config)), end="")
        return 0
    try:
        from train.local import run
    except ModuleNotFoundError as error:
        raise UserError(f"the local engine needs {error.name}: pip install 'supersede-envs[local]'") from error
    return run(config)


def _refuse_misspelt(word: str) -> None:
    """An option of the parser with a slip in it; the configuration's own keys are checked where they are read."""
    near = difflib.get_close_matches(word, OPTIONS, n=1, cutoff=0.87)
    if near:
        raise UserError(f"unknown option '{word}'; did you mean '{near[0]}'?")


def entry() -> NoReturn:
    """The console script `prime-rl`."""
    leave(main)


if __name__ == "__main__":
    entry()
