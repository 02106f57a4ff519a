"""What an agent's engine is asked for and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from eval.baselines.coding.accounting import Command
from eval.baselines.coding.output import FILE, MOST_BYTES
from eval.baselines.coding.sandbox import Mount, NoFile, Sandbox

TIME_UP, TURNS_UP, DONE = "time limit", "turn limit", "done"


@dataclass(frozen=True, slots=True)
class Effort:
    """One attempt of an agent. `output` is its file, or None with the reason in `missing`."""

    output: bytes | None
    missing: str
    ended: str
    commands: tuple[Command, ...]
    turns: int
    usage: dict[str, int] = field(default_factory=dict)
    failure: str = ""
    """What kept the model's endpoint from answering; then the agent is not to blame."""


class Engine(Protocol):
    """Drives a model in a sandbox over the files of one question."""

    @property
    def settings(self) -> dict[str, Any]: ...

    def attempt(self, mounts: Sequence[Mount], seconds: float, picture: bytes | None) -> Effort:
        """Let the agent work until it ends or the time is up. `picture` is the question's, for a model that sees."""
        ...


def collect(sandbox: Sandbox) -> tuple[bytes | None, str]:
    """The agent's file, or why there is none."""
    try:
        return sandbox.read(FILE, MOST_BYTES), ""
    except NoFile as error:
        return None, str(error)
