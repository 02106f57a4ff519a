"""What a Supersede task IS: dated chat sessions, one question, the value that holds and those that no longer do.

`Episode` is the whole row, gold included. `EpisodeView` is what an agent may see, built from named fields; the
protocol takes only the view, so gold, stale values, ids and question types cannot reach a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar

from rewards.errors import UserError

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
        if not has_gold(record):
            raise UserError(f"row {name}: 'gold' is empty; a question without gold cannot be scored")
        asks = record.get("asks", "current")
        if asks not in ASKS:
            raise UserError(f"row {name}: 'asks' is '{asks}', not one of {', '.join(ASKS)}")
        return cls(
            id=_text(record, "id", name),
            sessions=tuple(sessions[i] for i in order),
            question=_text(record, "question", name),
            question_date=_optional(record, "question_date", str, "", name),
            gold=_value(record["gold"], "gold", name),
            stale=tuple(_value(value, "stale", name) for value in _optional(record, "stale", list, [], name)),
            asks=asks,
            abstain=_optional(record, "abstain", bool, False, name),
            evidence=_evidence(_optional(record, "evidence", list, [], name), position, sessions, name),
            source=_optional(record, "source", str, "", name),
            tags=dict(_optional(record, "tags", dict, {}, name)),
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


def has_gold(record: Mapping[str, Any]) -> bool:
    """Is there a gold answer to score against? The number 0 is one."""
    return record.get("gold") is not None and str(record["gold"]).strip() != ""


def refuse_half_characters(record: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` for a lone surrogate anywhere in `record`: no UTF-8 file or request can carry it."""
    try:
        json.dumps(record, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(f"{where}: {error.object[error.start]!r} is half of a character (a lone surrogate)") from None


def _text(record: Mapping[str, Any], key: str, name: str) -> str:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise UserError(f"row {name}: '{key}' is {value!r}, not a text")
    if value is None or not value.strip():
        raise UserError(f"row {name}: '{key}' is missing or empty")
    return value


def _value(value: object, key: str, name: str) -> str:
    """An answer value as text. Numbers are taken (32 LongMemEval golds are integers), true and false are not."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise UserError(f"row {name}: '{key}' holds {value!r}; give a text or a number")
    return str(value).strip()


ValueT = TypeVar("ValueT")


def _optional(record: Mapping[str, Any], key: str, kind: type[ValueT], default: ValueT, name: str) -> ValueT:
    value = record.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        label = {"str": "a text", "list": "a list", "dict": "an object", "bool": "true or false"}[kind.__name__]
        raise UserError(f"row {name}: '{key}' is {value!r}, not {label}")
    return value


def _evidence(
    pairs: list[Any], position: Mapping[int, int], sessions: Sequence[Session], name: str
) -> tuple[tuple[int, int], ...]:
    """[session, turn] pairs, the session's number moved from file order to date order."""
    for pair in pairs:
        if not isinstance(pair, list) or [type(part) for part in pair] != [int, int] or pair[0] not in position:
            raise UserError(
                f"row {name}: 'evidence' holds {pair!r}, not [session, turn] with sessions 0 to {len(position) - 1}"
            )
        if not 0 <= pair[1] < len(sessions[pair[0]].turns):
            raise UserError(f"row {name}: 'evidence' holds {pair!r}, but session {pair[0]} has no such turn")
    return tuple((position[session], turn) for session, turn in pairs)


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
