"""A memory of one's own for LongMemEval-V2: the three pages that share most words with the question."""

from lme_v2_env.memory.api import ContextItem
from lme_v2_env.trajectory import Trajectory


class Words:
    def __init__(self) -> None:
        self.pages: list[tuple[set[str], ContextItem]] = []

    def insert(self, trajectory: Trajectory) -> None:
        for state in trajectory.states:
            item = ContextItem("text", state.tree, shows=((trajectory.id, state.index),))
            self.pages.append((set(state.tree.lower().split()), item))

    def query(self, question: str, image: bytes | None = None) -> list[ContextItem]:
        words = set(question.lower().split())
        best = sorted(self.pages, key=lambda page: len(words & page[0]), reverse=True)
        return [item for _, item in best[:3]]
