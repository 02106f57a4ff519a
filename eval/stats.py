"""The small statistics of paired evaluations, written out so that no number hides in a library.

Two systems answer the same tasks. McNemar tests look at discordant pairs only, the bootstrap and the permutation test
treat the task as the unit: repeats and seeds of one task stay together, since they are no new tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

UNSCORED_LIMIT = 0.02
"""Share of unscored rows above which a run is INVALID: more could be hiding what made them fail."""

INVALID_EXIT = 3
"""Exit status of a command whose run is INVALID."""

ALPHA = 0.05
"""Below this an exact two-sided p counts as a difference."""

EXACT_TASKS = 16
"""Up to this many tasks that differ, the permutation test enumerates all 2^n sign patterns."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval."""

    low: float
    high: float


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Two-sided exact p of `only_a` against `only_b` discordant pairs: a fair coin, doubled smaller tail, at most 1."""
    n = only_a + only_b
    tail = sum(math.comb(n, k) for k in range(min(only_a, only_b) + 1))
    # Integers until the last division, so that thousands of pairs neither overflow nor lose digits.
    return min(1.0, 2 * tail / 2**n)


def mcnemar_corrected(only_a: int, only_b: int) -> tuple[float, float]:
    """McNemar's chi2 with Edwards' continuity correction, and its p with one degree of freedom.

    The form that arXiv 2606.27472 reports: 19 against 4 gives chi2 8.52 and p = 0.0035.
    """
    n = only_a + only_b
    if n == 0:
        return 0.0, 1.0
    chi2 = max(0, abs(only_a - only_b) - 1) ** 2 / n
    return chi2, math.erfc(math.sqrt(chi2 / 2))


def wilson(successes: float, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion.

    `successes` may be a fraction, as when repeats of a task are averaged: `n` counts tasks, so that repeats do not
    narrow the interval.
    """
    if n < 1:
        raise ValueError("a proportion needs at least one task")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # At 0 and 1 the exact bound is 0 or 1; rounding would leave 1e-17 beside it.
    return Interval(0.0 if successes <= 0 else centre - half, 1.0 if successes >= n else centre + half)


def paired_bootstrap(
    a: Sequence[float], b: Sequence[float], *, resamples: int = 10_000, seed: int = 0, confidence: float = 0.95
) -> Interval:
    """Percentile interval of mean(b) - mean(a), drawing whole tasks with replacement.

    `a[i]` and `b[i]` are the (mean) scores of the same task. The same seed gives the same interval.
    """
    difference = _differences([a], [b])
    n = len(difference)
    rng = np.random.default_rng(seed)
    # Counts per task instead of drawn indices: n numbers a resample, whatever the number of draws.
    even = np.full(n, 1 / n)
    means = np.concatenate([rng.multinomial(n, even, size=k) @ difference / n for k in _blocks(resamples, n)])
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def permutation_test(
    a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], *, resamples: int = 20_000, seed: int = 0
) -> float:
    """Two-sided p of mean(b) - mean(a) over seeds and tasks, clustered by task.

    `a[s][t]` is the score of task t under seed s of system A; A and B may have different numbers of seeds. Under the
    null hypothesis A and B may be swapped on any task, all its seeds at once. Exact up to `EXACT_TASKS` tasks that
    differ (then equal to the exact McNemar for one seed and scores of 0 and 1), otherwise by random signs with the
    observed one counted in, so that p is never 0.
    """
    difference = _differences(a, b)
    difference = difference[difference != 0]
    n = len(difference)
    observed = abs(float(difference.sum()))
    slack = 1e-9 * max(1.0, float(np.abs(difference).sum()))  # ties that differ by rounding are ties
    if n <= EXACT_TASKS:
        patterns = np.arange(2**n)[:, None] >> np.arange(n)[None, :] & 1
        return float((np.abs((1 - 2 * patterns) @ difference) >= observed - slack).mean())
    rng = np.random.default_rng(seed)
    drawn = (rng.choice([-1.0, 1.0], size=(k, n)) @ difference for k in _blocks(resamples, n))
    hits = sum(int((np.abs(sums) >= observed - slack).sum()) for sums in drawn)
    return (hits + 1) / (resamples + 1)


def _blocks(resamples: int, n: int) -> Iterator[int]:
    """Resamples in parts of at most 32 MB: all at once would take 800 MB for 10,000 tasks."""
    most = max(1, 4_000_000 // n)
    for first in range(0, resamples, most):
        yield min(most, resamples - first)


def _differences(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> np.ndarray:
    """Per task: mean over B's seeds minus mean over A's."""
    mean_a, mean_b = np.asarray(a, float).mean(axis=0), np.asarray(b, float).mean(axis=0)
    if mean_a.shape != mean_b.shape or mean_a.size == 0:
        raise ValueError(f"{mean_a.size} and {mean_b.size} tasks do not pair")
    return mean_b - mean_a
