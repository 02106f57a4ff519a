"""JSON as the standard has it, for data that somebody else made: what `json` takes beyond it is refused."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def loads(data: str | bytes) -> Any:
    """The value. Raises `ValueError` for what is no JSON, for NaN and infinity, and for a key that an object has twice:
    of two values one would be dropped without a word. Endless nesting is one, too."""
    try:
        return json.loads(data, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key '{twice}' is there twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
