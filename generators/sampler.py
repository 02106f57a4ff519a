"""Curriculum hooks for group-relative training: which tasks are worth another group of rollouts.

A group whose rewards are all equal has no advantage to learn from. `has_signal` is the test; `CurriculumSampler` spends
rollouts where it holds and moves on in difficulty as episodes become easy. Pure Python, deterministic, and small enough
for prime-rl's buffer or the local trainer to call between steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from generators.draw import Draw


def has_signal(rewards: Sequence[float], tolerance: float = 1e-6) -> bool:
    """Whether a group's rewards differ, so that its advantages are not all zero."""
    return max(rewards) - min(rewards) > tolerance if rewards else False


def with_signal(groups: Iterable[tuple[str, Sequence[float]]], tolerance: float = 1e-6) -> list[str]:
    """Task ids of the groups that a gradient step can use, in their order."""
    return [task for task, rewards in groups if has_signal(rewards, tolerance)]


@dataclass
class CurriculumSampler:
    """Draws task ids: unseen ones at the present difficulty, and known ones whose last group varied.

    A task whose last group was all right is retired for `rest` batches, an all-wrong one for twice as long; difficulty
    goes up by one when the mean reward of the last `window` groups at it reaches `promote_at`.
    """

    tasks: dict[str, int]
    """Task id -> difficulty (the episode's tag)."""
    seed: int = 0
    rest: int = 20
    window: int = 16
    promote_at: float = 0.7
    replay: int = 25
    """Percent of a batch that may come from known tasks with variance."""
    batch: int = 0
    level: int = field(init=False)
    _ready_at: dict[str, int] = field(default_factory=dict)
    _varied: dict[str, None] = field(default_factory=dict)
    _recent: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.level = min(self.tasks.values())

    def draw(self, count: int) -> list[str]:
        """Up to `count` different task ids for the next batch."""
        self.batch += 1
        draw = Draw(self.seed, f"batch {self.batch}")
        known = [t for t in self._varied if self._ready_at.get(t, 0) <= self.batch]
        chosen = draw.sample(known, min(len(known), count * self.replay // 100))
        for level in self._levels():
            fresh = [
                t
                for t, d in self.tasks.items()
                if d == level and t not in self._varied and self._ready_at.get(t, 0) <= self.batch
            ]
            chosen += draw.sample(fresh, min(len(fresh), count - len(chosen)))
            if len(chosen) == count:
                break
        # Where the fresh ones run out, known tasks with variance fill the batch rather than leave it short.
        spare = [t for t in known if t not in chosen]
        return chosen + draw.sample(spare, min(len(spare), count - len(chosen)))

    def _levels(self) -> list[int]:
        """The present difficulty first, then the others by distance, harder before easier."""
        return sorted(set(self.tasks.values()), key=lambda d: (abs(d - self.level), -d))

    def record(self, task: str, rewards: Sequence[float], best: float = 1.0) -> None:
        """Take in a finished group; `best` is the highest reward there is."""
        self._varied.pop(task, None)
        if has_signal(rewards):
            self._varied[task] = None
            self._ready_at[task] = self.batch + 1
        else:
            solved = bool(rewards) and min(rewards) >= best
            self._ready_at[task] = self.batch + self.rest * (1 if solved else 2)
        if self.tasks[task] == self.level and rewards:
            self._recent = [*self._recent, sum(rewards) / len(rewards)][-self.window :]
            top = max(self.tasks.values())
            if len(self._recent) == self.window and sum(self._recent) / self.window >= self.promote_at * best:
                if self.level < top:
                    self.level = min(d for d in self.tasks.values() if d > self.level)
                self._recent = []
