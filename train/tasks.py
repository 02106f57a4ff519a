"""What the trainer needs of an environment: tasks by number, rollouts in progress, and what a rollout came to.

An environment is plugged in by a module with `tasks(config) -> Tasks` (train/supersede.py), which drives its own
protocol objects; the trainer knows nothing else of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

MODULES = {"supersede": "train.supersede", "lme-v2": "train.lme_v2"}
"""Environment -> the module that plugs it in."""

OVER_WINDOW = "over window"
"""`unscored_reason` of a rollout whose prompt did not fit the model."""

Messages = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Example:
    """One turn of a teacher: the prompt and the reply to learn."""

    prompt: tuple[Any, ...]
    reply: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a finished rollout came to.

    Attributes:
        reward: the scalar that is trained on; `None` for an unscored rollout, which then learns nothing.
        verdict: the grader's word for it; `correct` is what a curriculum counts. `None` when unscored.
        record: the JSON-ready row for rollouts.jsonl; when unscored it holds `unscored_reason`.
        credits: for each turn, what that turn itself is credited with, or `None` where nothing can be said.
        counts: summed over the rollouts of a step into its metrics.
    """

    reward: float | None
    verdict: str | None
    record: dict[str, Any]
    credits: tuple[float | None, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)


class Play(Protocol):
    """One rollout in progress over the environment's protocol object."""

    @property
    def done(self) -> bool: ...

    @property
    def max_new_tokens(self) -> int:
        """The limit of the next reply."""
        ...

    def prompt(self) -> Any: ...

    def step(self, reply: str) -> None: ...

    def result(self) -> Result:
        """Of a finished rollout, or of one that was given up because a prompt did not fit the window."""
        ...


class Task(Protocol):
    """Something to train on."""

    @property
    def id(self) -> str: ...

    def start(self) -> Play: ...

    def examples(self) -> list[Example]:
        """A teacher's turns for the warm start. Raises `UserError` where there is no teacher."""
        ...


class Tasks(Protocol):
    """An environment's training tasks."""

    def task(self, number: int, preset: str | None = None) -> Task:
        """Task `number`, counted from 0, of `preset` or of the configured data."""
        ...

    def validation(self, count: int) -> Sequence[Task]:
        """The first `count` tasks of the validation split that belongs to the training data. Raises `UserError`
        where there is none."""
        ...

    def next_command(self, adapter: Path) -> str:
        """The command that evaluates a trained adapter, played as in training."""
        ...


def load_tasks(config: Any) -> Tasks:
    """The tasks of `config.env`."""
    return import_module(MODULES[config.env]).tasks(config)


def total_counts(results: Sequence[Result]) -> dict[str, int]:
    """Counts of all results, summed by name."""
    total: dict[str, int] = {}
    for result in results:
        for name, count in result.counts.items():
            total[name] = total.get(name, 0) + count
    return total
