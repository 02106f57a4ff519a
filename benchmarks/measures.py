"""What is measured. Each function returns {figure: {"ours": value, "peer": value or absent}}, once."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np

Found = dict[str, dict[str, float]]

SMALL, LARGE = 1, 10
"""Two sizes of the same work, tenfold apart: they show how the cost grows."""


def rollouts() -> Found:
    """Supersede as a MultiTurnEnv beside the framework's floor, with a client that answers at once."""
    from benchmarks.floor import measure

    return {
        f"rollouts/s, {60 * size} episodes in groups of {group}": measure(60 * size, group)
        for size, group in ((SMALL, 1), (LARGE, 1), (SMALL, 8))
    }


def grader() -> Found:
    """Answers of up to 500 characters from the variations suite."""
    from benchmarks.test_grader_speed import ROWS, one_pass

    one_pass()  # golds and questions are read once a process
    found: Found = {}
    for size in (SMALL, LARGE):
        seconds = _seconds(lambda size=size: [one_pass() for _ in range(size)])
        found[f"grades/s, {len(ROWS) * size} answers"] = {"ours": len(ROWS) * size / seconds}
    return found


def timelines() -> Found:
    """Episodes of two presets."""
    from generators.timelines import generate

    found: Found = {}
    for preset in ("curriculum", "hard"):
        for size in (SMALL, LARGE):
            count = 60 * size
            seconds = _seconds(lambda preset=preset, count=count: [generate(seed, preset) for seed in range(count)])
            found[f"episodes/s, {preset}, {count} episodes"] = {"ours": count / seconds}
    return found


def worlds() -> Found:
    """Web worlds with their trajectories and questions."""
    from generators.webworld import bundle

    return {
        f"worlds/s, standard, {5 * size} worlds": {
            "ours": 5 * size / _seconds(lambda size=size: [bundle(seed, "standard") for seed in range(5 * size)])
        }
        for size in (SMALL, LARGE)
    }


def memory(states: int, data: Path) -> Found:
    """Insert and query beside brute force over the same vectors and bm25s over the same texts.

    The peer does the least that gives such a ranking for the same questions: one float32 matrix product with a partial
    sort and the library's own BM25 over the whole corpus. Our search also fuses the two, for any subset of the runs; a
    whole query also writes the texts of what it found, which the peer has no side of.
    """
    from eval import lme_scale
    from lme_v2_env.memory import snapshot
    from lme_v2_env.memory.embed import Hashing
    from lme_v2_env.memory.library import SLICES

    with tempfile.TemporaryDirectory() as folder:
        options = argparse.Namespace(folder=Path(folder), data=data, trajectories=states // 30, states=30, phase=None)
        lme_scale.make(options)
        inserted = lme_scale.insert(options)
        queried = lme_scale.reopen(options)
        memory = lme_scale.memory_of(options)
        assert snapshot.load(memory, options.folder / "snapshot"), "the snapshot that was just made is not found"
        opened = lme_scale.TrajectoryFile.open(options.folder / "trajectories.jsonl", options.folder / "cache")
        vectors = memory.library.index(SLICES).arrays()["vectors"].astype(np.float32)
        questions = [
            lme_scale.question(kept.goal, n) for n, kept in zip(range(50), memory.inserted.values(), strict=False)
        ]
        ranks = _bm25s(state.tree for trajectory in opened.read(opened.ids) for state in trajectory.states)
        found: Found = {
            f"insert states/s, {states} states": {"ours": inserted["states_per_second"]},
            f"search p50 ms, {states} states": {"ours": queried["search_p50_ms"]},
            f"query p50 ms, {states} states": {"ours": queried["query_p50_ms"]},
            f"query p95 ms, {states} states": {"ours": queried["query_p95_ms"]},
            f"peak MB, {states} states": {"ours": float(queried["peak_memory_mb"])},
        }
        if ranks is not None:
            asked = [(text, Hashing().query(text)) for text in questions]
            seconds = [_seconds(lambda q=q, v=v: (_best(vectors @ v), ranks(q))) for q, v in asked]
            found[f"search p50 ms, {states} states"]["peer"] = 1000 * statistics.median(seconds)
        return found


def _best(scores: np.ndarray, top: int = 100) -> np.ndarray:
    chosen = np.argpartition(scores, max(0, len(scores) - top))[-top:]
    return chosen[np.argsort(-scores[chosen])]


def _bm25s(texts: Iterable[str]) -> Callable[[str], Any] | None:
    """The library's index of the texts as a function of a question, or None where it is not installed."""
    if not find_spec("bm25s"):
        return None
    import bm25s

    from lme_v2_env.memory.slices import words

    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    # interned: 60,000 pages have 200 million words, and a text of its own for each would take 10 GB
    index.index([list(map(intern, words(text))) for text in texts], show_progress=False)
    return lambda question: index.retrieve([words(question)], k=100, show_progress=False)


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
