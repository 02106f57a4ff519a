"""Build wheel and source archive of an assembled package, with hatchling in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rewards.errors import UserError
from train.hub_spec import BACKEND

EPOCH = "1767225600"
"""Time stamp inside the archives (2026-01-01): the same sources make the same bytes."""

_BUILD = (
    "import sys; from hatchling import build as b; print(b.build_sdist(sys.argv[1])); print(b.build_wheel(sys.argv[1]))"
)


@dataclass(frozen=True, slots=True)
class Built:
    """What `build` made: the source folder, the source archive and the wheel."""

    folder: Path
    sdist: Path
    wheel: Path


def build(folder: Path, dist: Path) -> Built:
    """Build both archives of `folder` into `dist`. Raises `UserError` with the backend's last words."""
    dist.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        path = "" if importlib.util.find_spec("hatchling") else _backend(Path(scratch))
        done = subprocess.run(
            [sys.executable, "-c", _BUILD, str(dist.resolve())],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "SOURCE_DATE_EPOCH": EPOCH},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise UserError(f"{folder.name} cannot be built: {last_line(done.stderr)}")
    sdist, wheel = (dist / name for name in done.stdout.split()[-2:])
    return Built(folder, sdist, wheel)


def last_line(text: str) -> str:
    """The last line that says something: of a traceback the error itself."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _backend(folder: Path) -> str:
    """Install the build backend into a throw-away folder."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), BACKEND]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{BACKEND} cannot be installed (it builds the wheels): {last_line(done.stderr)}")
    return str(folder)
