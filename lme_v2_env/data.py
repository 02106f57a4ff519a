"""Which questions to play, and the memory of each one's world: made once, shared by all rollouts that ask about it.

A world is a set of trajectories with its questions: one that the generator makes from a seed, or a haystack of a folder
in the published layout. Splits are by world. `World` is a small frozen key; `explorer_of_world` makes the memory behind
it on first use and remembers the latest.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
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
from lme_v2_env.trajectory import EvidencePoint, Question, question_from, trajectory_from
from rewards.errors import UserError, refuse_unknown

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "lme_v2_env"

REMEMBERED_WORLDS = 128
"""Memories kept in a process; a group's rollouts come together, so that few are needed at once."""

SPLIT_WORLDS = {"train": 100, "validation": 20, "heldout": 20}
"""Worlds of each generated split when `num_worlds` does not say."""

Search = Literal["bm25", "hybrid"]


@dataclass(frozen=True, slots=True)
class World:
    """Names a world: a generator's seed, or one haystack of a folder.

    `number` is the haystack's place among those of the folder, in order of first use.
    """

    seed: int | None = None
    preset: str = "standard"
    folder: str = ""
    tier: str = ""
    questions: str | None = None
    number: int = 0
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
        data: `train`, `validation` or `heldout` (generated worlds), or a folder in the published layout.
        preset: of generated worlds: `standard`, or `easy` for small models.
        num_worlds: so many generated worlds; None: 100 to train, 20 of the other splits.
        first_world: leave out this many worlds of the split.
        tier: of a folder: `small`, `medium` or `whole` (every trajectory of the file in one haystack a domain).
        questions: of a folder: another questions.jsonl.
        domain: only this domain's questions.
        num_questions: take this many from the start; None takes all.
        search: `bm25` (default, no model) or `hybrid` with an embedder.
        embedder: of hybrid search: `minilm` or `hashing`.
    """

    data: str = "train"
    preset: str = "standard"
    num_worlds: int | None = None
    first_world: int = 0
    tier: str = "small"
    questions: str | None = None
    domain: str | None = None
    num_questions: int | None = None
    search: Search = "bm25"
    embedder: str = "minilm"

    def __post_init__(self) -> None:
        refuse_unknown([self.tier], TIERS, "tier")
        refuse_unknown([self.search], ("bm25", "hybrid"), "search")
        for name in ("num_questions", "num_worlds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} is {value}: give a positive number or leave it out")
        if self.first_world < 0:
            raise UserError(f"first_world is {self.first_world}: give 0 or more")
        if not self.generated and not Path(self.data).expanduser().is_dir():
            near = "/" not in self.data and self.data.isalpha()
            if near:
                refuse_unknown([self.data], SPLIT_WORLDS, "data")
            raise UserError(f"{self.data}: no such folder")

    @property
    def generated(self) -> bool:
        return self.data in SPLIT_WORLDS


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
    for task in _generated(config) if config.generated else _from_folder(config, pictures):
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


@lru_cache(maxsize=REMEMBERED_WORLDS)
def _bundle(seed: int, preset: str) -> Any:
    from generators import webworld

    return webworld.bundle(seed, preset)


def _generated(config: DataConfig) -> Iterator[Task]:
    from generators import webworld

    refuse_unknown([config.preset], webworld.PRESETS, "preset")
    first = webworld.SPLITS[config.data].start + config.first_world
    count = config.num_worlds or SPLIT_WORLDS[config.data]
    if first + count > webworld.SPLITS[config.data].stop:
        raise UserError(
            f"{config.data} has {len(webworld.SPLITS[config.data])} worlds: lower first_world or num_worlds"
        )
    for seed in range(first, first + count):
        made = _bundle(seed, config.preset)
        world = World(seed=seed, preset=config.preset, search=config.search, embedder=config.embedder)
        for row, known in zip(made.questions, made.evidence, strict=True):
            question = question_from(row, Path(), f"world {seed}")
            if config.domain in (None, question.domain):
                points = tuple(
                    EvidencePoint(point["trajectory_id"], point["state_index"], point.get("line"))
                    for point in known["evidence"]
                )
                yield Task(question, points, world)


def _from_folder(config: DataConfig, pictures: bool) -> Iterator[Task]:
    folder = str(Path(config.data).expanduser().resolve())
    questions = str(Path(config.questions).expanduser().resolve()) if config.questions else None
    dataset = _dataset(folder, config.tier, questions)
    numbers = {haystack: number for number, (haystack, _) in enumerate(dataset.groups())}
    for question in dataset.questions:
        if config.domain in (None, question.domain):
            world = World(
                folder=folder,
                tier=config.tier,
                questions=questions,
                number=numbers[dataset.haystacks[question.id]],
                search=config.search,
                embedder=config.embedder,
                pictures=pictures,
            )
            yield Task(question, tuple(dataset.evidence.get(question.id, ())), world)


@lru_cache(maxsize=REMEMBERED_WORLDS)
def explorer_of_world(world: World) -> Explorer:
    """The world's memory. Raises `UserError` when its data is gone or the embedder cannot be had."""
    if world.seed is not None:
        rows = _bundle(world.seed, world.preset).trajectories
        made = (trajectory_from(row, f"world {world.seed}") for row in rows)
        return explorer_of(made, _memory(world, Store(None), None))
    dataset = _dataset(world.folder, world.tier, world.questions)
    haystack = dataset.groups()[world.number][0]
    picture = dataset.trajectories.screenshot if world.pictures else None
    return explorer_of(
        dataset.trajectories.read(haystack), _memory(world, Store(CACHE.expanduser() / "store"), picture)
    )


def _memory(world: World, store: Store, picture: Callable[[str], Path] | None) -> RetrievalMemory:
    embedder = embedder_from(world.embedder) if world.search == "hybrid" else None
    config = RetrievalConfig(mode=world.search, slices=1, notes=1, events=1)
    return RetrievalMemory(Library(store, embedder), config, picture)
