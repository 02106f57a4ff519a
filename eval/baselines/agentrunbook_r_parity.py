"""The published index: one vector an entry, of what its embedder reads of it.

A slice's text is its states one after another, cut in the middle at 40,000 characters and then to the first 4,096
tokens. A slice of three pages has some 9,500, so that mostly its first page is embedded. By default windows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lme_v2_env.memory.library import SLICES, Library
from lme_v2_env.memory.writer import middle_cut
from lme_v2_env.tokens import TokenCutter, cutter_for
from lme_v2_env.trajectory import Trajectory

CHARS, TOKENS = 40_000, 4096
RADIUS = 1


@dataclass
class PublishedLibrary(Library):
    """`cutter` keeps the first 4,096 tokens."""

    cutter: TokenCutter = field(default_factory=lambda: cutter_for("estimate", TOKENS))

    @property
    def cutting(self) -> dict[str, Any]:
        return {"one_vector": [RADIUS, CHARS, TOKENS], "tokens": self.cutter.label}

    def _lines(self, pool: str, trajectory: Trajectory) -> list[list[str]]:
        if pool != SLICES:
            return super()._lines(pool, trajectory)
        blocks = [f"State {state.index}\n{state.tree}" for state in trajectory.states]
        return [
            "\n\n".join(blocks[max(0, centre - RADIUS) : centre + RADIUS + 1]).split("\n")
            for centre in range(len(blocks))
        ]

    def _windows(self, entry: Sequence[str]) -> list[str]:
        return [self.cutter.cut(middle_cut("\n".join(entry), CHARS))]


def published_library(base: Library) -> PublishedLibrary:
    """An empty library like `base` that embeds as published; tokens are the embedder's own where they can be had."""
    kind, _, model = (base.embedder.name if base.embedder else "").partition(":")
    cutter = cutter_for(model if kind == "endpoint" else "estimate", TOKENS)
    return PublishedLibrary(base.store, base.embedder, base.writer, cutter=cutter)
