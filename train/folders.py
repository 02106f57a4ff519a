"""Folders that are whole or absent, without torch: what a command needs before it knows that there is work."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

ADAPTER_FILES = ("adapter_model.safetensors", "adapter_config.json")
"""An adapter in peft's format."""


def on_disk(place: Path) -> None:
    """Wait until a file's content, or a folder's list of names, has reached the disk: a machine may lose its power."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a temporary folder, then put it in `folder`'s place; it is on the disk when this returns."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        write(temporary)
        temporary.chmod(0o755)
        for file in temporary.rglob("*"):
            on_disk(file)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
        on_disk(folder.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
