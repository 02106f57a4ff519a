"""Retrieval with the question itself as the query: state slices, with or without notes. No model at query time."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from eval.baselines import Kit
from lme_v2_env.memory.api import RetrievalConfig, RetrievalMemory
from lme_v2_env.memory.library import library_settings
from lme_v2_env.trajectory import Question

NOTES = 3
"""Procedure notes, and as many hints, of the published RAG with notes."""


class Rag:
    queries = inserts = True

    def __init__(self, name: str, kit: Kit, config: RetrievalConfig) -> None:
        self.name, self.kit, self.config = name, kit, config

    @property
    def settings(self) -> dict[str, Any]:
        return asdict(self.config) | {"library": library_settings(self.kit.library()), "pictures": self.kit.pictures}

    def covers(self, question: Question) -> bool:
        return True

    def memory(self) -> RetrievalMemory:
        return RetrievalMemory(self.kit.library(), self.config, self.kit.picture())


def build(name: str, kit: Kit) -> Rag:
    return Rag(name, kit, replace(kit.retrieval, notes=NOTES if name == "rag_slice_notes" else 0))
