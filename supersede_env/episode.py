"""What a Supersede task IS: dated chat sessions, one question, the value that holds and those that no longer do.

`Episode` is the whole row, gold included. `EpisodeView` is what an agent may see, built from named fields; the
protocol takes only the view, so gold, stale values, ids and question types cannot reach a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from supersede_env.errors import UserError

Asks = Literal["current", "previous", "count", "yesno", "change", "abstain"]
ASKS: tuple[Asks, ...] = ("current", "previous", "count", "yesno", "change", "abstain")

DATE_FORMATS = ("%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", "%Y/%m/%d")
"""LongMemEval writes `2023/05/25 (Thu) 20:21`; the shorter forms are accepted for users' own data."""


def parse_date(text: str) -> datetime:
    """A session's or question's date. Raises `UserError` when `text` has none of the known formats."""
    for date_format in DATE_FORMATS:
        try:
            return datetime.strptime(text.strip(), date_format)
        except ValueError:
            continue
    raise UserError(f"date '{text}' is not of the form 2023/05/25 (Thu) 20:21")


@dataclass(frozen=True, slots=True)
class Turn:
    """One chat message; `role` is user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Session:
    """One chat session. `date` is the text shown to the agent; `parse_date(date)` orders sessions."""

    date: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class EpisodeView:
    """The agent's view: all that a prompt may be built from."""

    sessions: tuple[Session, ...]
    question: str
    question_date: str


@dataclass(frozen=True, slots=True)
class Episode:
    """One task.

    `sessions` are in date order (ties keep the file's order). `stale` holds every value that the asked attribute had
    for that person other than `gold`, each in all its spellings. `evidence` are (session, turn) indices into
    `sessions`. `source` says where the row came from, `tags` carry labels for reports; neither reaches an agent.
    """

    id: str
    sessions: tuple[Session, ...]
    question: str
    question_date: str
    gold: str
    stale: tuple[str, ...] = ()
    asks: Asks = "current"
    abstain: bool = False
    evidence: tuple[tuple[int, int], ...] = ()
    source: str = ""
    tags: Mapping[str, Any] = field(default_factory=dict)

    @property
    def view(self) -> EpisodeView:
        """The whitelisted fields that a policy may see."""
        return EpisodeView(self.sessions, self.question, self.question_date)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Episode:
        """Check a JSON-ready record (the generator's, or a user's own) at the door.

        Raises `UserError` naming the row and the field. Keys that are not the task's own (such as the generator's
        true history) are ignored.
        """
        name = str(record.get("id") or "without id")
        sessions = _sessions(record.get("sessions"), name)
        order = sorted(range(len(sessions)), key=lambda i: parse_date(sessions[i].date))
        position = {old: new for new, old in enumerate(order)}
        gold = record.get("gold")
        if gold is None or not str(gold).strip():
            raise UserError(f"row {name}: 'gold' is empty; a question without gold cannot be scored")
        asks = record.get("asks", "current")
        if asks not in ASKS:
            raise UserError(f"row {name}: 'asks' is '{asks}', not one of {', '.join(ASKS)}")
        evidence = tuple((position[int(s)], int(t)) for s, t in record.get("evidence") or () if int(s) in position)
        return cls(
            id=_text(record, "id", name),
            sessions=tuple(sessions[i] for i in order),
            question=_text(record, "question", name),
            question_date=str(record.get("question_date") or ""),
            gold=str(gold).strip(),
            stale=tuple(str(value) for value in record.get("stale") or ()),
            asks=asks,
            abstain=bool(record.get("abstain", False)),
            evidence=evidence,
            source=str(record.get("source") or ""),
            tags=dict(record.get("tags") or {}),
        )

    def to_record(self) -> dict[str, Any]:
        """The JSON-ready form that `from_record` reads back."""
        return {
            "id": self.id,
            "sessions": [
                {"date": s.date, "turns": [{"role": t.role, "content": t.content} for t in s.turns]}
                for s in self.sessions
            ],
            "question": self.question,
            "question_date": self.question_date,
            "gold": self.gold,
            "stale": list(self.stale),
            "asks": self.asks,
            "abstain": self.abstain,
            "evidence": [list(pair) for pair in self.evidence],
            "source": self.source,
            "tags": dict(self.tags),
        }


def _text(record: Mapping[str, Any], key: str, name: str) -> str:
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"row {name}: '{key}' is missing or empty")
    return value


def _sessions(value: object, name: str) -> list[Session]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise UserError(f"row {name}: 'sessions' is missing or empty")
    return [_session(item, f"row {name}: session {i}") for i, item in enumerate(value)]


def _session(item: object, where: str) -> Session:
    if not isinstance(item, Mapping):
        raise UserError(f"{where} is not an object with 'date' and 'turns'")
    date, turns = item.get("date"), item.get("turns")
    if not isinstance(date, str):
        raise UserError(f"{where}: 'date' is missing")
    try:
        parse_date(date)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if not isinstance(turns, Sequence) or isinstance(turns, str) or not turns:
        raise UserError(f"{where}: 'turns' is missing or empty")
    return Session(date, tuple(_turn(turn, f"{where}, turn {i}") for i, turn in enumerate(turns)))


def _turn(item: object, where: str) -> Turn:
    if not isinstance(item, Mapping) or not isinstance(item.get("content"), str):
        raise UserError(f"{where}: 'content' is missing or no text")
    if item.get("role") not in ("user", "assistant"):
        raise UserError(f"{where}: 'role' is '{item.get('role')}', not user or assistant")
    return Turn(item["role"], item["content"])
