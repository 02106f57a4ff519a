"""The actions of a retrieval policy, and the replies that they are read from (by `replies.parse`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class ActionName(StrEnum):
    SEARCH_STATES = "search_states"
    SEARCH_EVENTS = "search_events"
    SEARCH_NOTES = "search_notes"
    OPEN = "open"
    MATCH = "match"
    KEEP = "keep"
    DROP = "drop"
    SUBMIT = "submit"


SEARCHES = (ActionName.SEARCH_STATES, ActionName.SEARCH_EVENTS, ActionName.SEARCH_NOTES)


class Span(NamedTuple):
    """States `first` to `last` (inclusive) of a trajectory as the policy named it; None: no state was named."""

    trajectory: str
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do. `text` is the query, the pattern or the markdown; `line` is where `open` begins in a page."""

    name: ActionName
    text: str = ""
    spans: tuple[Span, ...] = ()
    line: int = 1
    more: bool = False
    """Whether further actions stood in the same reply; they are not taken."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """No action could be read; `why` is told to the policy."""

    why: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A native tool call as an endpoint sends it: `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A policy's message. `content` may be None beside tool calls; `reasoning` is only kept for the chat history."""

    content: str | None
    tool_calls: tuple[ToolCall, ...] = field(default=())
    reasoning: str | None = None
