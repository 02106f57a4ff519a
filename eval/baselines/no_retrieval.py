"""No memory at all: what the reader knows without having seen the environment."""

from __future__ import annotations

from typing import Any

from eval.baselines import Kit
from lme_v2_env.memory.api import ContextItem
from lme_v2_env.trajectory import Question, Trajectory


class Nothing:
    """Forgets what is inserted and returns nothing."""

    def insert(self, trajectory: Trajectory) -> None:
        pass

    def query(self, question: str, image: bytes | None = None) -> list[ContextItem]:
        return []


class NoRetrieval:
    name = "no_retrieval"
    queries = inserts = False
    settings: dict[str, Any] = {}  # noqa: RUF012

    def covers(self, question: Question) -> bool:
        return True

    def memory(self) -> Nothing:
        return Nothing()


def build(name: str, kit: Kit) -> NoRetrieval:
    return NoRetrieval()
