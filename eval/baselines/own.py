"""A memory system from anywhere: `--system package.module:Class`, or whatever else makes one when it is called.

What it makes has `insert(trajectory)` and `query(question, image)` (`lme_v2_env.memory.api.Memory`). A `settings` dict
on it, if there is one, goes into the run's record: two runs share a folder only when it is equal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from eval.baselines import Kit
from lme_v2_env.memory.api import Memory
from lme_v2_env.trajectory import Question
from rewards.errors import UserError


class Own:
    queries = inserts = True

    def __init__(self, spec: str, make: Callable[[], Memory]) -> None:
        self.spec, self._make = spec, make
        self.name = spec.rpartition(":")[2]

    @property
    def settings(self) -> dict[str, Any]:
        return {"memory": self.spec, **getattr(self._make, "settings", {})}

    def covers(self, question: Question) -> bool:
        return True

    def memory(self) -> Memory:
        return self._make()


def build(name: str, kit: Kit) -> Own:
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a program that is installed does not look where it was started
    try:
        make = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f"system '{name}' cannot be had: {error}") from error
    if not callable(make):
        raise UserError(f"system '{name}' makes no memory: give a class or a function")
    return Own(name, make)
