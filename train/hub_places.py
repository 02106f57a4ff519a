"""Fresh virtual environments for the check, and programs run in them in empty folders.

`uv` makes them in seconds; it is fetched into a tool environment of the check's own where the machine has none, and pip
does its work where it cannot be had. No program sees a key, a home folder or a PYTHONPATH of the user's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rewards.errors import UserError
from train.hub_build import last_line

FREEZE = """
import importlib.metadata as m, json
print(json.dumps({(d.metadata["Name"] or "?").lower().replace("_", "-"): d.version for d in m.distributions()}))
"""

TIMEOUT = 900
"""Seconds that one program may take; the evaluators take half a minute on a busy machine."""


@dataclass(frozen=True, slots=True)
class Done:
    """A program that ended: its exit status and everything it said."""

    status: int
    said: str
    seconds: float

    @property
    def problem(self) -> str:
        """Empty when it succeeded, else its last line."""
        return "" if self.status == 0 else f"exit status {self.status}: {last_line(self.said)[:300]}"


@dataclass(frozen=True, slots=True)
class Place:
    """A virtual environment."""

    folder: Path
    uv: str | None

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def install(self, *args: str) -> Done:
        """Install with uv, or with the environment's own pip."""
        if self.uv:
            command = [self.uv, "pip", "install", "--python", self.python]
        else:
            command = [self.python, "-m", "pip", "install", "--disable-pip-version-check"]
        return run([*command, *args], self.folder, _outside())

    def frozen(self) -> dict[str, str]:
        """Name -> version of every distribution in it."""
        return json.loads(
            subprocess.run([self.python, "-c", FREEZE], capture_output=True, text=True, check=True).stdout
        )


def normal(name: str) -> str:
    """A distribution's name as FREEZE writes it."""
    return name.lower().replace("_", "-")


def pip_would(place: Place, wheels: Sequence[str], cwd: Path) -> Done:
    """What pip would install into `place`, as its JSON report on standard output; nothing is changed."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", place.python, "install"]
    return run([*command, "--quiet", "--dry-run", "--report", "-", *wheels], cwd, _outside())


def tools(folder: Path) -> tuple[str | None, Place | None]:
    """(uv, the environment in which `prime` is installed); None for what cannot be had."""
    uv = shutil.which("uv")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
    place = Place(folder, None)
    if uv is None and place.install("uv").status == 0:
        uv = place.program("uv")
    place = Place(folder, uv)
    return uv, place if place.install("prime", "build").status == 0 else None


def fresh(folder: Path, uv: str | None) -> Place:
    """A new, empty environment with this Python."""
    command = (
        [uv, "venv", "--python", sys.executable, str(folder)] if uv else [sys.executable, "-m", "venv", str(folder)]
    )
    done = run(command, folder.parent, _outside())
    if done.status:
        raise UserError(f"no virtual environment can be made at {folder}: {last_line(done.said)}")
    return Place(folder, uv)


def run(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Done:
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, text=True, timeout=TIMEOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except subprocess.TimeoutExpired:
        return Done(124, f"no end within {TIMEOUT} seconds", time.monotonic() - began)
    return Done(done.returncode, done.stdout, time.monotonic() - began)


def clean(home: Path) -> dict[str, str]:
    """The surroundings of a program under test: nothing of the user's but the path, and no key."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "SCRIPTED_KEY": "none",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2"),
        "COLUMNS": "200",
    }


def _outside() -> dict[str, str]:
    """The surroundings of installers: the user's own, who may name an index there."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
