"""The Memory API: `insert(trajectory)`, then `query(question, image)` -> context items; and the retrieval memory.

A query is a text and the bytes of a picture: a memory system gets no id, type, gold or path of a question.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

from lme_v2_env.memory.events import Event
from lme_v2_env.memory.index import Hit
from lme_v2_env.memory.library import EVENTS, HINTS, PROCEDURES, SLICES, Library
from lme_v2_env.memory.notes import Note
from lme_v2_env.memory.slices import annotated_actions, numbered
from lme_v2_env.trajectory import SURROGATE, State, Trajectory
from rewards.errors import UserError

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


class Gathered(list[ContextItem]):
    """A context with a `report` of how it was gathered, for the question's row; the reader never sees it."""

    def __init__(self, items: Iterable[ContextItem], report: Mapping[str, Any]) -> None:
        super().__init__(items)
        self.report = dict(report)


class Memory(Protocol):
    """What the benchmark drives. Trajectories come in haystack order, each once."""

    def insert(self, trajectory: Trajectory) -> None: ...

    def query(self, question: str, image: bytes | None = None) -> list[ContextItem]: ...


def checked(items: Any) -> list[ContextItem]:
    """What a memory returned: `ContextItem`s, or the published dicts with `type` and `value`. Raises `ValueError`."""
    if not isinstance(items, (list, tuple)):
        raise ValueError(f"expected a list of context items, got {type(items).__name__}")
    found = [ContextItem(item["type"], item["value"]) if _published(item) else item for item in items]
    for item in found:
        if not isinstance(item, ContextItem) or item.type not in ("text", "image") or not isinstance(item.value, str):
            raise ValueError(f"expected a text or an image item, got {type(item).__name__}")
        if not _states(item.shows):
            raise ValueError(f"`shows` is {item.shows!r:.60}, not (trajectory's id, number of a state) pairs")
        if item.type == "text" and not item.value.strip():
            raise ValueError("a text item is empty")
        if item.type == "image" and not Path(item.value).is_file():
            raise ValueError("an image item is no file")
    found = [replace(item, shows=tuple((name, number) for name, number in item.shows)) for item in found]
    return [replace(item, value=SURROGATE.sub("\ufffd", item.value)) if item.type == "text" else item for item in found]


def _states(shows: Any) -> bool:
    return isinstance(shows, (list, tuple)) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str) and type(pair[1]) is int
        for pair in shows
    )


def _published(item: Any) -> bool:
    return isinstance(item, dict) and item.keys() == {"type", "value"}


@runtime_checkable
class Prepared(Protocol):
    """A memory that has work to do between the last insert and the first query, which should not pay for it."""

    def prepare(self) -> object: ...


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


@dataclass(frozen=True, slots=True)
class Inserted:
    """What is kept of a trajectory for showing it: `heads` and, compressed, `trees` of its states."""

    id: str
    fingerprint: str
    goal: str
    outcome: str
    actions: tuple[str, ...]
    heads: tuple[str, ...]
    trees: Sequence[bytes]
    pictures: tuple[str | None, ...]
    """The screenshot's path as published, for every state."""
    records: dict[str, list[dict[str, Any]]]
    blocks: dict[str, int]
    """Number of the trajectory's block in each pool's index."""

    @property
    def states(self) -> int:
        return len(self.trees)

    def span(self, centre: int, radius: int) -> range:
        """States around `centre` that exist."""
        return range(max(0, centre - radius), min(self.states, centre + radius + 1))


class RetrievalMemory:
    """Slices, notes and events that are most like the question.

    `picture` finds the file of a screenshot, or raises; without it the memory returns text only.
    """

    def __init__(self, library: Library, config: RetrievalConfig, picture: Callable[[str], Path] | None = None) -> None:
        if config.mode != "bm25" and library.embedder is None:
            raise UserError(f"retrieval '{config.mode}' needs an embedder")
        self.library, self.config, self.picture = library, config, picture
        self.inserted: dict[str, Inserted] = {}
        self._blocks: dict[str, dict[int, Inserted]] = {pool: {} for pool in config.pools}

    def insert(self, trajectory: Trajectory) -> None:
        if trajectory.id in self.inserted:
            raise UserError(f"trajectory '{trajectory.id}' was inserted before")
        if self.picture:
            for state in trajectory.states:
                self.picture(state.screenshot or f"state {state.index}")  # better now than in the middle of a run
        pools = self.config.pools
        kept = Inserted(
            id=trajectory.id,
            fingerprint=trajectory.fingerprint,
            goal=trajectory.goal,
            outcome=trajectory.outcome,
            actions=tuple(annotated_actions(trajectory.states)),
            heads=tuple(map(_head, trajectory.states)),
            trees=tuple(zlib.compress(state.tree.encode(), 1) for state in trajectory.states),
            pictures=tuple(state.screenshot for state in trajectory.states),
            records={pool: self.library.records(pool, trajectory) for pool in pools if pool != SLICES},
            blocks={pool: self.library.number(pool, trajectory) for pool in pools},
        )
        self.take(kept)

    def warm(self, trajectories: Sequence[Trajectory]) -> None:
        """Let a model write the notes and events of several trajectories at once; inserting them then only reads.

        Raises `EndpointError`; what was written before is kept.
        """
        pools = {EVENTS if pool == EVENTS else PROCEDURES for pool in self.config.pools if pool != SLICES}
        tasks = [(pool, trajectory) for trajectory in trajectories for pool in pools]
        if len(tasks) > 1 and self.library.writer.concurrency > 1:
            with ThreadPoolExecutor(self.library.writer.concurrency) as workers:
                list(workers.map(lambda task: self.library.records(*task), tasks))

    def subset(self, ids: Iterable[str]) -> Self:
        """A memory of some of the trajectories, sharing everything: for haystacks that overlap."""
        part = copy(self)
        part.inserted, part._blocks = {}, {pool: {} for pool in self.config.pools}
        for trajectory_id in ids:
            part.take(self.inserted[trajectory_id])
        return part

    def take(self, kept: Inserted) -> None:
        """Insert what is prepared already."""
        self.inserted[kept.id] = kept
        for pool, number in kept.blocks.items():
            self._blocks[pool][number] = kept

    def prepare(self) -> None:
        """Do now what the first query would otherwise pay for."""
        self.library.prepare()
        if self.library.embedder and self.config.mode != "bm25":
            self.library.embedder.load()

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
            for index in (event.before, event.before + 1):
                items += self._picture_item(kept, index)
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
            items += self.slice_items(kept, span, hit.entry, rank)
        return items

    def slice_items(
        self, kept: Inserted, span: range, centre: int | None, rank: int, name: str | None = None
    ) -> list[ContextItem]:
        """States of a trajectory as a text, and the screenshot of the centre, or of every state when there is none.

        `name` is what the reader is to know the trajectory by, instead of its id.
        """
        pairs = tuple((kept.id, index) for index in span)
        items = [ContextItem("text", _slice_text(kept, span, rank, name or kept.id), pairs)]
        for index in span if centre is None else (centre,):
            items += self._picture_item(kept, index)
        return items

    def _picture_item(self, kept: Inserted, index: int) -> list[ContextItem]:
        name = kept.pictures[index]
        if self.picture is None or name is None:
            return []
        return [ContextItem("image", str(self.picture(name)), ((kept.id, index),))]


def searched(question: str) -> str:
    """The question without the sentence on how to wrap the answer."""
    return INSTRUCTION.sub("", question).strip() or question


def _head(state: State) -> str:
    reached = f"\nReached by: {state.action}" if state.action else ""
    return f"State {state.index}\nAddress: {state.url}{reached}"


def _slice_text(kept: Inserted, span: range, rank: int, name: str) -> str:
    parts = [
        f"Pages {rank}: trajectory {name} ({kept.outcome}), states {span[0]} to {span[-1]} of {kept.states}",
        f"Goal of the run: {kept.goal}",
        f"Actions of the run:\n{numbered(kept.actions)}",
    ]
    for index in span:
        parts.append(f"{kept.heads[index]}\n{zlib.decompress(kept.trees[index]).decode()}")
    return "\n\n".join(parts)


def note_text(kept: Inserted, pool: str, rank: int) -> str:
    """The trajectory's note of that pool under a heading."""
    note = Note(**kept.records[pool][0])
    return f"{pool.capitalize()} note {rank} (trajectory {kept.id}, {kept.outcome})\n{note.text}"
