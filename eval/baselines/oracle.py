"""Perfect retrieval, where the evidence of a question is known: whole trajectories, or slices around it with notes.

What a better memory could reach at most with this reader. The evidence reaches the memory here, and only here, by the
text of the question, so that the memory API stays what it is for every other system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from eval.baselines import Kit
from lme_v2_env.memory.api import ContextItem, Inserted, RetrievalConfig, RetrievalMemory, note_text
from lme_v2_env.memory.library import HINTS, PROCEDURES, library_settings
from lme_v2_env.trajectory import EvidencePoint, Question
from rewards.errors import UserError

Points = tuple[EvidencePoint, ...]


class OracleMemory(RetrievalMemory):
    """Knows which states answer which question text."""

    def __init__(self, kit: Kit, config: RetrievalConfig, points: Mapping[str, list[Points]], whole: bool):
        super().__init__(kit.library(), config, kit.picture())
        self._points, self._whole = points, whole

    def query(self, question: str, image: bytes | None = None) -> list[ContextItem]:
        known = self._points[question]
        # of one text are questions of other worlds, whose evidence is not here, and of other pictures, which share it
        here = [points for points in known if all(point.trajectory_id in self.inserted for point in points)]
        points = tuple(dict.fromkeys(point for points in here or known for point in points))
        return self._trajectories(points) if self._whole else self._around(points)

    def _trajectories(self, points: Points) -> list[ContextItem]:
        items: list[ContextItem] = []
        for rank, name in enumerate(dict.fromkeys(point.trajectory_id for point in points), 1):
            kept = self._kept(name)
            items += self.slice_items(kept, range(kept.states), None, rank)
        return items

    def _around(self, points: Points) -> list[ContextItem]:
        names = dict.fromkeys(point.trajectory_id for point in points)
        texts = [
            note_text(kept, kind, number)
            for kind in (PROCEDURES, HINTS)
            for number, kept in enumerate(map(self._kept, names), 1)
        ]
        items = [ContextItem("text", "Notes from earlier runs\n\n" + "\n\n".join(texts))]
        for rank, point in enumerate(points, 1):
            kept = self._kept(point.trajectory_id)
            if point.state_index >= kept.states:
                raise UserError(f"the evidence names state {point.state_index} of {kept.id}, which has {kept.states}")
            items += self.slice_items(kept, kept.span(point.state_index, self.config.radius), point.state_index, rank)
        return items

    def _kept(self, trajectory_id: str) -> Inserted:
        if trajectory_id not in self.inserted:
            raise UserError(f"the evidence is in trajectory {trajectory_id}, which the haystack does not hold")
        return self.inserted[trajectory_id]


class Oracle:
    queries, inserts = False, True

    def __init__(self, name: str, kit: Kit) -> None:
        self.name, self.kit = name, kit
        self.whole = name == "oracle_trajectories"
        # nothing is searched, so that nothing need be embedded
        self.config = RetrievalConfig(mode="bm25", slices=0, notes=0 if self.whole else 1, radius=kit.retrieval.radius)
        self.points: dict[str, list[Points]] = {}
        for question in kit.dataset.questions:
            if points := kit.dataset.evidence.get(question.id):
                self.points.setdefault(question.text, []).append(tuple(points))

    @property
    def settings(self) -> dict[str, Any]:
        return asdict(self.config) | {"library": library_settings(self.kit.library()), "pictures": self.kit.pictures}

    def covers(self, question: Question) -> bool:
        return bool(self.kit.dataset.evidence.get(question.id))

    def memory(self) -> OracleMemory:
        return OracleMemory(self.kit, self.config, self.points, self.whole)


def build(name: str, kit: Kit) -> Oracle:
    return Oracle(name, kit)
