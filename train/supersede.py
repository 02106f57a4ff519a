"""Supersede for the local trainer: episodes by number, rollouts over `NotesRollout`, oracle notes as the teacher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from generators.facts import EFFECTS
from rewards.currency import mentions_value
from rewards.errors import UserError
from supersede_env.data import FIRST_VALIDATION_SEED, DataConfig, generated_records, load_episodes
from supersede_env.episode import Episode
from supersede_env.protocol import Message, NotesRollout, ProtocolConfig
from supersede_env.scoring import Outcome, grade_answer
from train.local_config import LocalConfig
from train.tasks import OVER_WINDOW, Example, Result


def tasks(config: LocalConfig) -> SupersedeTasks:
    """The episodes that `config` trains on."""
    return SupersedeTasks(config)


class SupersedeTasks:
    """The training episodes by number: a preset's seeds without end, or a fixed list that starts again."""

    def __init__(self, config: LocalConfig) -> None:
        self.config = config
        self._fixed: list[dict[str, Any]] | None = None
        data = config.data
        if data.data != "train":
            self._fixed = [episode.to_record() for episode in load_episodes(data).episodes]
        elif data.preset is None and not config.curriculum.presets:
            self._fixed = list(generated_records(data))
        if self._fixed is not None and not self._fixed:
            raise UserError(f"{data.data}: no episode to train on")

    def task(self, number: int, preset: str | None = None) -> SupersedeTask:
        return SupersedeTask(self.record(number, preset), self.config)

    def record(self, number: int, preset: str | None = None) -> dict[str, Any]:
        """The generator's record `number`, true history included."""
        if self._fixed is not None:
            return self._fixed[number % len(self._fixed)]
        data = self.config.data
        seed = data.first_seed + number % (data.num_episodes or FIRST_VALIDATION_SEED)
        if seed >= FIRST_VALIDATION_SEED:
            raise UserError(f"data.first_seed leads past {FIRST_VALIDATION_SEED}, where validation episodes begin")
        chosen = preset or data.preset or self.config.curriculum.presets[0]
        one = DataConfig(data="train", preset=chosen, num_episodes=1, first_seed=seed)
        return next(iter(generated_records(one)))

    def validation(self, count: int) -> list[SupersedeTask]:
        """Episodes of the generator's validation split, of the preset that was trained on."""
        if self.config.data.data != "train":
            raise UserError("validation needs generated data (data.data = 'train')")
        data = DataConfig(data="validation", preset=self.config.data.preset, num_episodes=count)
        return [SupersedeTask(record, self.config) for record in generated_records(data)]

    def next_command(self, adapter: Path) -> str:
        config, protocol = self.config, self.config.protocol
        words = ["python -m eval supersede --model", config.model, "--adapter", str(adapter), "--data validation"]
        words += ["--preset", config.data.preset] if config.data.preset else []
        words += ["--n 60 --condition", protocol.condition, "--wording", protocol.wording]
        words += ["--budget", str(protocol.budget), "--max-tokens", str(config.max_notes_tokens)]
        words += [] if protocol.show_dates else ["--no-dates"]
        words += ["--max-session-chars", str(protocol.max_session_chars)] if protocol.max_session_chars else []
        return " ".join([*words, "--out", f"{config.output}/eval/trained"])


class SupersedeTask:
    """One episode, with the generator's history where it has one."""

    def __init__(self, record: Mapping[str, Any], config: LocalConfig) -> None:
        self.record, self.config = record, config
        self.episode = Episode.from_record(record)
        self.id = self.episode.id

    def start(self) -> SupersedePlay:
        return SupersedePlay(self.episode, self.config, values_by_session(self.record))

    def examples(self) -> list[Example]:
        """The oracle notes after each session and the oracle answer. Raises `UserError` if they do not fit."""
        return oracle_examples(self.record, self.config.protocol)


class SupersedePlay:
    """One rollout; see `train.tasks.Play`."""

    def __init__(self, episode: Episode, config: LocalConfig, values: Sequence[str | None]) -> None:
        self.episode, self.config = episode, config
        self.rollout = NotesRollout(episode.view, config.protocol)
        notes_turns = self.rollout.num_turns - 1
        # where sessions were split, which part of one tells what is not known
        self.values = values if len(values) == notes_turns else [None] * notes_turns

    @property
    def done(self) -> bool:
        return self.rollout.done

    @property
    def max_new_tokens(self) -> int:
        answers_next = len(self.rollout.history) + 1 == self.rollout.num_turns
        return self.config.max_answer_tokens if answers_next else self.config.max_notes_tokens

    def prompt(self) -> list[Message]:
        return self.rollout.prompt()

    def step(self, reply: str) -> None:
        self.rollout.step(reply)

    def result(self) -> Result:
        record: dict[str, Any] = {"id": self.episode.id}
        if not self.done:
            unscored = {"reward": None, "verdict": None, "unscored_reason": OVER_WINDOW}
            return Result(None, None, record | unscored, counts={"over_window": 1})
        outcome, config = Outcome.of(self.rollout), self.config
        grade = grade_answer(self.episode, outcome.answer)
        reward = grade.r_cur + config.stale_weight * grade.r_stale
        if config.length_weight and outcome.notes:
            mean_chars = sum(map(len, outcome.notes)) / len(outcome.notes)
            reward -= config.length_weight * mean_chars / config.protocol.budget
        holds = self._holds(outcome)
        counts = {"over_window": 0, "overflows": outcome.overflows, "empty_notes": outcome.empty_notes}
        counts |= memory_counts(self.values, holds)
        record |= {"reward": reward, "verdict": grade.verdict, "gold": self.episode.gold, **outcome.to_record()}
        superseded = self._superseded(outcome)
        counts["outdated"] = sum(superseded)
        credits = turn_credits(self.values, holds, superseded, config.stale_weight)
        credits += (None,) * (outcome.turns - len(credits))  # the answer has none
        return Result(reward, grade.verdict, record, credits, counts)

    def _holds(self, outcome: Outcome) -> list[bool | None]:
        """For each notes turn: is the value that is true after that session in the notes? None where nothing is known
        of it."""
        return [
            None if value is None else mentions_value(notes, value)
            for notes, value in zip(outcome.notes, self.values, strict=True)
        ]

    def _superseded(self, outcome: Outcome) -> list[bool]:
        """For each notes turn: does a value stand in the notes that was true before and is not now? Never where more
        than the current value is asked for: there it belongs into them."""
        if self.episode.asks != "current":
            return [False] * len(outcome.notes)
        return [
            value is not None and any(mentions_value(notes, old) for old in {*self.values[:i]} - {value} if old)
            for i, (notes, value) in enumerate(zip(outcome.notes, self.values, strict=True))
        ]


def turn_credits(
    values: Sequence[str | None], holds: Sequence[bool | None], superseded: Sequence[bool], stale_weight: float
) -> tuple[float | None, ...]:
    """The credit of each notes turn, in the reward's own terms: 1 when the notes hold the current value after it, less
    `stale_weight` when they hold a superseded one. None for a turn that could do nothing about it: nothing was told
    yet, or it was lost before and the session does not tell it.

    Without the second part notes grow until they hold old and new values and are cut. A turn is compared with its
    group's others at the same place (`train.grpo.turn_advantages`): without the last rule most of those that a keeper
    is compared with would have had nothing to keep.
    """
    told = _told(values)
    return tuple(
        None if held is None or not (told[i] or holds[i - 1]) else held - stale_weight * superseded[i]
        for i, held in enumerate(holds)
    )


def memory_counts(values: Sequence[str | None], holds: Sequence[bool | None]) -> dict[str, int]:
    """What a rollout's memory did with the asked fact: of `told` sessions that told a value the notes held it after
    `written`; of `carried` sessions that said nothing new, with the value in the notes before, they still held it after
    `kept`. Where nothing is known of the history all are 0."""
    counts = dict.fromkeys(("told", "written", "carried", "kept"), 0)
    told = _told(values)
    for i, held in enumerate(holds):
        if held is None:
            continue
        if told[i]:
            counts["told"] += 1
            counts["written"] += held
        elif holds[i - 1]:
            counts["carried"] += 1
            counts["kept"] += held
    return counts


def _told(values: Sequence[str | None]) -> list[bool]:
    """Whether each session tells a value that was not the current one before."""
    return [value is not None and (i == 0 or values[i - 1] != value) for i, value in enumerate(values)]


def values_by_session(record: Mapping[str, Any]) -> list[str | None]:
    """The asked fact's value as told up to the end of each session; None while it was not told, or without history.

    An untold or unnamed event leaves the value open (None) until one is named again: no turn is blamed for it. So do
    facts of the kind yes or no, which notes state without either word, and questions that have no answer.
    """
    spoken = not record.get("abstain") and record.get("tags", {}).get("value_type") != "boolean"
    events = record.get("history", {}).get("events", ()) if spoken else ()
    values: list[str | None] = []
    for session in range(len(record["sessions"])):
        told = [e for e in events if e["asked_slot"] and e["kind"] in EFFECTS and e["session"] is not None]
        known = [e for e in told if e["session"] <= session]
        values.append(known[-1]["value"] if known and known[-1]["named"] else None)
    return values


def oracle_examples(record: Mapping[str, Any], protocol: ProtocolConfig) -> list[Example]:
    """One example a turn of a generated record: the generator's oracle notes and answer as replies to the
    environment's own prompts. Raises `UserError` when its history does not match its turns or the budget."""
    history = record["history"]
    replies = [*history["oracle_notes"], history["oracle_answer"]]
    rollout = NotesRollout(Episode.from_record(record).view, protocol)
    if rollout.num_turns != len(replies):
        raise UserError(
            "a warm start has one note a session: use the bounded condition without protocol.max_session_chars"
        )
    longest = max(map(len, history["oracle_notes"]))
    if longest > protocol.budget:  # it would teach notes that are cut
        raise UserError(
            f"oracle notes of {longest} characters do not fit a budget of {protocol.budget}: raise the budget, "
            "or take another preset for the warm start"
        )
    examples = []
    for reply in replies:
        examples.append(Example(tuple(rollout.prompt()), reply))
        rollout.step(reply)
    return examples
