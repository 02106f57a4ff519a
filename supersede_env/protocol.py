"""The bounded-memory protocol: one fresh prompt a session, the reply becomes the notes, the last prompt asks.

`NotesRollout` is the only place where a prompt is built. Training, evaluation and both verifiers adapters drive the
same object, so their prompts are equal byte for byte. Rules (arXiv 2606.27472, section 3):

- turn i = 1..n: system text + current notes + session i; the reply is the complete new notes, cut at `budget`
  characters. No earlier session and no earlier reply is ever shown again.
- turn n + 1: system text + final notes + question; the reply is the answer and the rollout ends.
- condition `full`: one prompt with all sessions in date order and the question (the upper bound).

A reply is taken as it is, with thinking removed and outer white space stripped. An empty reply makes empty notes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from rewards.errors import UserError, refuse_unknown
from rewards.text import drop_reasoning
from supersede_env.episode import EpisodeView, Session

Condition = Literal["bounded", "full"]
Message = dict[str, str]
"""{"role": ..., "content": ...}: what an OpenAI-compatible endpoint takes."""

WORDING_FIELDS = ("system_notes", "system_answer", "system_full", "notes", "answer", "full", "empty_notes")


@dataclass(frozen=True, slots=True)
class Wording:
    """One preset of prompt texts. `hash` identifies the exact texts in every result row."""

    name: str
    system_notes: str
    system_answer: str
    system_full: str
    notes: str
    answer: str
    full: str
    empty_notes: str

    @property
    def hash(self) -> str:
        """First 12 hex digits of the sha256 over all texts."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


@cache
def wordings() -> Mapping[str, Wording]:
    """The presets in wordings.json, by name."""
    texts = json.loads(files("supersede_env").joinpath("wordings.json").read_text(encoding="utf-8"))
    return {name: Wording(name, **{key: preset[key] for key in WORDING_FIELDS}) for name, preset in texts.items()}


@dataclass(frozen=True, slots=True)
class ProtocolConfig:
    """How an episode is played.

    Attributes:
        condition: `bounded` (notes only) or `full` (all sessions in one prompt).
        budget: B, the most characters the notes may hold (300 in the paper).
        wording: a preset of wordings.json: `standard`, or `plain` for small models.
        show_dates: show the sessions' and the question's dates; the paper's code drops both.
        max_session_chars: split a longer session at turn boundaries into parts of at most this many characters (a
            single longer turn stays whole); each part is one more turn. `None` never splits. Bounded only.
    """

    condition: Condition = "bounded"
    budget: int = 300
    wording: str = "standard"
    show_dates: bool = True
    max_session_chars: int | None = None

    def __post_init__(self) -> None:
        if self.condition not in ("bounded", "full"):
            raise UserError(f"condition is '{self.condition}', not bounded or full")
        if self.budget < 1:
            raise UserError(f"budget is {self.budget}: the notes need at least 1 character (the paper uses 300)")
        if self.max_session_chars is not None and self.max_session_chars < 1:
            raise UserError(f"max_session_chars is {self.max_session_chars}: give a positive number or leave it out")
        refuse_unknown([self.wording], wordings(), "wording")

    @property
    def hash(self) -> str:
        """Identifies everything that shapes a prompt: this config and the exact wording."""
        key = json.dumps([asdict(self), wordings()[self.wording].hash], sort_keys=True)
        return hashlib.sha256(key.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Step:
    """One finished turn: `kind` is notes or answer; `kept` is what the reply became; `cut` counts lost characters."""

    kind: Literal["notes", "answer"]
    reply: str
    kept: str
    cut: int


class NotesRollout:
    """One episode being played. Call `prompt()`, give the model's reply to `step()`, until `done`."""

    def __init__(self, view: EpisodeView, config: ProtocolConfig) -> None:
        self.config = config
        self.notes = ""
        self.answer: str | None = None
        self.history: list[Step] = []
        self._view = view
        self._wording = wordings()[config.wording]
        self._parts: list[Session] = []
        if config.condition == "bounded":
            self._parts = [part for s in view.sessions for part in split_session(s, config.max_session_chars)]

    @property
    def num_turns(self) -> int:
        """Model calls of a whole rollout: n + 1 bounded (n sessions or parts), 1 with the full context."""
        return len(self._parts) + 1

    @property
    def done(self) -> bool:
        return self.answer is not None

    @property
    def overflows(self) -> int:
        """How many replies were longer than the budget and cut."""
        return sum(step.cut > 0 for step in self.history)

    @property
    def empty_notes(self) -> int:
        """How many replies left the notes empty."""
        return sum(step.kind == "notes" and not step.kept for step in self.history)

    def prompt(self) -> list[Message]:
        """The next prompt, as [system, user]. Raises `RuntimeError` after the answer."""
        if self.done:
            raise RuntimeError("the rollout is finished; there is no next prompt")
        words, turn = self._wording, len(self.history)
        if turn < len(self._parts):
            part = self._parts[turn]
            system, user = words.system_notes, words.notes
            slots = {"session": render_turns(part), "date": part.date}
        elif self.config.condition == "bounded":
            system, user, slots = words.system_answer, words.answer, {"date": self._view.question_date}
        else:
            sessions = "\n\n".join(self._full_session(s) for s in self._view.sessions)
            system, user = words.system_full, words.full
            slots = {"session": sessions, "date": self._view.question_date}
        slots |= {
            "notes": self.notes or words.empty_notes,
            "question": self._view.question,
            "budget": str(self.config.budget),
        }
        keep_date = self.config.show_dates and bool(slots["date"])
        return [
            {"role": "system", "content": fill(system, slots, keep_date)},
            {"role": "user", "content": fill(user, slots, keep_date)},
        ]

    def step(self, reply: str) -> None:
        """Take the model's reply to the last prompt: new notes, or the answer that ends the rollout."""
        if self.done:
            raise RuntimeError("the rollout is finished; it takes no more replies")
        text = drop_reasoning(reply).strip()
        if len(self.history) == len(self._parts):
            self.answer = text
            self.history.append(Step("answer", reply, text, 0))
            return
        self.notes = text[: self.config.budget].rstrip()
        self.history.append(Step("notes", reply, self.notes, max(0, len(text) - self.config.budget)))

    def _full_session(self, session: Session) -> str:
        heading = f"[{session.date}]\n" if self.config.show_dates else ""
        return heading + render_turns(session)


def visible_reply(content: str | None, reasoning: str | None) -> str:
    """The text of an endpoint's message. Raises `NoReply` when there is none to take.

    Null content, or reasoning without content, is the endpoint's failure to give a reply: the rollout is unscored. An
    empty string by itself is a reply, the empty one: it makes empty notes or an empty (refused) answer.
    """
    if content:
        return content
    if reasoning:
        raise NoReply("the reply is reasoning only: raise the token limit, or turn thinking off")
    if content is None:
        raise NoReply("the endpoint answered without content")
    return ""


class NoReply(UserError):
    """An endpoint's message holds nothing that the protocol could take."""


_SLOT = re.compile(r"\{(\w+)\}")
_DATED = re.compile(r"<dated>(.*?)</dated>", re.DOTALL)


def fill(template: str, slots: Mapping[str, str], keep_date: bool) -> str:
    """Put `slots` into `{name}` places; `<dated>...</dated>` spans vanish when dates are not shown.

    One pass over the template, so that braces or tags inside a session or the notes are never interpreted.
    """
    template = _DATED.sub(lambda m: m.group(1) if keep_date else "", template)
    return _SLOT.sub(lambda m: slots[m.group(1)], template)


def render_turns(session: Session) -> str:
    """A session as text: one `User:` or `Assistant:` paragraph a turn."""
    return "\n".join(f"{turn.role.capitalize()}: {turn.content.strip()}" for turn in session.turns)


def split_session(session: Session, max_chars: int | None) -> list[Session]:
    """Cut a session at turn boundaries into parts of at most `max_chars` rendered characters."""
    if max_chars is None:
        return [session]
    parts: list[list[Any]] = [[]]
    size = 0
    for turn in session.turns:
        length = len(render_turns(Session("", (turn,)))) + 1
        if parts[-1] and size + length > max_chars:
            parts.append([])
            size = 0
        parts[-1].append(turn)
        size += length
    return [Session(session.date, tuple(part)) for part in parts]
