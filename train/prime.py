"""GRPO with prime-rl: find it, compose its TOML, have its own classes check it, start `rl @ file`.

prime-rl is installed from its repository into an environment of its own (docs/train_prime_rl.md); `--prime-rl DIR`
names its checkout or virtual environment when it is not the one that runs this. This package must be in there too,
since reading the TOML imports the environment that it names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from rewards.errors import UserError, refuse_unknown
from train.overrides import apply, load_toml, parse

ENVIRONMENTS = {"supersede": ("supersede_env", "supersede_rl.toml"), "lme-v2": ("lme_v2_env", "lme_v2_rl.toml")}
"""--env: the package that prime-rl imports, and the configuration in configs/."""

SOURCE = Path(__file__).resolve().parents[1]
"""The checkout that this runs from, or site-packages."""

EXTRA_REQUIREMENTS = ("rapidfuzz",)
"""Imported by this package and not in prime-rl's environment (its uv.lock at 559b447). Has no requirements itself."""

UNREADABLE_TRACES = (0, 4)
"""From this version of verifiers on, traces have a form that prime-rl (559b447) cannot turn into samples."""


@dataclass(frozen=True, slots=True)
class Installation:
    """A Python environment that holds prime-rl."""

    python: Path
    rl: Path


def available(prime_rl: str | Path | None = None) -> bool:
    """Is prime-rl installed here, or in `prime_rl` (a checkout or an environment)? Cheap: imports nothing."""
    return find(prime_rl) is not None


def find(prime_rl: str | Path | None = None) -> Installation | None:
    """The environment in `prime_rl`, or the running one when it has `rl`. Raises `UserError` for a wrong folder."""
    if prime_rl is None:
        here = Installation(Path(sys.executable), Path(sys.executable).parent / "rl")
        return here if here.rl.is_file() and importlib.util.find_spec("prime_rl") else None
    for folder in (Path(prime_rl) / ".venv" / "bin", Path(prime_rl) / "bin"):
        found = Installation(folder.absolute() / "python", folder.absolute() / "rl")
        if found.python.exists() and found.rl.is_file():
            return found
    raise UserError(f"{prime_rl}: no prime-rl there (neither .venv/bin/rl nor bin/rl); see docs/train_prime_rl.md")


def compose(
    env: str = "supersede", config: Path | None = None, overrides: Sequence[str] = (), *, strict: bool = True
) -> dict[str, Any]:
    """The configuration to run: `config`, or the one of configs/ for `env`, with `--key value` overrides.

    With `strict`, keys that the file does not hold are refused with the nearest name; without it they are left to
    prime-rl's classes. Raises `UserError`.
    """
    refuse_unknown([env], ENVIRONMENTS, "env")
    base = load_toml(config if config is not None else files("configs") / ENVIRONMENTS[env][1])
    return apply(base, parse(overrides), strict=strict)


def to_toml(config: dict[str, Any]) -> str:
    """`config` as TOML; prime-rl reads the text "None" as no value."""
    import tomli_w

    return tomli_w.dumps(_without_none(config))


def _without_none(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_none(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_without_none(value) for value in node]
    return "None" if node is None else node


def run(
    *,
    env: str = "supersede",
    config: Path | None = None,
    overrides: Sequence[str] = (),
    dry_run: bool = False,
    prime_rl: str | Path | None = None,
) -> int:
    """Train with prime-rl. Does not return when it starts; 2 with one line on standard error when it cannot.

    `dry_run` prints the composed TOML, checked by prime-rl's classes where they are found.
    """
    try:
        place = find(prime_rl)
        composed = compose(env, config, overrides, strict=place is None)
        text = to_toml(composed)
        if place is None and not dry_run:
            raise UserError(
                "not installed in this environment: install it (docs/train_prime_rl.md) and name its "
                "folder with --prime-rl DIR, or use --engine local"
            )
        if place is None:
            _note("not found here: the keys below are checked against the configuration file only")
        else:
            problem = _problem(check(place, ENVIRONMENTS[env][0], text), place)
            if problem is not None:
                raise UserError(problem)
    except UserError as error:
        _note(str(error))
        return 2
    if place is None or dry_run:
        print(text, end="")
        return 0
    return _launch(place, composed, text)


def check(place: Installation, package: str, text: str) -> dict[str, Any]:
    """The report of train/prime_check.py, run by prime-rl's Python on the composed TOML."""
    # -P: this folder must not become importable there, its module names are common ones.
    command = [str(place.python), "-P", str(Path(__file__).with_name("prime_check.py")), package]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no output"])[-1]
        raise UserError(f"{place.python} could not check the configuration: {last}") from None


def _problem(report: dict[str, Any], place: Installation) -> str | None:
    """The first thing that would stop a run, as one line."""
    if report["prime_rl"] is not None:
        return f"{place.python} cannot import it: {report['prime_rl']}"
    if report["environment"] is not None:
        return f"this package is not in prime-rl's environment ({report['environment']}); put it there with: " + (
            install_command(place.python, pip=report["pip"])
        )
    version = tuple(int(part) for part in re.findall(r"\d+", report["verifiers"])[:2])
    if version >= UNREADABLE_TRACES:
        return (
            f"prime-rl's environment has verifiers {report['verifiers']}, whose traces prime-rl cannot train on; "
            "restore its own pin with `uv sync` there and install this package with --no-deps"
        )
    if report["errors"]:
        first, more = report["errors"][0], len(report["errors"]) - 1
        hint = f"; did you mean '{first['near']}'?" if first["near"] else ""
        also = f" (and {more} more)" if more else ""
        return f"its classes refuse the configuration: {first['key'] or 'config'}: {first['problem']}{hint}{also}"
    return None


def install_command(python: Path, *, pip: bool) -> str:
    """The command that puts this package into prime-rl's environment and moves nothing else there.

    `--no-deps`: a resolver would replace the verifiers that prime-rl pins.
    """
    source = str(SOURCE) if (SOURCE / "pyproject.toml").is_file() else "PATH_TO_THIS_REPOSITORY"
    head = [str(python), "-m", "pip", "install"] if pip else ["uv", "pip", "install", "--python", str(python)]
    return shlex.join([*head, "--no-deps", source, *EXTRA_REQUIREMENTS])


def _launch(place: Installation, composed: dict[str, Any], text: str) -> int:
    """Write the TOML beside the run's folder and become `rl @ file`."""
    # Not inside the run's folder: prime-rl refuses to start in one that is not empty.
    name = composed.get("run", {}).get("name") or "prime-rl"
    file = Path(composed.get("output_dir", "outputs")) / f"{name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    command = [str(place.rl), "@", str(file)]
    _note(f"{shlex.join(command)}")
    # `rl` starts its parts (inference, orchestrator, torchrun...) by name.
    path = os.pathsep.join([str(place.rl.parent), os.environ.get("PATH", "")])
    sys.stderr.flush()
    os.execve(place.rl, command, {**os.environ, "PATH": path, "VIRTUAL_ENV": str(place.rl.parent.parent)})


def _note(line: str) -> None:
    print(f"prime-rl: {' '.join(line.split())}", file=sys.stderr)
