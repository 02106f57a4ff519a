"""What the LME-V2 memory costs at the size of the medium tier: `python -m eval.lme_scale DIR --data FOLDER`.

The haystack is made from real runs by repetition with changed text: every copy of a state replaces words by others, so
that hardly two windows are equal and nothing is gained by remembering them (real haystacks repeat themselves more).
Embeddings are hashed words: the index does not care what a vector means, and no model is timed. Every phase is a
process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lme_v2_env.dataset import TRAJECTORY_NAMES, TrajectoryFile
from lme_v2_env.memory import snapshot
from lme_v2_env.memory.api import RetrievalConfig, RetrievalMemory
from lme_v2_env.memory.embed import Hashing
from lme_v2_env.memory.index import FUSED
from lme_v2_env.memory.library import SLICES, Library
from lme_v2_env.memory.store import Store
from lme_v2_env.tokens import CHARS_PER_TOKEN
from rewards.commands import Parser, answered
from rewards.errors import UserError

EXAMPLE = """example:
  python -m eval.lme_scale runs/medium --data worlds --trajectories 50 --states 10"""

PHASES = ("make", "insert", "open", "file")

QUERIES = 200

CHANGED = 0.25
"""Share of the words that a copy replaces."""

FILLER = 3500
"""Characters of another page appended to every state: with them the whole has the medium tier's 100 M tokens."""

LETTERS = re.compile(r"[A-Za-z]{4,}")


def main(args: list[str]) -> int:
    parser = Parser("python -m eval.lme_scale", (__doc__ or "").split("\n")[0], EXAMPLE)
    parser.add_argument("folder", type=Path, help="made files and results go here (about 1.7 GB at the default size)")
    parser.add_argument("--data", type=Path, required=True, help="folder with the trajectories to repeat")
    parser.add_argument("--trajectories", type=int, default=500)
    parser.add_argument("--states", type=int, default=30, help="of each (default 30: 15,000 in all)")
    parser.add_argument("--phase", choices=PHASES, help="one phase in this process (default: all, each in its own)")
    options = parser.read(args)
    return answered("lme-scale", lambda: _run(options, args), "start it again")


def _run(options: argparse.Namespace, args: list[str]) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.phase is None:
        for phase in PHASES:
            status = subprocess.run([sys.executable, "-m", "eval.lme_scale", *args, "--phase", phase]).returncode
            if status:
                return status
        return 0
    found = {"make": make, "insert": insert, "open": reopen, "file": big_file}[options.phase](options)
    found.setdefault("peak_memory_mb", _peak())
    print(json.dumps({"phase": options.phase} | found), flush=True)
    return 0


def make(options: argparse.Namespace) -> dict[str, Any]:
    """Write the haystack's file."""
    source = next((options.data / name for name in TRAJECTORY_NAMES if (options.data / name).is_file()), None)
    if source is None:
        raise UserError(f"--data {options.data}: neither {' nor '.join(TRAJECTORY_NAMES)} is in it")
    opened = TrajectoryFile.open(source, options.folder / "cache")
    rows = list(opened.read(opened.ids))
    chars = count = 0
    with (options.folder / "trajectories.jsonl").open("w", encoding="utf-8") as sink:
        states = _states(rows)
        for number in range(options.trajectories):
            made = []
            for index in range(options.states):
                state = next(states)
                other = rows[(number + index) % len(rows)].states[0].tree
                tree = _Change(f"{number} {index}")(f"{state.tree}\n{other[:FILLER]}")
                chars, count = chars + len(tree), count + 1
                made.append(
                    {
                        "state_index": index,
                        "step": index,
                        "url": state.url,
                        "action": state.action if index else None,
                        "thought": state.thought,
                        "accessibility_tree": tree,
                        "screenshot": None,
                    }
                )
            goal = _Change(str(number))(rows[number % len(rows)].goal)
            head = {"id": f"{number:08x}", "domain": "enterprise", "environment": "workarena", "goal": goal}
            row = head | {"outcome": "success", "start_url": made[0]["url"], "states": made}
            sink.write(json.dumps(row, ensure_ascii=False) + "\n")
    return {"states": count, "characters": chars, "tokens_estimated": round(chars / CHARS_PER_TOKEN)}


def _states(rows: list[Any]) -> Iterator[Any]:
    while True:
        for row in rows:
            yield from row.states


class _Change:
    """Replaces a share of the words, the same word by the same other one within a copy."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        return LETTERS.sub(self._word, text)

    def _word(self, match: re.Match[str]) -> str:
        word = match.group()
        if word not in self._known:
            letters = list(word)
            if self._random.random() < CHANGED:
                self._random.shuffle(letters)
            self._known[word] = "".join(letters)
        return self._known[word]


def question(goal: str, number: int) -> str:
    """What the memory is asked: a goal of the haystack in a sentence of its own."""
    return f"When working on the task '{goal}', which buttons does the page number {number} show?"


def memory_of(options: argparse.Namespace) -> RetrievalMemory:
    return RetrievalMemory(Library(Store(options.folder / "store"), Hashing()), RetrievalConfig())


def insert(options: argparse.Namespace) -> dict[str, Any]:
    """Insert everything into an empty store and keep a snapshot."""
    opened = TrajectoryFile.open(options.folder / "trajectories.jsonl", options.folder / "cache")
    for name in ("store", "snapshot"):  # of an earlier run here: of other trajectories, or nothing left to do
        shutil.rmtree(options.folder / name, ignore_errors=True)
    memory = memory_of(options)
    started = time.perf_counter()
    for trajectory in opened.read(opened.ids):
        memory.insert(trajectory)
    inserted = time.perf_counter()
    memory.prepare()
    prepared = time.perf_counter()
    snapshot.save(memory, options.folder / "snapshot")
    saved = time.perf_counter()
    states = sum(kept.states for kept in memory.inserted.values())
    return {
        "insert_seconds": round(inserted - started, 1),
        "states_per_second": round(states / (inserted - started), 1),
        "windows": memory.library.embedded,
        "join_seconds": round(prepared - inserted, 2),
        "snapshot_seconds": round(saved - prepared, 2),
        "store_bytes": _size(options.folder / "store"),
        "snapshot_bytes": _size(options.folder / "snapshot"),
    }


def reopen(options: argparse.Namespace) -> dict[str, Any]:
    """Open the file's offsets and the snapshot, then query.

    A query searches and writes the text of what it found; the search alone is timed apart, and so is the embedding.
    """
    started = time.perf_counter()
    opened = TrajectoryFile.open(options.folder / "trajectories.jsonl", options.folder / "cache")
    indexed = time.perf_counter()
    memory = memory_of(options)
    if not snapshot.load(memory, options.folder / "snapshot"):
        raise UserError(f"{options.folder}: no snapshot; --phase insert makes it")
    loaded = time.perf_counter()
    embedder = Hashing()
    seconds, busy, embedding, searching, vectors = [], [], [], [], []
    for number, kept in zip(range(QUERIES), memory.inserted.values(), strict=False):
        text = question(kept.goal, number)
        before = time.perf_counter()
        vector = embedder.query(text)
        middle = time.perf_counter()
        used = time.thread_time()
        memory.retrieve(text, vector)
        busy.append(time.thread_time() - used)
        seconds.append(time.perf_counter() - middle)
        embedding.append(middle - before)
        before = time.perf_counter()
        memory.search(SLICES, text, vector, FUSED)
        searching.append(time.perf_counter() - before)
        vectors.append(vector)
    peak = _peak()  # before the exhaustive searches, which no query makes
    agree = [_agreement(memory, vector) for vector in vectors[::20]]
    ordered = sorted(seconds)
    return {
        "offsets_seconds": round(indexed - started, 3),
        "rows": len(opened),
        "open_seconds": round(loaded - indexed, 3),
        "first_query_ms": round(1000 * seconds[0], 1),
        "query_p50_ms": round(1000 * statistics.median(seconds), 1),
        "query_p50_cpu_ms": round(1000 * statistics.median(busy), 1),
        "search_p50_ms": round(1000 * statistics.median(searching), 1),
        "query_p95_ms": round(1000 * ordered[int(0.95 * len(ordered))], 1),
        "embedding_p50_ms": round(1000 * statistics.median(embedding), 1),
        "peak_memory_mb": peak,
        "top6_as_exhaustive": round(statistics.mean(agree), 3),
    }


PUBLISHED_BYTES = 1_195_604_539
"""Size of the published trajectories.jsonl (1,870 rows)."""


def big_file(options: argparse.Namespace) -> dict[str, Any]:
    """A file of the published size: the first scan, opening it again, and reading one haystack of 100."""
    file = options.folder / "published_size.jsonl"
    if not file.is_file():
        written = number = 0
        with file.open("wb") as sink:
            while written < PUBLISHED_BYTES:
                with (options.folder / "trajectories.jsonl").open("rb") as source:
                    for line in source:
                        written += sink.write(b'{"id": "%08x"' % number + line[line.index(b",") :])
                        number += 1
    cache = options.folder / "cache-published-size"
    started = time.perf_counter()
    TrajectoryFile.open(file, cache)
    scanned = time.perf_counter()
    opened = TrajectoryFile.open(file, cache)
    again = time.perf_counter()
    states = sum(len(trajectory.states) for trajectory in opened.read(opened.ids[:100]))
    return {
        "bytes": file.stat().st_size,
        "rows": len(opened),
        "first_scan_seconds": round(scanned - started, 2),
        "open_again_seconds": round(again - scanned, 3),
        "read_100_trajectories_seconds": round(time.perf_counter() - again, 2),
        "states_read": states,
    }


def _agreement(memory: RetrievalMemory, vector: Any) -> float:
    """Share of an exhaustive dense search's best six that the two-pass search finds."""
    index = memory.library.index("slice")
    exhaustive = index.search(vector, None, None, 6, exhaustive=True)
    found = {hit[:2] for hit in index.search(vector, None, None, 6)}
    return sum(hit[:2] in found for hit in exhaustive) / len(exhaustive)


def _peak() -> int:
    """Most resident memory of this process so far, in MB (2^20 bytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
