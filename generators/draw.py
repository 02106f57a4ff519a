"""A small integer random source whose bytes are the same on every machine and Python version.

`random.Random.choice`, `shuffle` and `sample` may change between Python releases, so the generator uses its own
splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): one 64-bit state, integer
arithmetic only, no floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import gcd
from typing import TypeVar

T = TypeVar("T")
MASK = (1 << 64) - 1


@cache
def _strides(n: int) -> tuple[int, ...]:
    """The steps that visit all n places before they come back."""
    return tuple(k for k in range(1, n + 1) if gcd(k, n) == 1)


class Draw:
    """A stream of draws; `Draw(seed, "label")` gives streams that are independent for different labels."""

    __slots__ = ("state",)

    def __init__(self, seed: int, label: str = "") -> None:
        state = seed & MASK
        for byte in label.encode():
            state = (state * 0x100000001B3 ^ byte) & MASK
        self.state = state

    def below(self, n: int) -> int:
        """An integer in 0..n-1 (the bias of the multiply-shift is below 2**-50 for the sizes used here)."""
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) * n) >> 64

    def between(self, bounds: tuple[int, int]) -> int:
        """An integer between both bounds, both included."""
        low, high = bounds
        return low + self.below(high - low + 1)

    def percent(self, chance: int) -> bool:
        return self.below(100) < chance

    def pick(self, items: Sequence[T]) -> T:
        # `below`, written out: nearly half of all draws come through here.
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return items[((z ^ (z >> 31)) * len(items)) >> 64]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out

    def deck(self, items: Sequence[T]) -> list[T]:
        """All items in an order of random start and stride: two draws instead of one an item, for idle talk."""
        n = len(items)
        at, stride = self.below(n), self.pick(_strides(n))
        return [items[(at + k * stride) % n] for k in range(n)]

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """k different items in random order; cheap for a small k out of a long list."""
        if k * 3 > len(items):
            return self.shuffled(items)[:k]
        seen: dict[int, T] = {}
        while len(seen) < k:
            i = self.below(len(items))
            if i not in seen:
                seen[i] = items[i]
        return list(seen.values())

    def weighted(self, weights: Sequence[tuple[T, int]]) -> T:
        """One of the (item, weight) pairs, by integer weight."""
        point = self.below(sum(weight for _, weight in weights))
        for item, weight in weights:
            if point < weight:
                return item
            point -= weight
        raise AssertionError("unreachable: the point lies below the sum of the weights")
