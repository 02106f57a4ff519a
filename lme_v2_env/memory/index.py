"""Dense and BM25 search over entries, in numpy, for many haystacks over one pool.

A block holds the entries of one trajectory. Blocks are added once and shared: a haystack is a set of blocks, and a
search in it counts document frequencies and lengths over its own entries only, so that a score is what an index built
for that haystack alone would give. Postings keep counts instead of finished scores for this reason.

Dense: the score of an entry is its best window's dot product. Above `EXACT_WINDOWS` windows a first pass runs over the
leading principal directions, and the best `RESCORED` windows are scored again with their whole vectors.
BM25: the Lucene variant, k1 = 1.5, b = 0.75 (the default of the bm25s library, with which a test compares it). It is
not the library's own index because that one fixes the weights of a whole corpus: it cannot grow, and its mask for a
subset keeps the document frequencies of the whole, so that a question's ranking would depend on the other questions of
the run. Made anew for each of the 447 medium haystacks it would cost 7 s of CPU at 15,000 states, once for every pool;
this one takes a haystack out of a pool in 2 ms.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from lme_v2_env.memory.embed import BadVectors
from lme_v2_env.memory.slices import words
from lme_v2_env.memory.store import Arrays

K1, B = 1.5, 0.75

FUSION_CONSTANT = 60
"""Reciprocal rank fusion (Cormack et al. 2009): score = sum of 1 / (60 + rank)."""

FUSED = 100
"""Ranks that each side hands to the fusion."""

EXACT_WINDOWS = 60_000
"""Up to this many windows every one is scored with its whole vector (92 MB at 384 dimensions)."""

COARSE_DIMENSIONS = 64
RESCORED = 2000
"""Windows that are scored again with their whole vectors."""

SLAB = 20_000
"""Vectors that are turned into float32 at once (31 MB at 384 dimensions)."""

STOP_WORDS = frozenset(
    words(
        "a an and are as at be by can do does for from how i if in is it its may of on or our that the their there "
        "these this to was we what when where which who will with you your"
    )
)
"""Left out of queries only; they would cost time and tell nothing."""


class Hit(NamedTuple):
    """`block` as numbered by `add`, `entry` within the block, and the score that ranked it."""

    block: int
    entry: int
    score: float


@dataclass(frozen=True, slots=True)
class Block:
    """The entries of one trajectory. Windows are ordered by entry; postings by term, then entry."""

    vectors: np.ndarray
    """float16, (windows, dimensions), unit rows."""
    first_window: np.ndarray
    """int32, (entries + 1): where the windows of each entry begin."""
    terms: np.ndarray
    """uint64, sorted: hashes of the words."""
    first_posting: np.ndarray
    """int32, (terms + 1)."""
    docs: np.ndarray
    """int32: entry of each posting."""
    counts: np.ndarray
    """uint16: how often the word is in it."""
    lengths: np.ndarray
    """int32, (entries): words."""

    @property
    def entries(self) -> int:
        return len(self.lengths)


def term_hash(word: str) -> int:
    """64 bits of BLAKE2: the same in every process, so that postings can be kept."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())


def term_arrays(texts: Sequence[str], hashes: dict[str, int]) -> Arrays:
    """The BM25 side of a block. `hashes` remembers term hashes between calls."""
    postings: dict[str, list[tuple[int, int]]] = {}
    lengths = np.zeros(len(texts), dtype=np.int32)
    for number, text in enumerate(texts):
        counted = Counter(words(text))
        lengths[number] = counted.total()
        for word, count in counted.items():
            postings.setdefault(word, []).append((number, min(count, 65_535)))
    for word in postings:
        if word not in hashes:
            hashes[word] = term_hash(word)
    ordered = sorted(postings, key=hashes.__getitem__)
    flat = np.array([pair for word in ordered for pair in postings[word]], dtype=np.int64).reshape(-1, 2)
    sizes = [len(postings[word]) for word in ordered]
    return {
        "terms": np.array([hashes[word] for word in ordered], dtype=np.uint64),
        "first_posting": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        "docs": flat[:, 0].astype(np.int32),
        "counts": flat[:, 1].astype(np.uint16),
        "lengths": lengths,
    }


@dataclass(frozen=True, slots=True)
class _Segment:
    """Several blocks in one: the arrays of `Block` with entries numbered through, and the coarse vectors."""

    block: Block
    owner: np.ndarray
    """int32, (entries): number of the block that each entry came from."""
    local: np.ndarray
    """int32, (entries): its number there."""
    exact: np.ndarray | None
    """float32 vectors, when there are few."""
    coarse: np.ndarray | None
    """float32, (windows, COARSE_DIMENSIONS), when there are many."""
    axes: np.ndarray | None
    """float32, (dimensions, COARSE_DIMENSIONS): the leading principal directions."""
    window_entry: np.ndarray
    """int32, (windows): the entry of each."""


MAX_SEGMENTS = 4


class Index:
    """Blocks, searched together. `add` is cheap; the first search after it joins what was added."""

    def __init__(self) -> None:
        self._count = 0
        self._dimensions = 0
        """Numbers of a vector; 0 while there is none."""
        self._waiting: list[tuple[int, Block]] = []
        self._segments: list[_Segment] = []

    def __len__(self) -> int:
        return self._count

    def add(self, block: Block) -> int:
        """Returns the block's number. Raises `BadVectors` when its vectors have another length than the index's."""
        if len(block.vectors):
            self._dimensions = self._dimensions or block.vectors.shape[1]
            if block.vectors.shape[1] != self._dimensions:
                raise BadVectors(
                    f"vectors of {block.vectors.shape[1]} numbers beside vectors of {self._dimensions}: did the "
                    "embedder change under its name? Give another --cache"
                )
        self._waiting.append((self._count, block))
        self._count += 1
        return self._count - 1

    def prepare(self) -> None:
        """Join what was added since, so that the next search does not pay for it."""
        if not self._waiting:
            return
        waiting = self._waiting
        if len(self._segments) >= MAX_SEGMENTS:
            waiting = [*((-1, segment) for segment in self._segments), *waiting]
            self._segments = []
        self._segments.append(_join(waiting))
        self._waiting = []

    def arrays(self) -> Arrays:
        """Everything, joined, for keeping on disk."""
        self.prepare()
        if len(self._segments) > 1:
            self._segments = [_join([(-1, segment) for segment in self._segments])]
        segment = self._segments[0]
        named = {name: getattr(segment.block, name) for name in Block.__slots__}
        more = {"owner": segment.owner, "local": segment.local, "coarse": segment.coarse, "axes": segment.axes}
        return named | {name: array for name, array in more.items() if array is not None}

    @classmethod
    def of(cls, arrays: Arrays, blocks: int) -> Index:
        """The index that `arrays` came from; the arrays may be memory-mapped files."""
        index = cls()
        index._count = blocks
        index._dimensions = arrays["vectors"].shape[1] if len(arrays["vectors"]) else 0
        arrays = {name: np.asarray(array) for name, array in arrays.items()}  # a memmap's own indexing is slow
        block = Block(**{name: arrays[name] for name in Block.__slots__})
        coarse, axes = arrays.get("coarse"), arrays.get("axes")
        exact = singles(block.vectors) if coarse is None else None
        entries = _window_entries(block.first_window)
        index._segments = [_Segment(block, arrays["owner"], arrays["local"], exact, coarse, axes, entries)]
        return index

    def search(
        self,
        vector: np.ndarray | None,
        text: str | None,
        blocks: Iterable[int] | None,
        top: int,
        *,
        fused: int = FUSED,
        exhaustive: bool = False,
    ) -> list[Hit]:
        """The best `top` entries of `blocks` (None: of all), best first; equal scores: the later entry first.

        With a vector and a text the two rankings are fused; with one of them it ranks alone. `exhaustive` scores every
        window with its whole vector however many there are.
        """
        self.prepare()
        if not self._segments or top < 1:
            return []
        if vector is not None and self._dimensions and len(vector) != self._dimensions:
            raise BadVectors(f"the query has {len(vector)} numbers, the index {self._dimensions}")
        allowed = None if blocks is None else np.isin(np.arange(self._count), np.fromiter(blocks, dtype=np.int64))
        masks = [None if allowed is None else allowed[segment.owner] for segment in self._segments]
        sides = []
        depth = top if vector is None or text is None else max(fused, top)
        if vector is not None:
            wanted = sys.maxsize if exhaustive else RESCORED
            scores = [
                _dense(segment, vector, mask, wanted) for segment, mask in zip(self._segments, masks, strict=True)
            ]
            sides.append(_best_places(np.concatenate(scores), depth))
        if text is not None:
            sides.append(_best_places(np.concatenate(self._bm25(text, masks)), depth))
        places, values = sides[0] if len(sides) == 1 else _fused(sides)
        return self._hits(places[:top], values[:top])

    def _hits(self, places: np.ndarray, values: np.ndarray) -> list[Hit]:
        """Hits of places: numbers of entries through all segments, in the order in which the entries were added."""
        owner = np.concatenate([segment.owner for segment in self._segments])
        local = np.concatenate([segment.local for segment in self._segments])
        return list(map(Hit, owner[places].tolist(), local[places].tolist(), values.tolist()))

    def _bm25(self, text: str, masks: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """BM25 of every entry; -inf where no word of the query is or the entry is not allowed."""
        lengths = [
            segment.block.lengths if mask is None else segment.block.lengths[mask]
            for segment, mask in zip(self._segments, masks, strict=True)
        ]
        n = sum(map(len, lengths))
        mean = sum(int(part.sum(dtype=np.int64)) for part in lengths) / max(n, 1)
        found = [np.zeros(segment.block.entries, dtype=np.float32) for segment in self._segments]
        norms = [
            (K1 * (1 - B + B * segment.block.lengths / max(mean, 1e-9))).astype(np.float32)
            for segment in self._segments
        ]
        for word, repeats in Counter(word for word in words(text) if word not in STOP_WORDS).items():
            term = np.uint64(term_hash(word))
            parts = [_postings(segment, term, mask) for segment, mask in zip(self._segments, masks, strict=True)]
            frequency = sum(len(docs) for docs, _ in parts)
            if not frequency:
                continue
            idf = np.log1p((n - frequency + 0.5) / (frequency + 0.5))
            for scores, norm, (docs, counts) in zip(found, norms, parts, strict=True):
                scores[docs] += np.float32(repeats * idf) * counts / (counts + norm[docs])
        for scores in found:
            scores[scores == 0] = -np.inf
        return found


def _best_places(scores: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the `top` best finite scores are, best first (of equal ones the later), and those scores."""
    places = np.flatnonzero(np.isfinite(scores))
    if len(places) > top:
        cut = np.partition(scores[places], len(places) - top)[len(places) - top]
        places = places[scores[places] >= cut]
    places = places[::-1]
    places = places[np.argsort(-scores[places], kind="stable")][:top]
    return places, scores[places]


def _fused(sides: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The reciprocal rank fusion of rankings."""
    places, inverse = np.unique(np.concatenate([places for places, _ in sides]), return_inverse=True)
    ranks = np.concatenate([np.arange(1, len(places) + 1) for places, _ in sides])
    scores = np.bincount(inverse, weights=1.0 / (FUSION_CONSTANT + ranks), minlength=len(places))
    best, values = _best_places(scores, len(scores))
    return places[best], values


def _postings(segment: _Segment, term: np.uint64, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    block = segment.block
    place = int(np.searchsorted(block.terms, term))
    if place == len(block.terms) or block.terms[place] != term:
        return block.docs[:0], block.counts[:0].astype(np.float32)
    start, end = block.first_posting[place], block.first_posting[place + 1]
    docs, counts = block.docs[start:end], block.counts[start:end].astype(np.float32)
    if mask is not None:
        kept = mask[docs]
        docs, counts = docs[kept], counts[kept]
    return docs, counts


def _dense(segment: _Segment, vector: np.ndarray, mask: np.ndarray | None, rescored: int) -> np.ndarray:
    """The best window's dot product of every entry; -inf where there is none or the entry is not scored."""
    block = segment.block
    if not len(block.vectors):  # of runs without a transition, say: nothing tells how long a vector would be
        return np.full(block.entries, -np.inf, dtype=np.float32)
    if segment.exact is not None:
        scores = _best_windows(segment.exact @ vector, block.first_window)
        if mask is not None:
            scores[~mask] = -np.inf
        return scores
    assert segment.coarse is not None
    assert segment.axes is not None
    rough = segment.coarse @ (vector @ segment.axes)
    owners = np.asarray(segment.window_entry)
    if mask is not None:
        rough[~mask[owners]] = -np.inf
    chosen = np.arange(len(rough))
    if rescored < len(rough):
        chosen = np.sort(np.argpartition(rough, len(rough) - rescored)[len(rough) - rescored :])
    chosen = chosen[np.isfinite(rough[chosen])]
    scores = np.full(block.entries, -np.inf, dtype=np.float32)
    for start in range(0, len(chosen), SLAB):
        part = chosen[start : start + SLAB]
        np.maximum.at(scores, owners[part], singles(block.vectors[part]) @ vector)
    return scores


def _best_windows(products: np.ndarray, first_window: np.ndarray) -> np.ndarray:
    """Maximum over the windows of each entry; -inf for entries without a window."""
    starts = first_window[:-1]
    filled = np.flatnonzero(starts != first_window[1:])
    best = np.full(len(starts), -np.inf, dtype=np.float32)
    if len(filled):
        best[filled] = np.maximum.reduceat(products, starts[filled])
    return best


def _join(parts: Sequence[tuple[int, Block | _Segment]]) -> _Segment:
    """One segment from blocks and segments. Vectors stay float16; the float32 side is made anew."""
    blocks = [part.block if isinstance(part, _Segment) else part for _, part in parts]
    entries = [block.entries for block in blocks]
    owner = [
        part.owner if isinstance(part, _Segment) else np.full(part.entries, number, dtype=np.int32)
        for number, part in parts
    ]
    local = [part.local if isinstance(part, _Segment) else np.arange(part.entries, dtype=np.int32) for _, part in parts]
    base = np.concatenate([[0], np.cumsum(entries)[:-1]])
    vectors = np.concatenate([block.vectors for block in blocks if len(block.vectors)] or [blocks[0].vectors])
    first_window = _chained([block.first_window for block in blocks])
    terms, first_posting, gather = _joined_terms(blocks)
    docs = np.concatenate([block.docs + np.int32(start) for block, start in zip(blocks, base, strict=True)])[gather]
    counts = np.concatenate([block.counts for block in blocks])[gather]
    joined = Block(
        vectors, first_window, terms, first_posting, docs, counts, np.concatenate([b.lengths for b in blocks])
    )
    exact, coarse, axes = _float_side(vectors)
    return _Segment(
        joined, np.concatenate(owner), np.concatenate(local), exact, coarse, axes, _window_entries(first_window)
    )


def _window_entries(first_window: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(first_window) - 1, dtype=np.int32), np.diff(first_window))


def _chained(starts: Sequence[np.ndarray]) -> np.ndarray:
    """Several (n + 1) offset arrays as one."""
    sizes = np.concatenate([np.diff(part) for part in starts])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def _joined_terms(blocks: Sequence[Block]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unique terms, where their postings begin, and the order in which the blocks' postings are to be taken."""
    all_terms = np.concatenate([block.terms for block in blocks])
    sizes = np.concatenate([np.diff(block.first_posting) for block in blocks]).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    order = np.argsort(all_terms, kind="stable")
    sizes, starts, ordered = sizes[order], starts[order], all_terms[order]
    placed = np.concatenate([[0], np.cumsum(sizes)])
    gather = np.repeat(starts - placed[:-1], sizes) + np.arange(placed[-1])
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, dtype=bool)
    first = np.flatnonzero(new)
    return ordered[first], np.concatenate([placed[first], placed[-1:]]).astype(np.int64), gather


@cache
def _all_halves() -> np.ndarray:
    """The float32 of each of the 65,536 float16, by its bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def singles(halves: np.ndarray) -> np.ndarray:
    """float16 as float32: looked up, which takes a quarter of the time of numpy's conversion."""
    return np.take(_all_halves(), np.ascontiguousarray(halves).view(np.uint16))


def _float_side(vectors: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """(exact, coarse, axes): whole float32 vectors of a small index, or a large one's leading directions."""
    if len(vectors) <= EXACT_WINDOWS or vectors.shape[1] <= COARSE_DIMENSIONS:
        return singles(vectors), None, None
    step = max(1, len(vectors) // 20_000)
    sample = singles(vectors[::step])
    # not centred: dot products are to be kept, not variances
    _, directions = np.linalg.eigh(sample.T @ sample)
    axes = np.ascontiguousarray(directions[:, -COARSE_DIMENSIONS:])
    coarse = np.empty((len(vectors), COARSE_DIMENSIONS), dtype=np.float32)
    for start in range(0, len(vectors), 20_000):
        coarse[start : start + 20_000] = singles(vectors[start : start + 20_000]) @ axes
    return None, coarse, axes
