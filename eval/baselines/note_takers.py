"""Who keeps the notes of an evaluation: the model (notes, facts), or a rule that the model only answers from.

Rules say how much of a result is owed to the notes: `no_memory` keeps nothing, `copy_last` copies the last session as
far as the budget goes, `oracle_notes` keeps what the generator knows to be true. The answer turn is the protocol's own.

`package.module:function` is a rule of the user's own: (notes, session) -> notes. It is anybody's code: what it raises
leaves that episode unscored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from eval.baselines import OWN
from eval.baselines.facts import FactsRollout, report
from eval.baselines.own import RAISED, Failed, find
from lme_v2_env.trajectory import SURROGATE
from rewards.errors import UserError, refuse_unknown
from supersede_env.data import DataConfig, generated_records
from supersede_env.episode import Episode, EpisodeView, Session
from supersede_env.protocol import NotesRollout, ProtocolConfig, render_turns

SYSTEMS = ("notes", "facts", "no_memory", "copy_last", "oracle_notes")

Start = Callable[[EpisodeView, ProtocolConfig], NotesRollout]
"""Begins a rollout."""


class RuledRollout(NotesRollout):
    """A rollout whose notes are written already: its only turn is the answer."""

    def __init__(self, view: EpisodeView, config: ProtocolConfig, notes: tuple[str, ...] | None = None) -> None:
        super().__init__(view, config)
        for number, part in enumerate(self._parts):
            self.step(self.written(part) if notes is None else notes[number])

    @property
    def num_turns(self) -> int:
        return 1

    def written(self, session: Session) -> str:
        """The notes after a session; `step` cuts them at the budget like a model's."""
        raise NotImplementedError


class NoMemory(RuledRollout):
    def written(self, session: Session) -> str:
        return ""


class CopyLast(RuledRollout):
    def written(self, session: Session) -> str:
        return render_turns(session)


class OwnNotes(RuledRollout):
    """Notes that a function writes from the notes before and the session's text, its date in front where it is shown.

    Raises `Failed` when the function does, or returns something else than a text.
    """

    def __init__(self, view: EpisodeView, config: ProtocolConfig, function: Callable[[str, str], str]) -> None:
        self._function = function
        self.seconds: list[float] = []
        """What each call took."""
        super().__init__(view, config)

    def written(self, session: Session) -> str:
        dated = self.config.show_dates and session.date
        text = f"[{session.date}]\n{render_turns(session)}" if dated else render_turns(session)
        where = f"session {len(self.history) + 1}"
        started = time.perf_counter()
        try:
            notes = self._function(self.notes, text)
        except RAISED as error:  # anybody's code: it concerns this episode alone
            raise Failed.of(where, error) from error
        self.seconds.append(time.perf_counter() - started)
        if not isinstance(notes, str):
            raise Failed(f"{where}: the notes are of type {type(notes).__name__}, not a text")
        return SURROGATE.sub("\ufffd", notes)


def row_fields(rollout: NotesRollout) -> dict[str, Any]:
    """What a system adds to its rows."""
    return report(rollout) | ({"memory_seconds": rollout.seconds} if isinstance(rollout, OwnNotes) else {})


def refuse_unknown_system(system: str) -> None:
    """Raise `UserError` unless it is one of `SYSTEMS` or looks like `package.module:function`."""
    if not OWN.fullmatch(system):
        refuse_unknown([system], SYSTEMS, "system")


def starter(system: str, data: DataConfig) -> Start:
    """How `system` begins a rollout. Raises `UserError` where there is no oracle, or no such function."""
    if OWN.fullmatch(system):
        return partial(OwnNotes, function=find(system, "notes", "session"))
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
