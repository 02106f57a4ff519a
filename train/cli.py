"""`prime-rl train --env ...`: pick an engine, hand it the configuration."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

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


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="prime-rl",
        description="Train language-model agents that keep their memory current.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="train")
    train = commands.add_parser(
        "train",
        help="train on an environment",
        description="Train on an environment with prime-rl, or with the local engine on this machine.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
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
    """Entry point of the console script `prime-rl`."""
    options, overrides = parser().parse_known_args(args)
    try:
        refuse_beside()
        if options.config is not None and not options.config.is_file():
            raise UserError(f"--config {options.config}: no such file")
        return _train(options, overrides)
    except UserError as error:
        print(f"prime-rl: {error}", file=sys.stderr)
        return 2


def _train(options: argparse.Namespace, overrides: list[str]) -> int:
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


if __name__ == "__main__":
    sys.exit(main())
