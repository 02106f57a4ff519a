"""From what a policy wrote to one action: a text in any of the usual styles, or a native tool call. One parser for all.

Lenient in form: case, spaces or hyphens in names, quotes, missing brackets, `name(...)`, `name: ...`, JSON, tool-call
tags, code fences, thinking. Strict in meaning: what could be read in two ways, or names something that there is not, is
`Malformed` with a sentence that says what is wrong. Of several actions in one reply the first is taken.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from lme_v2_env.actions import Action, ActionName, Malformed, Reply
from lme_v2_env.arguments import ASIDE, QUOTED, action_of, canonical
from lme_v2_env.loose_json import DECODER, mended
from rewards.text import drop_reasoning

MAX_REPLY_CHARS = 20_000
"""Of a longer reply only the beginning is read: an action stands there or nowhere."""

MAX_PLACES = 20
"""Places of a reply that are tried, so that no reply takes long to read."""


def parse(reply: Reply) -> Action | Malformed:
    """The one action of a reply. Never raises, whatever the reply is."""
    if reply.tool_calls:
        call = reply.tool_calls[0]
        found = action_of(call.name, call.arguments[:MAX_REPLY_CHARS])
        return _with_more(found, len(reply.tool_calls) > 1)
    text = drop_reasoning((reply.content or "")[:MAX_REPLY_CHARS]).strip()
    if not text:
        return Malformed("the reply is empty.")
    first: Malformed | None = None
    places = list(islice(_places(text), MAX_PLACES))
    for number, place in enumerate(places):
        found = action_of(place.name, place.arguments)
        if isinstance(found, Action):
            later = found.name is not ActionName.SUBMIT and any(p.start >= place.end for p in places[number + 1 :])
            return _with_more(found, later)
        # prose has words such as "keep" and "open": what looks most like a call is what the policy is told about
        if place.call and first is None:
            first = found
    if first is None and (other := _OTHER_CALL.search(text)):
        return action_of(other[1], None)  # says that there is no such action
    return first or Malformed("no action was found in the reply.")


class _Place(NamedTuple):
    """Where an action may stand. `call`: it has the form of a call, not only of a line that begins with a name."""

    start: int
    end: int
    name: str
    arguments: Any
    call: bool


_NAME = r"search[ _-]?(?:states?|events?|notes?)|open|match|keep|drop|submit"
_CALL = re.compile(rf"(?P<name>{_NAME})(?P<after>[`*\"']{{0,4}}[ \t]{{0,4}}(?P<open>[(\[{{:=]?))", re.IGNORECASE)
_LEAD = re.compile(r"[\s\-*\d.)>#`\"'\[]*(?:(?:next )?action|call|tool|step)?[\s:=`\"'*\[]*", re.IGNORECASE)
"""What may stand before an action at the beginning of its line."""

MAX_LEAD = 40
_OTHER_CALL = re.compile(r"^[ \t\-*>`]*([A-Za-z][A-Za-z_]{2,30})\(", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*```[\w-]*[ \t]*$", re.MULTILINE)
_NEGATED = re.compile(
    r"(?:\b(?:not|never|without|before|avoid|instead of|than)|n['\u2019]t)(?:\s+\w+){0,2}\s+$", re.IGNORECASE
)
"""Before a call within a sentence: it is spoken of, not made."""

_INPUT = re.compile(
    rf"^([ \t*]*action[ \t*]*:[ \t`*\"']*(?:{_NAME}))[`*\"' \t]*\n+"
    r"[ \t*]*(?:action[ _])?(?:input|arguments?|args)[ \t*]*:",
    re.IGNORECASE | re.MULTILINE,
)
"""An action on one line and its input on the next."""

_TAG = re.compile(r"</?(?:tool_call|function_call|action|tool)s?>", re.IGNORECASE)


def _places(text: str) -> Iterator[_Place]:
    """Everything in the text that might be an action, in order."""
    text = _INPUT.sub(r"\1:", _TAG.sub("\n", _FENCE.sub("", text)))
    at = 0
    objects = {place.start: place for place in _objects(text)}
    inside = [(place.start, place.end) for place in objects.values()]
    places: list[_Place] = list(objects.values())
    for match in _CALL.finditer(text):
        start = match.start("name")
        if any(a <= start < b for a, b in inside) or start < at or _within_word(text, match):
            continue
        bracket, name = match["open"], match["name"]
        before = text[max(0, start - MAX_LEAD - 1) : start].rpartition("\n")[2]
        leads = len(before) <= MAX_LEAD and _LEAD.fullmatch(before) is not None
        if _NEGATED.search(before):
            continue
        if bracket in ("(", "[", "{"):
            arguments, end = _bracketed(text, match.end(), bracket, name)
        elif canonical(name) is ActionName.SUBMIT:
            # without a bracket only at the reply's beginning: prose has lines that begin with "Submit the form"
            if not leads or (text[: start - len(before)].strip(" \t\n`") and "action" not in before.lower()):
                continue
            arguments, end = text[match.end() :].strip(), len(text)
            if not bracket and arguments[:1] not in ("", *"\"'`\u201c"):
                if arguments.strip(" .!`*"):
                    continue  # "Submit the form" may speak of a page
                arguments = ""
        elif leads:
            end = _line_end(text, match.end())
            arguments = text[match.end() : end]
        else:
            continue
        at = end
        places.append(_Place(start, end, name, arguments, bool(bracket)))
    yield from sorted(places, key=lambda place: place.start)


def _within_word(text: str, match: re.Match[str]) -> bool:
    """Is the name a part of a longer word ("opened", "open_file")?"""
    before, after = text[: match.start("name")][-1:], text[match.end("name") : match.end("name") + 1]
    return before.isalnum() or before == "_" or after.isalnum() or after == "_"


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


_CLOSING = {"(": ")", "[": "]", "{": "}"}


def _past_space(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def _bracketed(text: str, start: int, bracket: str, name: str) -> tuple[str, int]:
    """What stands between brackets, quotes and JSON respected; without the closing one, to the line's end (submit:
    the end).
    """
    closing = _CLOSING[bracket]
    first = _past_space(text, start)
    if text[first : first + 1] == "{" and (found := _object_at(text, first)):
        after = _past_space(text, found[1])
        if text[after : after + 1] == closing:
            return text[first : found[1]], after + 1
    whole = canonical(name) is ActionName.SUBMIT
    limit = len(text) if whole else _line_end(text, start)
    quoted = QUOTED.match(text, start)
    if quoted and (stop := re.compile(rf"\s*\{closing}").match(text, quoted.end())):
        return text[start : quoted.end()], stop.end()
    depth, at = 1, start
    while at < limit:
        if text[at] in "\"'`" and text[at - 1] in " ,(=[:" and (quoted := QUOTED.match(text, at)):
            at = quoted.end() if quoted.end() <= limit else at + 1
            continue
        depth += {bracket: 1, closing: -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at], at + 1
        at += 1
    return text[start:limit], limit


def _objects(text: str) -> Iterator[_Place]:
    """JSON objects (or Python's way of writing them) that say which action they are."""
    at = 0
    for _ in range(MAX_PLACES):
        if (start := text.find("{", at)) < 0:
            return
        found = _object_at(text, start)
        if found is None:
            at = start + 1
            continue
        value, end = found
        named = _named(value)
        if named is None:
            at = start + 1
            continue
        yield _Place(start, end, *named, True)
        at = end


def _object_at(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    try:
        value, end = DECODER.raw_decode(text, start)
        return value, end
    except (ValueError, RecursionError):
        pass
    end = _balanced(text, start)
    try:
        value = ast.literal_eval(text[start:end])
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        value = mended(text[start:end])
    return (value, end) if isinstance(value, dict) else None


def _balanced(text: str, start: int) -> int:
    """Where the object that begins at `start` ends, braces in quotes aside."""
    depth, at = 0, start
    while at < len(text):
        if text[at] in "\"'" and (quoted := QUOTED.match(text, at)):
            at = quoted.end()
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at
    return len(text)


_NAME_KEYS = ("action", "name", "tool", "function", "command", "tool_name")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "action_input", "kwargs")


def _named(value: dict[str, Any]) -> tuple[str, Any] | None:
    """(name, arguments) of an object; None when it names no action."""
    lower = {str(key).lower(): item for key, item in value.items()}
    for key in _NAME_KEYS:
        name = lower.get(key)
        if isinstance(name, Mapping):  # {"function": {"name": ..., "arguments": ...}}
            return _named(dict(name))
        if isinstance(name, str):
            rest = {k: v for k, v in lower.items() if k != key and (k not in ASIDE or k == "id")}
            for holder in _ARGUMENT_KEYS:
                if holder in rest and not (holder == "input" and not isinstance(rest[holder], Mapping)):
                    return name, rest[holder]
            return name, rest
    if len(value) == 1:
        name, arguments = next(iter(value.items()))
        if isinstance(name, str) and canonical(name) is not None:
            return name, arguments
    return None


def _with_more(found: Action | Malformed, more: bool) -> Action | Malformed:
    if isinstance(found, Malformed) or not more:
        return found
    return replace(found, more=True)
