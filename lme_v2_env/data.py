"""Which questions to play, and the memory of each one's world: made once, shared by all rollouts that ask about it.

A world is a set of trajectories with its questions: one that the generator makes from a seed, or a haystack of a folder
in the published layout. Splits are by world. `World` is a small frozen key; `explorer_of_world` makes the memory behind
it on first use and remembers the latest.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from lme_v2_env.dataset import TIERS, Dataset, open_dataset
from lme_v2_env.explore import Explorer, explorer_of
from lme_v2_env.memory.api import RetrievalConfig, RetrievalMemory
from lme_v2_env.memory.embed import embedder_from
from lme_v2_env.memory.library import Library
from lme_v2_env.memory.store import Store
from lme_v2_env.trajectory import EvidencePoint, Question
from rewards.errors import UserError, refuse_unknown

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "lme_v2_env"

REMEMBERED_WORLDS = 64
"""Memories kept in a process; a group's rollouts come together, so that few are needed at once."""

Search = Literal["bm25", "hybrid"]


@dataclass(frozen=True, slots=True)
class World:
    """Names a world. `number` is the haystack's place among those of the folder, in order of first use."""

    folder: str
    tier: str
    questions: str | None
    number: int
    search: Search = "bm25"
    embedder: str = "minilm"
    pictures: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One question with its world; everything about it that only the harness may know is here."""

    question: Question
    evidence: tuple[EvidencePoint, ...]
    world: World

    def to_record(self) -> dict[str, Any]:
        """JSON-ready."""
        question = asdict(self.question) | {"image": str(self.question.image) if self.question.image else None}
        return {"question": question, "evidence": [list(p) for p in self.evidence], "world": asdict(self.world)}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Task:
        question = dict(record["question"])
        question["image"] = Path(question["image"]) if question["image"] else None
        evidence = tuple(EvidencePoint(*point) for point in record["evidence"])
        return cls(Question(**question), evidence, World(**record["world"]))


@dataclass(frozen=True, slots=True)
class DataConfig:
    """What to load.

    Attributes:
        data: a folder in the published layout.
        tier: `small`, `medium` or `whole` (every trajectory of the file in one haystack a domain).
        questions: another questions.jsonl.
        domain: only this domain's questions.
        num_questions: take this many from the start; None takes all.
        search: `bm25` (default, no model) or `hybrid` with an embedder.
        embedder: of hybrid search: `minilm` or `hashing`.
    """

    data: str = "train"
    tier: str = "small"
    questions: str | None = None
    domain: str | None = None
    num_questions: int | None = None
    search: Search = "bm25"
    embedder: str = "minilm"

    def __post_init__(self) -> None:
        refuse_unknown([self.tier], TIERS, "tier")
        refuse_unknown([self.search], ("bm25", "hybrid"), "search")
        if self.num_questions is not None and self.num_questions < 1:
            raise UserError(f"num_questions is {self.num_questions}: give a positive number or leave it out")


@lru_cache(maxsize=8)
def _dataset(folder: str, tier: str, questions: str | None) -> Dataset:
    return open_dataset(Path(folder), tier, CACHE.expanduser(), questions=Path(questions) if questions else None)


def load_tasks(config: DataConfig, *, pictures: bool, judged: bool, premises: bool) -> tuple[Task, ...]:
    """The tasks that `config` names. What cannot be scored is left out with a warning, never silently.

    Args:
        pictures: whether the memory returns screenshots.
        judged: whether there is a judge for questions that need one.
        premises: whether questions with a wrong premise are played without one.
    """
    tasks: list[Task] = []
    left_out = 0
    for task in _from_folder(config, pictures):
        question = task.question
        if question.needs_judge and not judged and not (premises and question.premise):
            left_out += 1
        else:
            tasks.append(task)
        if len(tasks) == config.num_questions:
            break
    if left_out:
        logging.getLogger(__name__).warning(
            "%s: n = %d (%d left out: they need a judge)", config.data, len(tasks), left_out
        )
    if not tasks:
        raise UserError(f"{config.data}: no question to play" + (" without a judge" if left_out else ""))
    return tuple(tasks)


def _from_folder(config: DataConfig, pictures: bool) -> Iterator[Task]:
    folder = str(Path(config.data).expanduser().resolve())
    questions = str(Path(config.questions).expanduser().resolve()) if config.questions else None
    dataset = _dataset(folder, config.tier, questions)
    numbers = {haystack: number for number, (haystack, _) in enumerate(dataset.groups())}
    for question in dataset.questions:
        if config.domain in (None, question.domain):
            number = numbers[dataset.haystacks[question.id]]
            world = World(folder, config.tier, questions, number, config.search, config.embedder, pictures)
            yield Task(question, tuple(dataset.evidence.get(question.id, ())), world)


@lru_cache(maxsize=REMEMBERED_WORLDS)
def explorer_of_world(world: World) -> Explorer:
    """The world's memory. Raises `UserError` when its data is gone or the embedder cannot be had."""
    dataset = _dataset(world.folder, world.tier, world.questions)
    haystack = dataset.groups()[world.number][0]
    store = Store(CACHE.expanduser() / "store")
    picture = dataset.trajectories.screenshot if world.pictures else None
    return explorer_of(dataset.trajectories.read(haystack), _memory(world, store, picture))


def _memory(world: World, store: Store, picture: Any) -> RetrievalMemory:
    embedder = embedder_from(world.embedder) if world.search == "hybrid" else None
    config = RetrievalConfig(mode=world.search, slices=1, notes=1, events=1)
    return RetrievalMemory(Library(store, embedder), config, picture)


def task_ids(tasks: Sequence[Task]) -> list[str]:
    return [task.question.id for task in tasks]
