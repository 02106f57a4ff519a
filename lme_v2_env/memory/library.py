"""Trajectories prepared for searching: the blocks of an index, each made once, from the store or by model calls."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np

from lme_v2_env.memory import events as event_texts
from lme_v2_env.memory import notes as note_texts
from lme_v2_env.memory.embed import Embedder
from lme_v2_env.memory.events import Event
from lme_v2_env.memory.index import Block, Index, term_arrays
from lme_v2_env.memory.notes import Note
from lme_v2_env.memory.slices import state_lines, windows
from lme_v2_env.memory.store import Store, pack, signature, unpack
from lme_v2_env.trajectory import Trajectory

INDEX_VERSION = 1
"""Part of the settings that key the store: raise it when windows, lines or words come out differently."""

SLICES, PROCEDURES, HINTS, EVENTS = "slice", "procedure", "hint", "event"


class Writer(Protocol):
    """Writes events and notes. `settings` key what it wrote in the store; `concurrency` is how many calls it takes."""

    concurrency: int

    @property
    def settings(self) -> dict[str, Any]: ...

    def notes(self, trajectory: Trajectory) -> list[Note]: ...

    def events(self, trajectory: Trajectory) -> list[Event]: ...


class TemplateWriter:
    """Notes and events without a model."""

    concurrency = 1
    settings: dict[str, Any] = {"writer": "template", "notes": note_texts.TEMPLATE, "events": event_texts.TEMPLATE}  # noqa: RUF012

    def notes(self, trajectory: Trajectory) -> list[Note]:
        return note_texts.template_notes(trajectory)

    def events(self, trajectory: Trajectory) -> list[Event]:
        return event_texts.template_events(trajectory)


@dataclass
class Library:
    """Indices and texts of trajectories, shared by memories whose haystacks overlap: each is prepared once.

    `embedder` None: BM25 only. Not tied to a haystack; a memory searches its own trajectories in it.
    """

    store: Store
    embedder: Embedder | None
    writer: Writer = field(default_factory=TemplateWriter)
    window_chars: int = 700
    remembered: int = 50_000
    """Windows whose vectors are kept so that an equal window is not embedded again (768 bytes each at 384)."""

    def __post_init__(self) -> None:
        self._indices: dict[str, Index] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._fingerprints: dict[str, list[str]] = {}
        self._hashes: dict[str, int] = {}
        self._vectors: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()
        self.embedded = 0
        """Windows that were embedded by this process."""

    @property
    def cutting(self) -> dict[str, Any]:
        """How entries are cut before they are embedded: part of the settings that key the store."""
        return {"window_chars": self.window_chars}

    def index(self, pool: str) -> Index:
        return self._indices.setdefault(pool, Index())

    def number(self, pool: str, trajectory: Trajectory) -> int:
        """The trajectory's block in the pool, made (or read from the store) when it is new."""
        key = (pool, trajectory.fingerprint)
        with self._lock:
            if key not in self._numbers:
                self._numbers[key] = self.index(pool).add(self._block(pool, trajectory))
                self._fingerprints.setdefault(pool, []).append(trajectory.fingerprint)
            return self._numbers[key]

    def fingerprints(self, pool: str) -> list[str]:
        """Of the trajectories whose blocks the pool's index holds, in order."""
        return list(self._fingerprints.get(pool, ()))

    def install(self, pool: str, index: Index, fingerprints: Sequence[str]) -> None:
        """Take an index that was kept. The pool must be empty."""
        assert not self._fingerprints.get(pool)
        self._indices[pool] = index
        self._fingerprints[pool] = list(fingerprints)
        self._numbers |= {(pool, name): number for number, name in enumerate(fingerprints)}

    def prepare(self) -> None:
        for index in self._indices.values():
            index.prepare()

    def records(self, pool: str, trajectory: Trajectory) -> list[dict[str, Any]]:
        """The written entries of a pool (not of slices), from the store."""
        kind = "events" if pool == EVENTS else "notes"

        def make() -> bytes:
            made = self.writer.events(trajectory) if pool == EVENTS else self.writer.notes(trajectory)
            return json.dumps([asdict(record) for record in made], ensure_ascii=False).encode()

        rows = json.loads(self.store.get_or_make(trajectory.fingerprint, kind, dict(self.writer.settings), make))
        return rows if pool == EVENTS else [row for row in rows if row["kind"] == pool]

    def _block(self, pool: str, trajectory: Trajectory) -> Block:
        cut = {"index": INDEX_VERSION, "pool": pool, **self.cutting}
        if pool != SLICES:
            cut |= self.writer.settings
        texts: list[list[str]] | None = None

        def lines() -> list[list[str]]:
            nonlocal texts
            if texts is None:
                texts = self._lines(pool, trajectory)
            return texts

        def terms() -> bytes:
            return pack(term_arrays(["\n".join(entry) for entry in lines()], self._hashes))

        def vectors() -> bytes:
            return pack(self._embedded([self._windows(entry) for entry in lines()]))

        fingerprint = trajectory.fingerprint
        words_side = unpack(self.store.get_or_make(fingerprint, f"terms-{pool}", cut, terms))
        if self.embedder is None:
            entries = len(words_side["lengths"])
            empty = {"vectors": np.zeros((0, 1), np.float16), "first_window": np.zeros(entries + 1, np.int32)}
            return Block(**empty, **words_side)
        settings = {**cut, "embedder": self.embedder.name}
        return Block(**unpack(self.store.get_or_make(fingerprint, f"vectors-{pool}", settings, vectors)), **words_side)

    def _lines(self, pool: str, trajectory: Trajectory) -> list[list[str]]:
        if pool == SLICES:
            return [state_lines(state) for state in trajectory.states]
        records = self.records(pool, trajectory)
        if pool == EVENTS:
            return [Event(**record).text.split("\n") for record in records]
        return [Note(**record).text.split("\n") for record in records]

    def _windows(self, entry: Sequence[str]) -> list[str]:
        return windows(entry, self.window_chars)

    def _embedded(self, entries: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Vectors of all windows; equal windows are embedded once, across trajectories while remembered."""
        assert self.embedder is not None
        flat = [window for entry in entries for window in entry]
        fresh = [window for window in dict.fromkeys(flat) if window not in self._vectors]
        known = {window: self._vectors[window] for window in flat if window in self._vectors}
        if fresh:
            known |= zip(fresh, self.embedder.documents(fresh).astype(np.float16), strict=True)
            self.embedded += len(fresh)
            for window in fresh:
                self._vectors[window] = known[window]
            while len(self._vectors) > self.remembered:
                self._vectors.popitem(last=False)
        sizes = [len(entry) for entry in entries]
        vectors = np.stack([known[window] for window in flat]) if flat else np.zeros((0, 1), np.float16)
        return {"vectors": vectors, "first_window": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)}


def library_settings(library: Library) -> dict[str, Any]:
    """What shapes an index, for a run's record."""
    return {
        "index": INDEX_VERSION,
        **library.cutting,
        "embedder": library.embedder.name if library.embedder else None,
        "writer": dict(library.writer.settings),
        "signature": signature({**library.cutting, **library.writer.settings}),
    }
