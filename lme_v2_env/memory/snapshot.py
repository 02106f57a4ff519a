"""A whole retrieval memory on disk, opened in a moment: arrays are memory-mapped, nothing is read until it is used.

The store keeps what was computed for each trajectory and is the source of everything here; a snapshot only saves
joining it again. It is written beside its place and renamed into it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from lme_v2_env.memory.api import Inserted, RetrievalConfig, RetrievalMemory
from lme_v2_env.memory.index import Index
from lme_v2_env.memory.library import Library, library_settings
from lme_v2_env.memory.store import not_written
from rewards.errors import UserError

MEMORY, TREES = "memory.json", "trees"


def settings_of(library: Library, config: RetrievalConfig) -> dict[str, Any]:
    """What must be equal for a snapshot to be usable."""
    return {"pools": list(config.pools), "library": library_settings(library)}


def save(memory: RetrievalMemory, folder: Path) -> None:
    """Keep the memory and the indices of its library; a snapshot that is there already stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _write(memory, partial)
    except OSError as error:  # a full disk, most often
        shutil.rmtree(partial, ignore_errors=True)
        raise not_written(folder, error) from error
    try:
        os.rename(partial, folder)
    except OSError:  # another writer was first
        shutil.rmtree(partial)


def _write(memory: RetrievalMemory, partial: Path) -> None:
    library = memory.library
    pools = {}
    for pool in memory.config.pools:
        index = library.index(pool)
        pools[pool] = {"fingerprints": library.fingerprints(pool), "arrays": []}
        for name, array in index.arrays().items():
            np.save(partial / f"{pool}-{name}.npy", array)
            pools[pool]["arrays"].append(name)
    kept = list(memory.inserted.values())
    blobs = [blob for item in kept for blob in item.trees]
    np.save(partial / f"{TREES}.npy", np.frombuffer(b"".join(blobs), dtype=np.uint8))
    np.save(partial / f"{TREES}-starts.npy", np.concatenate([[0], np.cumsum([len(blob) for blob in blobs])]))
    rows = [{name: getattr(item, name) for name in Inserted.__slots__ if name != "trees"} for item in kept]
    content = {"settings": settings_of(library, memory.config), "pools": pools, "inserted": rows}
    (partial / MEMORY).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def load(memory: RetrievalMemory, folder: Path) -> bool:
    """Fill an empty memory with an empty library; False when there is no snapshot or other settings made it.

    Raises `UserError` for a snapshot that is damaged.
    """
    if not (folder / MEMORY).is_file():
        return False
    try:
        return _load(memory, folder)
    except (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
    ) as error:  # cut or missing files: a full disk, a lost machine
        raise UserError(f"{folder} is damaged ({type(error).__name__}): delete it, and it is made again") from error


def _load(memory: RetrievalMemory, folder: Path) -> bool:
    content = json.loads((folder / MEMORY).read_text("utf-8"))
    if content["settings"] != json.loads(json.dumps(settings_of(memory.library, memory.config))):
        return False
    for pool, entry in content["pools"].items():
        arrays = {name: np.load(folder / f"{pool}-{name}.npy", mmap_mode="r") for name in entry["arrays"]}
        memory.library.install(pool, Index.of(arrays, len(entry["fingerprints"])), entry["fingerprints"])
    blob = np.load(folder / f"{TREES}.npy", mmap_mode="r")
    starts = np.load(folder / f"{TREES}-starts.npy")
    first = 0
    for row in content["inserted"]:
        count = len(row["heads"])
        trees = _Blobs(blob, starts[first : first + count + 1])
        first += count
        lists = {name: tuple(row[name]) for name in ("actions", "heads", "pictures")}
        memory.take(Inserted(**(row | lists), trees=trees))
    return True


class _Blobs(Sequence[bytes]):
    """Byte strings in one array, read when asked for."""

    def __init__(self, blob: np.ndarray, starts: np.ndarray) -> None:
        self._blob, self._starts = blob, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._blob[self._starts[index] : self._starts[index + 1]].tobytes()
