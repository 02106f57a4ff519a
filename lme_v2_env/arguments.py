"""The arguments of an action in all their spellings: JSON, `key=value`, plain text; spans of states such as t3:2-4."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lme_v2_env.actions import SEARCHES, Action, ActionName, Malformed, Span
from lme_v2_env.loose_json import DECODER, Twice, mended
from rewards.errors import UserError, refuse_unknown


class _Bad(Exception):
    """Why arguments cannot be taken."""


_CANONICAL = {re.sub(r"\W|_", "", name.value): name for name in ActionName} | {
    "searchstate": ActionName.SEARCH_STATES,
    "searchevent": ActionName.SEARCH_EVENTS,
    "searchnote": ActionName.SEARCH_NOTES,
}


_WRAPPER = re.compile(r"^(?:functions?|tools?|default_api)[.:]|:\d+$", re.IGNORECASE)
"""What some servers put around a tool's name."""


def canonical(name: str) -> ActionName | None:
    return _CANONICAL.get(re.sub(r"\W|_", "", _WRAPPER.sub("", name).lower()))


ASIDE = frozenset({"thought", "thoughts", "reason", "reasoning", "comment", "explanation", "why", "type", "id"})
"""Keys beside an action that say nothing about what to do (`id` and `type` come from tool-call wrappers)."""


QUOTED = re.compile(
    r"\s*(?:[rRbB]?\"\"\"(.*?)\"\"\"|[rR]?'''(.*?)'''|[rR]?\"((?:[^\"\\]|\\.)*)\"|[rR]?'((?:[^'\\]|\\.)*)'|`([^`]*)`"
    r"|\u201c([^\u201d]*)\u201d|\u2018([^\u2019]*)\u2019)",
    re.DOTALL,
)


def _aliases(**groups: str) -> dict[str, str]:
    """Every spelling of an argument's name -> the name."""
    return {spelling: name for name, spellings in groups.items() for spelling in spellings.split()}


_SPAN_KEYS = _aliases(
    trajectory="trajectory trajectory_id id run t",
    span="span spans state states range index state_index",
    start="start first start_state_index",
    end="end last end_state_index",
)
_QUERY_KEYS = _aliases(query="query q text input keywords search")
_KEYS: Mapping[ActionName, Mapping[str, str]] = {
    ActionName.SEARCH_STATES: _QUERY_KEYS,
    ActionName.SEARCH_EVENTS: _QUERY_KEYS,
    ActionName.SEARCH_NOTES: _QUERY_KEYS,
    ActionName.OPEN: _SPAN_KEYS | {"line": "line"},
    ActionName.MATCH: _aliases(trajectory="trajectory trajectory_id id run t", regex="regex pattern query re"),
    ActionName.KEEP: _SPAN_KEYS,
    ActionName.DROP: _SPAN_KEYS,
    ActionName.SUBMIT: _aliases(markdown="markdown text content notes note summary answer"),
}
_POSITIONAL = {
    ActionName.SEARCH_STATES: "query",
    ActionName.SEARCH_EVENTS: "query",
    ActionName.SEARCH_NOTES: "query",
    ActionName.SUBMIT: "markdown",
}


def action_of(name: str, arguments: Any) -> Action | Malformed:
    known = canonical(name)
    if known is None:
        try:
            refuse_unknown([name[:40].lower()], [item.value for item in ActionName], "action")
        except UserError as error:
            return Malformed(str(error))
    assert known is not None
    try:
        return _build(known, arguments)
    except _Bad as bad:
        return Malformed(f"{known}: {bad}")


def _build(name: ActionName, arguments: Any) -> Action:
    if isinstance(arguments, str):
        arguments = _loose(name, arguments)
    if isinstance(arguments, Mapping):
        given = _keyed(name, arguments)
    elif isinstance(arguments, Sequence) and not isinstance(arguments, bytes):
        given = _listed(name, list(arguments))
    elif arguments is None:
        given = {}
    else:
        given = _listed(name, [arguments])
    if name in SEARCHES:
        query = " ".join(_plain(given.get("query", ""), "query").split())
        if not query:
            raise _Bad("there is no query.")
        return Action(name, query)
    if name is ActionName.SUBMIT:
        return Action(name, _plain(given.get("markdown", ""), "markdown").strip())
    if name is ActionName.MATCH:
        return _match(given)
    spans = _spans(given)
    if name is ActionName.OPEN:
        if len(spans) > 1:
            raise _Bad("open one span at a time.")
        return Action(name, spans=spans, line=_line(given.get("line", 1)))
    if any(span.first is None for span in spans):
        raise _Bad("say which states, as in t3:2 or t3:2-4.")
    return Action(name, spans=spans)


def _match(given: Mapping[str, Any]) -> Action:
    spans = spans_of(_plain(given.get("trajectory", ""), "trajectory"))
    pattern = _plain(given.get("regex", ""), "regex")
    if len(spans) != 1 or spans[0].first is not None:
        raise _Bad("name one trajectory, as in match(t3, price).")
    if not pattern:
        raise _Bad("there is no pattern.")
    return Action(ActionName.MATCH, pattern, spans)


def _keyed(name: ActionName, arguments: Mapping[Any, Any]) -> dict[str, Any]:
    keys = _KEYS[name]
    given: dict[str, Any] = {}
    for raw, value in arguments.items():
        key = str(raw).lower()
        if key in ASIDE and key not in keys:
            continue
        if key not in keys:
            raise _Bad(f"unknown argument '{key[:40]}'; it takes {', '.join(dict.fromkeys(keys.values()))}.")
        if keys[key] in given or isinstance(value, Twice):
            raise _Bad(f"'{keys[key]}' is given twice.")
        if value is None:
            continue
        if keys[key] == "trajectory" and isinstance(value, int | str) and re.fullmatch(r"[0-9]{1,5}", str(value)):
            value = f"t{value}"
        if key.startswith("state") and isinstance(value, list):
            value = [str(item) if type(item) is int else item for item in value]  # single states, not a span's ends
        given[keys[key]] = value
    return given


def _listed(name: ActionName, values: list[Any]) -> dict[str, Any]:
    if name in _POSITIONAL:
        if len(values) > 1:
            raise _Bad(f"it takes one {_POSITIONAL[name]}.")
        return {_POSITIONAL[name]: values[0]} if values else {}
    if name is ActionName.MATCH:
        if len(values) != 2:
            raise _Bad("it takes a trajectory and a pattern, as in match(t3, price).")
        return {"trajectory": values[0], "regex": values[1]}
    if name is ActionName.OPEN and len(values) == 3:
        return {"trajectory": values[0], "span": values[1], "line": values[2]}
    return {"span": values}


_KEY_PREFIX = re.compile(r"\s*([A-Za-z_]{1,20})\s*[=:]\s*")


def _loose(name: ActionName, text: str) -> Any:
    """Arguments written as text: JSON, `key=value` pairs, or plain."""
    text = text.strip()
    if text[:1] in ("{", "["):
        try:
            return DECODER.decode(text)
        except (ValueError, RecursionError):
            pass
    if text.startswith("{"):
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            value = mended(text, cut=name in _POSITIONAL)  # half a query asks much the same, half a span does not
        if isinstance(value, dict):
            return value
        if _OBJECT_HEAD.match(text):
            raise _Bad("the arguments are no whole JSON object.")
    if name in _POSITIONAL or name is ActionName.MATCH:
        called = _called(name, text)
        if called is not None:
            return called
    if name in _POSITIONAL:
        return {_POSITIONAL[name]: _unquoted(_without_key(text, _KEYS[name]), whole=True)}
    if name is ActionName.MATCH:
        return _loose_match(text)
    return _loose_spans(text, name)


_OBJECT_HEAD = re.compile(r"\{\s*[\"']\w+[\"']\s*:")
_NAMED = re.compile(r"\s*([A-Za-z_]{1,20})\s*=\s*")
_BARE = re.compile(r"[^,\"'`]+")
_COMMA = re.compile(r"\s*(?:,|$)")


def _called(name: ActionName, text: str) -> dict[str, Any] | list[str] | None:
    """Several arguments with commas between them, as in a call of Python; None where the text reads otherwise."""
    at, found = 0, []
    while at < len(text):
        named = _NAMED.match(text, at)
        start = named.end() if named else at
        value = QUOTED.match(text, start) or _BARE.match(text, start)
        end = _COMMA.match(text, value.end()) if value else None
        if value is None or end is None:
            return None
        found.append((named[1].lower() if named else None, _unquoted(value[0], whole=name in _POSITIONAL), value.re))
        at = end.end()
    if len(found) < 2:
        return None
    if any(key in _KEYS[name] for key, _, _ in found):
        places = iter(["trajectory", "regex"] if name is ActionName.MATCH else [_POSITIONAL[name]])
        given: dict[str, Any] = {}
        for key, value, _ in found:
            key = key or next(places, None)
            if key is None or key in given:
                raise _Bad("an argument is given twice.")
            given[key] = value
        return given
    quotes = [kind is QUOTED for _, _, kind in found]
    if all(key is None for key, _, _ in found) and all(quotes[name is ActionName.MATCH :]):
        return [value for _, value, _ in found]
    return None


def _without_key(text: str, keys: Mapping[str, str]) -> str:
    match = _KEY_PREFIX.match(text)
    return text[match.end() :] if match and match[1].lower() in keys else text


def _unquoted(text: str, whole: bool = False) -> str:
    """The inside of one pair of quotes around all of it; a lone opening or closing quote goes too."""
    text = text.strip()
    match = QUOTED.fullmatch(text)
    if match:
        inner = next(group for group in match.groups() if group is not None)
        return _escapes(inner) if whole else inner.replace('\\"', '"').replace("\\'", "'")
    for mark in ('"""', "'''", '"', "'", "`", "\u201c", "\u201d"):
        if text.startswith(mark) and mark not in text[len(mark) :]:
            return text[len(mark) :].strip()
    return text


def _escapes(text: str) -> str:
    r"""`\n` and `\"` of a quoted text as what they stand for; other backslashes stay."""
    if "\n" in text:
        return text
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'")


_MATCH_HEAD = re.compile(r"\s*(?:(?:trajectory|trajectory_id|id|run)\s*[=:]\s*)?([\"'`]?)([^,\s\"'`]+)\1\s*(?:,|\s)\s*")


def _loose_match(text: str) -> dict[str, Any]:
    head = _MATCH_HEAD.match(text)
    if head is None:
        raise _Bad("it takes a trajectory and a pattern, as in match(t3, price).")
    return {"trajectory": head[2], "regex": _unquoted(_without_key(text[head.end() :], _KEYS[ActionName.MATCH]))}


_PAIR = re.compile(r"([A-Za-z_]{1,20})\s*=\s*(\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^,\s]+)")


def _loose_spans(text: str, name: ActionName) -> dict[str, Any]:
    pairs = {key: _unquoted(value) for key, value in _PAIR.findall(text)}
    if pairs:
        rest = _PAIR.sub(" ", text).strip(" ,")
        return pairs | ({"trajectory": rest} if rest and not {"trajectory", "id"} & set(pairs) else {})
    if name is ActionName.OPEN:
        parts = [part.strip() for part in text.split(",")]
        if len(parts) == 3 and parts[2].isdigit():
            return {"span": ", ".join(parts[:2]), "line": parts[2]}
    return {"span": text}


_REF = re.compile(r"(?:trajectory|traj|run|t)[\s_#-]*t?(\d{1,5})(?![0-9a-z])")
_NUMBERS = re.compile(
    r"[\s:,/@#(\[]*(?:states?[\s_:#]*)?(?P<first>\d{1,5})(?:\s*(?:-|–|—|\.\.\.?|to|through)\s*(?P<last>\d{1,5}))?[\s)\]]*"
    r"(?![0-9a-z])"
)
_BETWEEN = re.compile(r"(?:[\s,;\"'`()\[\]]|and\b|&)*")


def spans_of(text: str) -> tuple[Span, ...]:
    """Spans such as `t3:2-4`, `t3, 2`, `t3:2, t5:1`. Raises when something is left over."""
    spans: list[Span] = []
    rest = re.sub(r"[\"'`{}]", "", text.lower()).strip()
    at = _end(_BETWEEN, rest, 0)
    while at < len(rest):
        ref = _REF.match(rest, at)
        if ref is None:
            hint = " Give a span as 2-4, or every state with its trajectory (t3:2, t3:4)." if spans else ""
            raise _Bad(f"'{rest[at : at + 30]}' is no trajectory.{hint}")
        name = f"t{int(ref[1])}"
        at = ref.end()
        numbers = _NUMBERS.match(rest, at)
        if numbers and not _REF.match(rest, _end(_BETWEEN, rest, at)):
            first = int(numbers["first"])
            last = int(numbers["last"]) if numbers["last"] else first
            if last < first:
                raise _Bad(f"the span {first}-{last} runs backwards.")
            spans.append(Span(name, first, last))
            at = numbers.end()
        else:
            spans.append(Span(name))
        at = _end(_BETWEEN, rest, at)
    return tuple(spans)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _spans(given: Mapping[str, Any]) -> tuple[Span, ...]:
    head = _plain(given.get("trajectory", ""), "trajectory")
    span = given.get("span", "")
    if "start" in given or "end" in given:
        if span != "":
            raise _Bad("give a span, or start and end, not both.")
        start = given.get("start", given.get("end"))
        span = f"{_plain(start, 'start')}-{_plain(given.get('end', start), 'end')}"
    elif isinstance(span, Sequence) and not isinstance(span, str):
        head, span = "", _span_list(list(span), head)
    else:
        span = _plain(span, "span")
    found = spans_of(f"{head}:{span}" if head and span else head or span)
    if not found:
        raise _Bad("name a trajectory, as in t3 or t3:2-4.")
    return found


_PART = re.compile(r"\s*\d{1,5}(?:\s*-\s*\d{1,5})?\s*", re.ASCII)


def _span_list(values: list[Any], head: str) -> str:
    """`["t3", "2-4"]`, `["t3:2", "t5:1"]`, `[2, 4]` beside a trajectory, or a list of objects."""
    if head and len(values) == 2 and all(type(value) is int for value in values):
        return f"{head}:{values[0]}-{values[1]}"
    parts = []
    for value in values:
        if isinstance(value, Mapping):
            inner = _keyed(ActionName.KEEP, value)
            parts += [
                f"{span.trajectory}:{span.first}-{span.last}" if span.first is not None else span.trajectory
                for span in _spans(inner)
            ]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            parts.append(_span_list(list(value), head))
        else:
            part = _plain(value, "span")
            parts.append(f"{head}:{part}" if head and _PART.fullmatch(part) else part)
    return ", ".join(parts) or head


def _plain(value: Any, what: str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _Bad(f"'{what}' is not a text.")
    return str(value)


def _line(value: Any) -> int:
    text = _plain(value, "line").strip()
    if not text.isascii() or not text.isdigit() or len(text) > 6 or int(text) < 1:
        raise _Bad(f"line '{text[:20]}' is no line number.")
    return int(text)
