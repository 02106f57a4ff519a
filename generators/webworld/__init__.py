"""Small customised web applications, agents that use them, and questions of every LongMemEval-V2 type about them.

`bundle(seed, preset)` makes everything of a world; `write_dataset` writes worlds as the files of the published layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from generators.webworld.config import PRESETS, SPLITS, WorldConfig, config_from, split_of
from generators.webworld.dataset import Bundle, bundle, write_dataset
from generators.webworld.explorer import runs
from generators.webworld.model import World
from generators.webworld.questions import ask
from generators.webworld.worlds import foils, generate_world

__all__ = [
    "PRESETS",
    "SPLITS",
    "Bundle",
    "World",
    "WorldConfig",
    "bundle",
    "config_from",
    "explore",
    "foils",
    "generate_world",
    "questions",
    "split_of",
    "write_dataset",
]


def explore(world: World) -> list[dict[str, Any]]:
    """The trajectories of a world in the published schema, half of them successful."""
    return [run.record for run in runs(world)]


def questions(world: World, other_worlds: Sequence[World] | None = None) -> list[dict[str, Any]]:
    """The questions of a world as rows of questions.jsonl; `other_worlds` lend the false premises (`foils`)."""
    others = foils(world.seed, world.config) if other_worlds is None else other_worlds
    return [asked.row for asked in ask(world, others)]
