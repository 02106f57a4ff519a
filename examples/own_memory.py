"""A memory of one's own for LongMemEval-V2: the page that shares most words with the question.

python -m eval lme-v2 --system examples.own_memory:Words --data FOLDER --reader extractive --no-judge --out runs/own
"""

from lme_v2_env.trajectory import Trajectory


class Words:
    def __init__(self) -> None:
        self.pages: list[str] = []

    def insert(self, trajectory: Trajectory) -> None:
        self.pages += [state.tree for state in trajectory.states]

    def query(self, question: str, image: bytes | None = None) -> list[dict[str, str]]:
        words = set(question.lower().split())
        best = max(self.pages, key=lambda page: len(words & set(page.lower().split())))
        return [{"type": "text", "value": best}]
