"""AgentRunbook-R: three pools (pages, events, notes), searched with queries that a controller writes for the question.

The controller is a model behind an endpoint, or rules. Ablations are systems of their own: any subset of the pools.
What the published code does unlike the paper is behind `parity`: see docs/baselines.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np

from eval.baselines import Kit
from eval.baselines.agentrunbook_r_bundle import ModelPlanner, Planner, RulesPlanner
from eval.baselines.agentrunbook_r_merge import merge
from eval.baselines.agentrunbook_r_parity import published_library
from eval.baselines.agentrunbook_r_summary import summarise, titles
from lme_v2_env.memory.api import ContextItem, Gathered, Inserted, RetrievalConfig, RetrievalMemory
from lme_v2_env.memory.index import Hit
from lme_v2_env.memory.library import SLICES, Library, library_settings
from lme_v2_env.trajectory import Question

POOLS = ("slices", "events", "notes")


@dataclass(frozen=True, slots=True)
class Runbook:
    """The published parameters. `top_raw` is a query's; after merging `budget` slices are shown."""

    pools: tuple[str, ...] = POOLS
    top_raw: int = 6
    top_events: int = 6
    top_notes: int = 3
    """Procedure notes, and as many hints."""
    budget: int = 6
    cap: int = 2
    parity: bool = False
    """Do as the published code does where it differs from the paper."""

    def retrieval(self, base: RetrievalConfig) -> RetrievalConfig:
        """The search settings; parity searches as published: dense alone, overlapping slices kept."""
        config = replace(
            base,
            slices=self.top_raw if "slices" in self.pools else 0,
            events=self.top_events if "events" in self.pools else 0,
            notes=self.top_notes if "notes" in self.pools else 0,
        )
        if self.parity:
            return replace(config, mode="dense", radius=1, skip_shown=False, strip_instruction=False)
        return config


@dataclass(frozen=True, slots=True)
class _Found:
    """A state that a query found."""

    kept: Inserted
    hit: Hit
    span: range

    @property
    def key(self) -> tuple[str, int]:
        return self.kept.id, self.hit.entry


class RunbookMemory(RetrievalMemory):
    """Asks the planner for a bundle, then each pool with its queries. Rendered: notes, events, pages with pictures."""

    def __init__(
        self, library: Library, runbook: Runbook, base: RetrievalConfig, planner: Planner, picture: Any = None
    ) -> None:
        super().__init__(library, runbook.retrieval(base), picture)
        self.runbook, self.planner = runbook, planner
        self._titles: dict[str, list[str]] = {}
        """Shared by subsets: a trajectory's page titles are read once."""
        self._summary: str | None = None

    def take(self, kept: Inserted) -> None:
        super().take(kept)
        self._summary = None

    def subset(self, ids: Iterable[str]) -> Self:
        part = super().subset(ids)
        part._summary = None
        return part

    def prepare(self) -> None:
        super().prepare()
        if isinstance(self.planner, ModelPlanner):
            self.summary()  # reads the titles of all pages, also for the subsets

    def summary(self) -> str:
        """What the memory holds, for the controller."""
        if self._summary is None:
            held = list(self.inserted.values())
            for kept in held:
                if kept.id not in self._titles:
                    self._titles[kept.id] = titles(kept)
            self._summary = summarise(held, self.config.pools, [self._titles[kept.id] for kept in held])
        return self._summary

    def query(self, question: str, image: bytes | None = None) -> Gathered:
        """The picture is not looked at, as published. Raises `EndpointError`: such a question is unscored."""
        bundle = self.planner.plan(question, self.summary)

        @cache
        def vector(text: str) -> np.ndarray | None:
            return self.library.embedder.query(text) if self.config.mode != "bm25" and self.library.embedder else None

        items: list[ContextItem] = []
        if self.config.notes and bundle.note:
            items += self._notes(bundle.note, vector(bundle.note))
        if self.config.events and bundle.event:
            found = self._events(bundle.event, vector(bundle.event))
            head = f"What single actions did, closest to: {bundle.event}"
            items += [ContextItem("text", head), *found] if found else []
        if self.config.slices and bundle.raw:
            items += self._pages(bundle.raw, [self._found(text, vector(text)) for text in bundle.raw])
        return Gathered(items, {"bundle": asdict(bundle)})

    def _found(self, text: str, vector: np.ndarray | None) -> list[_Found]:
        """A query's best states; with `skip_shown`, such that none lies in the slice of a better one."""
        top, radius = self.config.slices, self.config.radius
        depth = top * (2 + 4 * radius) if self.config.skip_shown else top
        hits = [
            _Found(kept, hit, kept.span(hit.entry, radius)) for kept, hit in self.search(SLICES, text, vector, depth)
        ]
        if not self.config.skip_shown:
            return hits
        shown: set[tuple[str, int]] = set()
        apart = []
        for found in hits:
            if found.key not in shown:
                shown.update((found.kept.id, index) for index in found.span)
                apart.append(found)
        return apart[:top]

    def _pages(self, queries: Sequence[str], lists: Sequence[Sequence[_Found]]) -> list[ContextItem]:
        by_key = {found.key: found for entries in lists for found in entries}
        merged = merge(
            [[found.key for found in entries] for entries in lists],
            budget=self.runbook.budget,
            cap=self.runbook.cap,
            parity=self.runbook.parity,
            shows=lambda key: self._shows(by_key[key]),
        )
        items = [ContextItem("text", "Pages that were seen")] if merged else []
        for number, (query, key, rank) in enumerate(merged, 1):
            found = by_key[key]
            text, *pictures = self.slice_items(found.kept, found.span, found.hit.entry, number)
            head = f"Found by: {queries[query]} (its result {rank}; the middle state is {found.hit.entry})"
            items += [replace(text, value=f"{head}\n{text.value}"), *pictures]
        return items

    def _shows(self, found: _Found) -> Iterable[tuple[str, int]]:
        return [(found.kept.id, index) for index in found.span] if self.config.skip_shown else [found.key]


class AgentRunbookR:
    """The system of one subset of the pools."""

    queries = inserts = True

    def __init__(self, name: str, kit: Kit, runbook: Runbook) -> None:
        self.name, self.kit, self.runbook = name, kit, runbook
        self.planner: Planner = ModelPlanner(kit.controller, runbook.parity) if kit.controller else RulesPlanner()

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "runbook": asdict(self.runbook) | {"pools": list(self.runbook.pools)},
            "retrieval": asdict(self.runbook.retrieval(self.kit.retrieval)),
            "planner": self.planner.settings,
            "library": library_settings(self._library()),
            "pictures": self.kit.pictures,
        }

    def covers(self, question: Question) -> bool:
        return True

    def memory(self) -> RunbookMemory:
        return RunbookMemory(self._library(), self.runbook, self.kit.retrieval, self.planner, self.kit.picture())

    def _library(self) -> Library:
        base = self.kit.library()
        return published_library(base) if self.runbook.parity else base


def variants() -> Mapping[str, tuple[str, ...]]:
    """System name -> pools, for every subset that leaves something to search."""
    named: dict[str, tuple[str, ...]] = {"agentrunbook_r": POOLS}
    named |= {f"agentrunbook_r_no_{out}": tuple(pool for pool in POOLS if pool != out) for out in POOLS}
    return named | {f"agentrunbook_r_only_{pool}": (pool,) for pool in POOLS}


def build(name: str, kit: Kit) -> AgentRunbookR:
    return AgentRunbookR(name, kit, Runbook(variants()[name], parity=kit.parity))
