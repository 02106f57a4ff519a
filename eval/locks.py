"""One writer a run folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rewards.errors import UserError


@contextmanager
def only_writer(folder: Path) -> Generator[int]:
    """Hold the folder's lock; yields its file descriptor, to be inherited by a child that writes on our behalf.

    The kernel drops the lock when the last holder dies, so a killed run never leaves one behind.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder} is being written by another process: wait for it, or give another --out"
            ) from None
        yield descriptor
    finally:
        os.close(descriptor)
