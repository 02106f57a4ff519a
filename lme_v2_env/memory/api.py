"""The Memory API: `insert(trajectory)`, then `query(question, image)` -> context items; and the retrieval memory.

A query is a text and the bytes of a picture: a memory system gets no id, type, gold or path of a question.
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from lme_v2_env.errors import UserError
from lme_v2_env.memory import events as event_texts
from lme_v2_env.memory import notes as note_texts
from lme_v2_env.memory.embed import Embedder
from lme_v2_env.memory.events import Event
from lme_v2_env.memory.index import Block, Hit, Index, term_arrays
from lme_v2_env.memory.notes import Note
from lme_v2_env.memory.slices import annotated_actions, numbered, state_lines, windows
from lme_v2_env.memory.store import Store, pack, signature, unpack
from lme_v2_env.trajectory import State, Trajectory

INDEX_VERSION = 1
"""Part of the settings that key the store: raise it when windows or lines come out differently."""

SLICES, PROCEDURES, HINTS, EVENTS = "slice", "procedure", "hint", "event"

INSTRUCTION = re.compile(r"[^.?!\n]*\\boxed\b.*$", re.MULTILINE)
"""How a question wants its answer wrapped: says nothing about what to look for."""


Mode = Literal["hybrid", "dense", "bm25"]


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One piece of the reader's context: a text, or the path of a picture.

    `shows` names the (trajectory, state) pairs whose content it holds; it is for measurement and never shown.
    """

    type: Literal["text", "image"]
    value: str
    shows: tuple[tuple[str, int], ...] = ()


class Memory(Protocol):
    """What the benchmark drives. Trajectories come in haystack order, each once."""

    def insert(self, trajectory: Trajectory) -> None: ...

    def query(self, question: str, image: bytes | None = None) -> list[ContextItem]: ...


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """How the retrieval memory searches and what it shows."""

    mode: Mode = "hybrid"
    radius: int = 1
    """States shown on either side of the one that was found."""
    slices: int = 6
    notes: int = 0
    """Procedure notes and as many hints; the published RAG with notes takes 3."""
    events: int = 0
    window_chars: int = 700
    """Longest window that is embedded at once, in characters: about 230 tokens of a page, since MiniLM reads 256."""
    skip_shown: bool = True
    """Pass over a state that an earlier slice already shows; the published RAG does not."""
    strip_instruction: bool = True
    """Search without the sentence on how to wrap the answer; the published RAG searches with it."""

    @property
    def pools(self) -> tuple[str, ...]:
        found = [SLICES] if self.slices else []
        return (*found, *((PROCEDURES, HINTS) if self.notes else ()), *((EVENTS,) if self.events else ()))


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
    """Indices and texts of trajectories, shared by every memory of a process: each trajectory is prepared once.

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
        cut = {"index": INDEX_VERSION, "pool": pool, "window_chars": self.window_chars}
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
            return pack(self._embedded([windows(entry, self.window_chars) for entry in lines()]))

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


@dataclass(frozen=True, slots=True)
class Inserted:
    """What is kept of a trajectory for showing it. `pages` are compressed: address, action and tree of every state."""

    id: str
    goal: str
    outcome: str
    actions: tuple[str, ...]
    pages: tuple[bytes, ...]
    pictures: tuple[Path | None, ...]
    records: dict[str, list[dict[str, Any]]]
    blocks: dict[str, int]
    """Number of the trajectory's block in each pool's index."""

    @property
    def states(self) -> int:
        return len(self.pages)

    def span(self, centre: int, radius: int) -> range:
        """States around `centre` that exist."""
        return range(max(0, centre - radius), min(self.states, centre + radius + 1))


class RetrievalMemory:
    """Slices, notes and events that are most like the question.

    `picture` finds the screenshot of a state (None: text only).
    """

    def __init__(
        self, library: Library, config: RetrievalConfig, picture: Callable[[State], Path | None] | None = None
    ) -> None:
        if config.mode != "bm25" and library.embedder is None:
            raise UserError(f"retrieval '{config.mode}' needs an embedder")
        self.library, self.config, self._picture = library, config, picture
        self.inserted: dict[str, Inserted] = {}
        self._blocks: dict[str, dict[int, Inserted]] = {pool: {} for pool in config.pools}

    def insert(self, trajectory: Trajectory) -> None:
        if trajectory.id in self.inserted:
            raise UserError(f"trajectory '{trajectory.id}' was inserted before")
        pools = self.config.pools
        kept = Inserted(
            id=trajectory.id,
            goal=trajectory.goal,
            outcome=trajectory.outcome,
            actions=tuple(annotated_actions(trajectory.states)),
            pages=tuple(_pressed(state) for state in trajectory.states),
            pictures=tuple(self._picture(state) if self._picture else None for state in trajectory.states),
            records={pool: self.library.records(pool, trajectory) for pool in pools if pool != SLICES},
            blocks={pool: self.library.number(pool, trajectory) for pool in pools},
        )
        self._take(kept)

    def warm(self, trajectories: Sequence[Trajectory]) -> None:
        """Let a model write the notes and events of several trajectories at once; inserting them then only reads.

        Raises `EndpointError`; what was written before is kept.
        """
        pools = {EVENTS if pool == EVENTS else PROCEDURES for pool in self.config.pools if pool != SLICES}
        tasks = [(pool, trajectory) for trajectory in trajectories for pool in pools]
        if len(tasks) > 1 and self.library.writer.concurrency > 1:
            with ThreadPoolExecutor(self.library.writer.concurrency) as workers:
                list(workers.map(lambda task: self.library.records(*task), tasks))

    def adopt(self, other: RetrievalMemory, trajectory_id: str) -> bool:
        """Take a trajectory over from a memory with the same library and settings; False when it has none.

        For haystacks that overlap: what was read and prepared for one is not read again for the next.
        """
        kept = other.inserted.get(trajectory_id)
        if kept is None or other.config != self.config or other.library is not self.library:
            return False
        self._take(kept)
        return True

    def _take(self, kept: Inserted) -> None:
        self.inserted[kept.id] = kept
        for pool, number in kept.blocks.items():
            self._blocks[pool][number] = kept

    def prepare(self) -> None:
        """Do now what the first query would otherwise pay for."""
        self.library.prepare()

    def query(self, question: str, image: bytes | None = None) -> list[ContextItem]:
        text = searched(question) if self.config.strip_instruction else question
        vector = self.library.embedder.query(text) if self.config.mode != "bm25" and self.library.embedder else None
        return self.retrieve(text, vector)

    def retrieve(self, text: str, vector: np.ndarray | None) -> list[ContextItem]:
        """The context for a query that is embedded already."""
        items: list[ContextItem] = []
        if self.config.notes:
            items += self._notes(text, vector)
        if self.config.events:
            items += self._events(text, vector)
        return items + self._slices(text, vector)

    def search(self, pool: str, text: str, vector: np.ndarray | None, top: int) -> list[tuple[Inserted, Hit]]:
        """The best entries of a pool with the trajectory of each."""
        blocks = self._blocks[pool]
        index = self.library.index(pool)
        wanted = None if len(blocks) == len(index) else blocks
        words = None if self.config.mode == "dense" else text
        return [(blocks[hit.block], hit) for hit in index.search(vector, words, wanted, top)]

    def _notes(self, text: str, vector: np.ndarray | None) -> list[ContextItem]:
        parts = [
            note_text(kept, pool, rank)
            for pool in (PROCEDURES, HINTS)
            for rank, (kept, _) in enumerate(self.search(pool, text, vector, self.config.notes), 1)
        ]
        return [ContextItem("text", "Notes from earlier runs\n\n" + "\n\n".join(parts))] if parts else []

    def _events(self, text: str, vector: np.ndarray | None) -> list[ContextItem]:
        items = []
        for rank, (kept, hit) in enumerate(self.search(EVENTS, text, vector, self.config.events), 1):
            event = Event(**kept.records[EVENTS][hit.entry])
            head = f"Event {rank} (trajectory {kept.id}, state {event.before} to {event.before + 1})"
            items.append(ContextItem("text", f"{head}\n{event.text}"))
            pictures = kept.pictures[event.before : event.before + 2]
            items += [ContextItem("image", str(picture)) for picture in pictures if picture]
        return items

    def _slices(self, text: str, vector: np.ndarray | None) -> list[ContextItem]:
        wanted = self.config.slices
        # neighbours of a hit often follow it closely: look further when they are passed over
        depth = wanted * (2 + 4 * self.config.radius) if self.config.skip_shown else wanted
        items: list[ContextItem] = []
        shown: set[tuple[str, int]] = set()
        rank = 0
        for kept, hit in self.search(SLICES, text, vector, depth) if wanted else ():
            if rank == wanted:
                break
            if self.config.skip_shown and (kept.id, hit.entry) in shown:
                continue
            rank += 1
            span = kept.span(hit.entry, self.config.radius)
            shown.update((kept.id, index) for index in span)
            items += slice_items(kept, span, hit.entry, rank)
        return items


def searched(question: str) -> str:
    """The question without the sentence on how to wrap the answer."""
    return INSTRUCTION.sub("", question).strip() or question


def _pressed(state: State) -> bytes:
    return zlib.compress(json.dumps([state.url, state.action, state.tree], ensure_ascii=False).encode(), 1)


def slice_items(kept: Inserted, span: range, centre: int | None, rank: int) -> list[ContextItem]:
    """States of a trajectory as a text, and the screenshot of the centre, or of every state when there is none."""
    pairs = tuple((kept.id, index) for index in span)
    items = [ContextItem("text", _slice_text(kept, span, rank), pairs)]
    for index in span if centre is None else (centre,):
        picture = kept.pictures[index]
        if picture:
            items.append(ContextItem("image", str(picture), ((kept.id, index),)))
    return items


def _slice_text(kept: Inserted, span: range, rank: int) -> str:
    parts = [
        f"Pages {rank}: trajectory {kept.id} ({kept.outcome}), states {span[0]} to {span[-1]} of {kept.states}",
        f"Goal of the run: {kept.goal}",
        f"Actions of the run:\n{numbered(kept.actions)}",
    ]
    for index in span:
        url, action, tree = json.loads(zlib.decompress(kept.pages[index]))
        reached = f"\nReached by: {action}" if action else ""
        parts.append(f"State {index}\nAddress: {url}{reached}\n{tree}")
    return "\n\n".join(parts)


def note_text(kept: Inserted, pool: str, rank: int) -> str:
    """The trajectory's note of that pool under a heading."""
    note = Note(**kept.records[pool][0])
    return f"{pool.capitalize()} note {rank} (trajectory {kept.id}, {kept.outcome})\n{note.text}"


def library_settings(library: Library) -> dict[str, Any]:
    """What shapes an index, for a run's record."""
    return {
        "index": INDEX_VERSION,
        "window_chars": library.window_chars,
        "embedder": library.embedder.name if library.embedder else None,
        "writer": dict(library.writer.settings),
        "signature": signature({"window_chars": library.window_chars, **library.writer.settings}),
    }
