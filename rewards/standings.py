"""How each mention of a value stands in an answer, and what kind of time the question asks about."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rewards.mentions import Mention
from rewards.values import Question
from rewards.words import words

STATED = 30.0
"""The rank of a plain statement; cues add to it or take from it."""


@dataclass(slots=True, eq=False)
class Standing:
    mention: Mention
    index: int
    """Its place among all mentions of the answer."""
    sentence: int
    clause: int
    rank: float = STATED
    dead: str = ""
    """Why the mention does not count, "" while it does."""
    notes: list[str] = field(default_factory=list)
    past: bool = False
    now: bool = False
    final: bool = False

    @property
    def key(self) -> str:
        return self.mention.key


@dataclass(frozen=True)
class Mode:
    previous: bool
    """The question asks for a value that no longer holds."""
    future: bool
    """The question asks about a plan."""
    event: bool
    """The question asks about something that happened: "last month" or "ago" say when, not that it is over."""


_PREVIOUS = words("previous previously former formerly initially originally original prior earlier")
_FORMER_PERSON = re.compile(
    r"\b(?:former|previous|prior|old|earlier) (?:\w+ ){0,1}"
    r"(?:manager|boss|colleague|company|employer|coworker|supervisor|roommate"
    r"|conversations?|chats?|discussions?|sessions?|messages?)\b"
)
_NOW_WORDS = words("currently now current still latest nowadays today recent recently presently")


_LEAD_IN = re.compile(r"^[^?:]*:(?=(?:\s+\S+){4})|\bbefore (?:i|we) (?:forget|go|leave|start|ask)\b")
"""What a question opens with and does not ask ("Before I forget:")."""


def question_mode(asked: Question) -> Mode:
    lowered = _LEAD_IN.sub(" ", asked.text.lower())
    words = frozenset(re.findall(r"[^\W_]+", lowered))
    past = bool(words & {"did", "was", "were", "had", "used", "have", "been"})
    previous = ("before" in words and past) or "used to" in lowered or "until" in words
    if not words & _NOW_WORDS:
        previous = (
            previous
            or (bool(words & _PREVIOUS) and not _FORMER_PERSON.search(lowered))
            or "at first" in lowered
            or "to begin with" in lowered
        )
        previous = previous or "start out" in lowered or "started out" in lowered or "switched from" in lowered
        previous = previous or ("old" in words and bool(words & {"was", "were", "did", "had"}))
        previous = previous or "was my first" in lowered or "change from" in lowered or "switch from" in lowered
    future = bool(
        words & {"plan", "planning", "planned", "going", "will", "upcoming", "next", "intend", "hoping", "want"}
    )
    if "first" in words and ("or" in words or "earliest" in words):
        previous = True
    event = bool(words & {"did", "was", "were", "had", "ago"}) and not words & (_NOW_WORDS - {"recent", "latest"})
    return Mode(previous, future, event)
