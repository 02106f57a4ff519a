"""Assemble, build and check the two Hub packages.

python -m train.hub build --out dist/hub            # sources, wheels and source archives of both
python -m train.hub check                           # all that can be proved without publishing; some minutes
python -m train.hub check --quick --only lme-v2-env # structure and one installation; under a minute
python -m train.hub tables --check                  # are the generated parts of the cards current?
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from rewards.commands import Parser, answered, usage
from rewards.errors import UserError, refuse_unknown
from train import hub_tables
from train.hub_build import build
from train.hub_sources import assemble
from train.hub_spec import PACKAGES, Package, chosen, refuse_beside

EXAMPLES = (__doc__ or "").partition("\n\n")[2]
STATUS = "Exit status: 0 done, 1 a check failed or a card is out of date, 2 refused (one line), 130 interrupted."
COMMANDS = ("build", "check", "tables")


def main(args: Sequence[str]) -> int:
    if not args or args[0] in ("-h", "--help"):
        return usage(f"usage: python -m train.hub {{{','.join(COMMANDS)}}} [options]\n\n{__doc__}\n{STATUS}", args)
    # what a task set leaves out belongs to an evaluation, not to the making of a card
    logging.getLogger("lme_v2_env").setLevel(logging.ERROR)
    return answered("train.hub", lambda: _command(args[0], args[1:]))


def _command(name: str, args: Sequence[str]) -> int:
    refuse_unknown([name], COMMANDS, "command")
    parser = Parser(f"python -m train.hub {name}", "", f"examples:\n{EXAMPLES}\n{STATUS}")
    names = ", ".join(package.name for package in PACKAGES)
    parser.add_argument("--only", action="append", metavar="PACKAGE", help=f"one of {names}; may be given twice")
    if name == "build":
        parser.add_argument("--out", type=Path, required=True, help="folder for <package>/ (sources) and dist/")
        parser.add_argument("--no-rollouts", action="store_true", help="leave out the saved rollouts of the reports")
    elif name == "check":
        parser.add_argument("--quick", action="store_true", help="structure and one installation, no evaluators")
        parser.add_argument(
            "--verifiers", action="append", metavar="V", help="install on this version only; may be given twice"
        )
        parser.add_argument("--keep", type=Path, metavar="DIR", help="work in this new folder and keep it")
        parser.add_argument(
            "--like",
            type=Path,
            metavar="VENV",
            help="also prove that installing beside what VENV has (prime-rl's) moves no version; VENV is only read",
        )
        parser.add_argument(
            "--golds",
            type=_count,
            default=25,
            metavar="N",
            help="validate so many default tasks a package and version, or `all` (25)",
        )
    else:
        parser.add_argument("--check", action="store_true", help="change nothing; status 1 when a part is out of date")
    options = parser.read(args)
    packages = chosen(options.only)
    return {"build": _build, "check": _check, "tables": _tables}[name](packages, options)


def _count(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is neither a number from 1 nor `all`")
    return int(text)


def _build(packages: tuple[Package, ...], options: argparse.Namespace) -> int:
    for package in packages:
        problem = hub_tables.stale(package)
        if problem:
            raise UserError(f"{package.module}/README.md: {problem}: run `python -m train.hub tables` first")
        built = build(assemble(package, options.out), options.out / "dist")
        print(f"{package.name} {package.version}: {built.folder}  {built.wheel.name}  {built.sdist.name}", flush=True)
        if not options.no_rollouts:
            _save(package, built.folder)
    return 0


def _save(package: Package, folder: Path) -> None:
    from train.hub_saved import can_save, played_by, save

    if not can_save():
        print("saved rollouts: left out, verifiers 0.3 has the evaluator that writes them")
        return
    for policy in played_by(package):
        print(
            f"{package.name}: rollouts of '{policy}': {save(package, folder, policy).relative_to(folder)}", flush=True
        )


def _check(packages: tuple[Package, ...], options: argparse.Namespace) -> int:
    from train.hub_check import VERSIONS, findings, refuse_no_environment

    refuse_beside()
    refuse_unknown(options.verifiers or (), VERSIONS, "verifiers")
    versions = tuple(options.verifiers or VERSIONS)
    if options.like is not None:
        refuse_no_environment(options.like)
    if options.keep is not None and options.keep.exists():
        raise UserError(f"--keep {options.keep} is there already: name a new folder")
    began, found = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="hub-") if options.keep is None else nullcontext(options.keep) as folder:
        scratch = Path(folder).resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        for finding in findings(packages, scratch, options.quick, options.like, options.golds, versions):
            found.append(finding)
            verdict = "FAILED" if finding.problem else "ok"
            print(
                f"[{time.monotonic() - began:5.0f} s] {verdict:<6} {finding.package}: {finding.place}: {finding.check}",
                flush=True,
            )
            if finding.problem:
                print(f"           {finding.problem}", flush=True)
    failed = [finding for finding in found if finding.problem]
    print(f"\n{_summary(found)}\n{len(found)} checks, {len(failed)} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


def _summary(found: list) -> str:
    """A row a place, a column a package: checks that held of checks made."""
    places = list(dict.fromkeys(finding.place for finding in found))
    names = list(dict.fromkeys(finding.package for finding in found))
    width = max(map(len, places)) + 2
    lines = [f"{'':<{width}}" + "  ".join(names)]
    for place in places:
        cells = []
        for name in names:
            own = [finding for finding in found if (finding.place, finding.package) == (place, name)]
            held = sum(not finding.problem for finding in own)
            cells.append(f"{f'{held}/{len(own)}' if own else '-':<{len(name)}}")
        lines.append(f"{place:<{width}}" + "  ".join(cells).rstrip())
    return "\n".join(lines)


def _tables(packages: tuple[Package, ...], options: argparse.Namespace) -> int:
    status = 0
    for package in packages:
        problem = hub_tables.stale(package)
        if problem and options.check:
            print(f"{package.module}/README.md: {problem}")
            status = 1
        elif problem:
            hub_tables.rewrite(package)
            print(f"{package.module}/README.md: rewritten")
        else:
            print(f"{package.module}/README.md: current")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
