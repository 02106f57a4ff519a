"""What was computed for a trajectory, kept on disk: nothing is embedded or summarised twice.

A record is keyed by the trajectory's fingerprint and the settings that made it, so questions, tiers and runs share it.
Records are written beside their place and linked into it: a killed writer leaves no half record, and of two writers
the first wins and the second uses what is there.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rewards.errors import UserError

Arrays = dict[str, np.ndarray]


def signature(settings: Mapping[str, Any]) -> str:
    """16 hex digits that stand for the settings, whatever their order."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Store:
    """Records of bytes by (fingerprint, kind, settings). Without a folder they are kept in memory."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._kept: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def get(self, fingerprint: str, kind: str, settings: Mapping[str, Any]) -> bytes | None:
        """The record, or None when nobody has made it yet."""
        name = self._name(fingerprint, kind, settings)
        if self.folder is None:
            return self._kept.get(name)
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, fingerprint: str, kind: str, settings: Mapping[str, Any], data: bytes) -> bytes:
        """Keep a record unless there is one; returns the one that is kept."""
        name = self._name(fingerprint, kind, settings)
        if self.folder is None:
            with self._lock:
                return self._kept.setdefault(name, data)
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            with temporary.open("wb") as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:  # a full disk, most often
            temporary.unlink(missing_ok=True)
            raise not_written(target, error) from error
        try:
            os.link(temporary, target)  # unlike a rename, a link never replaces what another writer finished
        except FileExistsError:
            data = target.read_bytes()
        finally:
            temporary.unlink()
        self._describe(settings)
        return data

    def get_or_make(self, fingerprint: str, kind: str, settings: Mapping[str, Any], make: Callable[[], bytes]) -> bytes:
        """The record, made first when nobody has."""
        kept = self.get(fingerprint, kind, settings)
        return kept if kept is not None else self.put(fingerprint, kind, settings, make())

    def _describe(self, settings: Mapping[str, Any]) -> None:
        """Beside the records, what each signature stands for: for people, never read."""
        assert self.folder is not None
        note = self.folder / "settings" / f"{signature(settings)}.json"
        if not note.is_file():
            note.parent.mkdir(parents=True, exist_ok=True)
            temporary = note.with_name(f".{note.name}.{os.getpid()}.{threading.get_ident()}")
            temporary.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            os.replace(temporary, note)

    @staticmethod
    def _name(fingerprint: str, kind: str, settings: Mapping[str, Any]) -> str:
        return f"{fingerprint[:2]}/{fingerprint[:32]}/{kind}-{signature(settings)}"


def not_written(place: Path, error: OSError) -> UserError:
    """What to tell when something of a memory cannot be written."""
    return UserError(f"{place} cannot be written: {error.strerror or error}; mend that, and the same command resumes")


def pack(arrays: Arrays) -> bytes:
    """Arrays as one record."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # ty: ignore[invalid-argument-type]
    return buffer.getvalue()


def unpack(data: bytes) -> Arrays:
    """The arrays of a record. Raises `UserError` for one that is cut."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise damaged(error) from error


def damaged(error: Exception) -> UserError:
    """What to tell of a record that cannot be read: writers leave whole ones, so that the disk lost something."""
    return UserError(f"a record of the store is damaged ({error}): delete the store, or give another --cache")
