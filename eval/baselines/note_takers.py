"""Who keeps the notes of an evaluation: the model (notes, facts), or a rule that the model only answers from.

Rules say how much of a result is owed to the notes: `no_memory` keeps nothing, `copy_last` copies the last session as
far as the budget goes, `oracle_notes` keeps what the generator knows to be true. The answer turn is the protocol's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eval.baselines.facts import FactsRollout
from rewards.errors import UserError
from supersede_env.data import DataConfig, generated_records
from supersede_env.episode import Episode, EpisodeView
from supersede_env.protocol import NotesRollout, ProtocolConfig, render_turns

SYSTEMS = ("notes", "facts", "no_memory", "copy_last", "oracle_notes")

Start = Callable[[EpisodeView, ProtocolConfig], NotesRollout]
"""Begins a rollout."""


class RuledRollout(NotesRollout):
    """A rollout whose notes are written already: its only turn is the answer."""

    def __init__(self, view: EpisodeView, config: ProtocolConfig, notes: tuple[str, ...] | None = None) -> None:
        super().__init__(view, config)
        for number, part in enumerate(self._parts):
            self.step(self.written(render_turns(part)) if notes is None else notes[number])

    @property
    def num_turns(self) -> int:
        return 1

    def written(self, session: str) -> str:
        """The notes after a session, cut at the budget like a model's."""
        raise NotImplementedError


class NoMemory(RuledRollout):
    def written(self, session: str) -> str:
        return ""


class CopyLast(RuledRollout):
    def written(self, session: str) -> str:
        return session


def starter(system: str, data: DataConfig) -> Start:
    """How `system` begins a rollout. Raises `UserError` where there is no oracle."""
    if system == "oracle_notes":
        return _oracle(data)
    return {"notes": NotesRollout, "facts": FactsRollout, "no_memory": NoMemory, "copy_last": CopyLast}[system]


def _oracle(data: DataConfig) -> Start:
    if data.data not in ("train", "validation"):
        raise UserError(f"oracle_notes needs generated data (train, validation): nobody knows those of {data.data}")
    known: Mapping[EpisodeView, tuple[str, ...]] = {
        Episode.from_record(record).view: tuple(record["history"]["oracle_notes"]) for record in generated_records(data)
    }

    def start(view: EpisodeView, config: ProtocolConfig) -> NotesRollout:
        return RuledRollout(view, config, known[view])

    return start
