"""Folders that are whole or absent, without torch: what a command needs before it knows that there is work."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

ADAPTER_FILES = ("adapter_model.safetensors", "adapter_config.json")
"""An adapter in peft's format."""


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a temporary folder, then put it in `folder`'s place."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        write(temporary)
        temporary.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
