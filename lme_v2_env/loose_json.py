"""JSON as small models write it: with comments, trailing commas, a brace too few or too many, a key given twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any


class Twice:
    """Stands for the value of a key that an object has more than once: which is meant, nobody can tell."""


def once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """For `object_pairs_hook`."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[key] = Twice() if key in found else value
    return found


DECODER = json.JSONDecoder(strict=False, object_pairs_hook=once)

_ASIDE = re.compile(r"(\"(?:[^\"\\]|\\.)*(?:\"|$))|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])", re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def mended(text: str, *, cut: bool = False) -> Any:
    """The value of JSON that only lacks its last brackets, or has comments or commas too many; None for anything else.

    Args:
        text: begins with a brace or bracket; of what stands behind its end nothing but further brackets is passed over.
        cut: also close a string that does not end. Only where half a string means what the whole one would have meant.
    """
    text = _ASIDE.sub(lambda match: match[1] or "", text).rstrip()
    open_: list[str] = []
    within = escaped = False
    for at, char in enumerate(text):
        if within:
            escaped, within = char == "\\" and not escaped, char != '"' or escaped
        elif char == '"':
            within = True
        elif char in _CLOSING:
            open_.append(_CLOSING[char])
        elif char in "}]":
            if not open_ or open_.pop() != char:
                return None
            if not open_ and text[at + 1 :].strip("}] \n\t"):
                return None
            if not open_:
                text = text[: at + 1]
                break
    if within:
        if not cut:
            return None
        text = (text[:-1] if escaped else text) + '"'
    try:
        return DECODER.decode(text + "".join(reversed(open_)))
    except (ValueError, RecursionError):
        return None
