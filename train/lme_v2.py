"""LME-V2 for the local trainer: questions by number, rollouts over `RetrievalRollout`, the searching teacher."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

from lme_v2_env.data import DataConfig, Task, explorer_of_world, load_tasks
from lme_v2_env.policies import teacher
from lme_v2_env.protocol import Message, ProtocolConfig, RetrievalRollout
from lme_v2_env.reading import read
from lme_v2_env.scoring import Outcome, evidence_found, reward_parts, verdict
from lme_v2_env.trajectory import QuestionView
from rewards.errors import UserError
from train.lme_v2_config import LmeV2Config
from train.tasks import OVER_WINDOW, Example, Result


def tasks(config: LmeV2Config) -> LmeV2Tasks:
    """The questions that `config` trains on."""
    return LmeV2Tasks(config)


class LmeV2Tasks:
    """The training questions by number, starting again at their end. Neighbours are of different worlds."""

    def __init__(self, config: LmeV2Config) -> None:
        self.config = config
        self._loaded: dict[str | None, list[Task]] = {}

    def task(self, number: int, preset: str | None = None) -> LmeV2Task:
        if preset not in self._loaded:
            self._loaded[preset] = self._load(preset)
        loaded = self._loaded[preset]
        return LmeV2Task(loaded[number % len(loaded)], self.config)

    def validation(self, count: int) -> list[LmeV2Task]:
        """Questions of the generator's validation worlds, of the preset that was trained on."""
        if not self.config.data.generated:
            raise UserError("validation needs generated data (data.data = 'train')")
        data = dataclasses.replace(self.config.data, data="validation", num_worlds=None, first_world=0)
        return [LmeV2Task(task, self.config) for task in self._tasks(data)[:count]]

    def _load(self, preset: str | None) -> list[Task]:
        data = self.config.data
        return self._tasks(dataclasses.replace(data, preset=preset) if preset else data)

    def _tasks(self, data: DataConfig) -> list[Task]:
        config = self.config
        judged, premises = config.reader.judge is not None, config.reward.abstention_bonus > 0
        found = list(load_tasks(data, pictures=config.reader.images, judged=judged, premises=premises))
        random.Random(0).shuffle(found)
        return found

    def next_command(self, adapter: Path) -> str:
        """On held-out worlds, whose files the generator writes first."""
        config = self.config
        default = ProtocolConfig()
        values = dataclasses.asdict(config.protocol).items()
        played = ",".join(f"{name}={value}" for name, value in values if value != getattr(default, name))
        return (
            f"python -m generators webworld write DIR --worlds 20 --preset {config.data.preset} --split heldout && "
            f"python -m eval lme-v2 --system policy --policy-model {config.model} --adapter {adapter} --data DIR "
            f"--retrieval bm25 --reader extractive --no-judge --policy-max-tokens {config.max_reply_tokens} "
            f"--protocol {played} --out {config.output}/eval"
        )


class LmeV2Task:
    """One question with its world."""

    def __init__(self, task: Task, config: LmeV2Config) -> None:
        self.task, self.config = task, config
        self.id = task.question.id

    def start(self) -> LmeV2Play:
        return LmeV2Play(self.task, self.config)

    def examples(self) -> list[Example]:
        """The searching teacher's turns. Raises `UserError` where no evidence is known."""
        if not self.task.evidence:
            raise UserError("a warm start needs known evidence, which generated data (data.data = 'train') has")
        play, knows = self.start(), teacher(self.task)
        examples = []
        while not play.done:
            prompt = play.prompt()
            reply = knows(prompt)
            examples.append(Example(tuple(prompt), reply))
            play.step(reply)
        return examples


class LmeV2Play:
    """One rollout; see `train.tasks.Play`."""

    def __init__(self, task: Task, config: LmeV2Config) -> None:
        self.task, self.config = task, config
        view = task.question.view() if config.protocol.show_image else QuestionView(task.question.text)
        self.rollout = RetrievalRollout(view, explorer_of_world(task.world), config.protocol)
        self._credits: list[float | None] = []

    @property
    def done(self) -> bool:
        return self.rollout.done

    @property
    def max_new_tokens(self) -> int:
        return self.config.max_reply_tokens

    def prompt(self) -> list[Message]:
        return self.rollout.prompt()

    def step(self, reply: str) -> None:
        before = set(self.rollout.kept)
        self.rollout.step(reply)
        fresh = [state for state in self.rollout.kept if state not in before]
        known = evidence_found(self.task.evidence, fresh, self.rollout.explorer) if fresh else {}
        self._credits.append(known.get("precision"))

    def result(self) -> Result:
        question = self.task.question
        record: dict[str, Any] = {"id": question.id, "type": question.question_type}
        if not self.done:
            return _unscored(record, OVER_WINDOW, over_window=1)
        outcome, config = Outcome.of(self.rollout), self.config
        try:
            reading = read(
                question,
                self.task.evidence,
                self.rollout.explorer,
                outcome,
                config.reader,
                spans_only=config.protocol.spans_only,
            )
            parts = reward_parts(question, outcome, reading, config.reward)
            graded = verdict(question, reading)
        except UserError as error:
            return _unscored(record, str(error), over_window=0)
        word = "correct" if graded.correct else "unknown" if graded.unknown else "wrong"
        counts = {
            "over_window": 0,
            "malformed": sum(name is None for name in outcome.actions),
            "refused": outcome.refused,
            "kept": len(outcome.kept),
            "evidence_kept": round(reading.evidence.get("recall", 0.0) * len(self.task.evidence)),
            f"stop_{outcome.stop}": 1,
        }
        replies = [step.reply.content for step in self.rollout.history]
        record |= {
            "reward": sum(parts.values()),
            "verdict": word,
            "gold": question.gold,
            "answer": graded.answer,
            "parts": parts,
            "replies": replies,
            **outcome.to_record(),
        }
        return Result(sum(parts.values()), word, record, tuple(self._credits), counts)


def _unscored(record: dict[str, Any], reason: str, *, over_window: int) -> Result:
    row = record | {"reward": None, "verdict": None, "unscored_reason": reason}
    return Result(None, None, row, counts={"over_window": over_window})
