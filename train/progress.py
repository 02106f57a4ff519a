"""What a training run shows: a live bar on a terminal, one plain line a step elsewhere; wandb when asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, Self

from rewards.errors import UserError
from train.local_config import Wandb


class Reporter:
    """Context manager over a run; `phase` begins a bar, `step` reports one step of it."""

    def __init__(self, wandb: Wandb, run_config: dict[str, Any], folder: str) -> None:
        self._wandb = _start_wandb(wandb, run_config, folder) if wandb.project else None
        self._bar: Any = None
        self._task: Any = None
        self._phase, self._total = "", 0
        self._seconds: list[float] = []
        self._deadline: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_bar()
        if self._wandb is not None:
            self._wandb.finish()

    def phase(self, name: str, done: int, total: int, deadline: float | None = None) -> None:
        """Begin a phase of `total` steps, `done` of them made before; `deadline` is a `time.monotonic` value."""
        self._stop_bar()
        self._phase, self._total, self._deadline = name, total, deadline
        self._seconds = []
        if sys.stderr.isatty():
            self._bar, self._task = _bar(name, done, total)

    def note(self, line: str) -> None:
        """One line that stays."""
        if self._bar is not None:
            self._bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def doing(self, what: str) -> None:
        """What the current step is busy with; shown on a terminal only."""
        if self._bar is not None:
            self._bar.update(self._task, doing=what)

    def step(self, row: Mapping[str, Any]) -> None:
        """Report one finished step from its metrics row."""
        self._seconds.append(row["seconds"])
        text = describe(row)
        left = f"{self.left(row['step']) / 60:.1f} min left"
        if self._bar is not None:
            self._bar.update(self._task, completed=row["step"], doing=f"{text}, {left}")
        else:
            self.note(f"{self._phase} {row['step']}/{self._total}: {text}, {row['seconds']:.0f} s, {left}")
        if self._wandb is not None:
            self._wandb.log({f"{self._phase}/{key}": value for key, value in _flat(row)})

    def left(self, done: int) -> float:
        """Seconds left in this phase, by the mean of the last steps and the deadline."""
        recent = self._seconds[-5:]
        by_steps = (self._total - done) * sum(recent) / max(1, len(recent))
        return by_steps if self._deadline is None else max(0.0, min(by_steps, self._deadline - time.monotonic()))

    def _stop_bar(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def describe(row: Mapping[str, Any]) -> str:
    """A step's metrics in a few words."""
    if "reward" not in row:
        return f"loss {row['loss']:.3f}, {row['tokens_per_second']:.0f} tokens/s"
    reward = "none" if row["reward"] is None else f"{row['reward']:.3f}"
    scored = sum(row["verdicts"].values())
    unscored = f" ({row['rollouts'] - scored} unscored)" if scored < row["rollouts"] else ""
    return (
        f"reward {reward}, {row['verdicts'].get('correct', 0)}/{scored} correct{unscored}, "
        f"{row['varied_groups']}/{row['groups']} groups varied, {row['tokens_per_second']:.0f} tokens/s"
    )


def _flat(row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    flat = []
    for key, value in row.items():
        flat += [(f"{key}/{name}", v) for name, v in value.items()] if isinstance(value, Mapping) else [(key, value)]
    return flat


def _bar(name: str, done: int, total: int) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = ("{task.description}", BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn())
    texts = TextColumn("{task.fields[doing]}")
    bar = Progress(SpinnerColumn(), *columns, texts, console=Console(stderr=True))
    bar.start()
    return bar, bar.add_task(name, total=total, completed=done, doing="")


def _start_wandb(settings: Wandb, config: dict[str, Any], folder: str) -> Any:
    try:
        import wandb
    except ModuleNotFoundError:
        raise UserError("wandb.project is set, but wandb is not installed: pip install wandb") from None
    return wandb.init(project=settings.project, mode=settings.mode, dir=folder, config=config)
