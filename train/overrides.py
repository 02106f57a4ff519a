"""Command line overrides of a TOML file: `--trainer.optim.lr 2e-5 --max_steps 10`.

Keys are dotted paths, with - or _; an element of a list is named by its position (`source.0.name`), which may be left
out where the list has one element. Values are read as JSON and otherwise as text, several values make a list, a bare
`--key` is true and a bare `--no-key` false, `None` stands for no value.
"""

from __future__ import annotations

import copy
import difflib
import json
import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from rewards.errors import UserError

_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False}


@dataclass(frozen=True, slots=True)
class Override:
    """One override; `raw` is what was typed, `value` what it was read as."""

    key: str
    raw: str
    value: Any


def load_toml(file: Path | Traversable) -> dict[str, Any]:
    """A TOML file. Raises `UserError` when it is missing or damaged."""
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error


def flattened(node: Any, name: str = "") -> dict[str, Any]:
    """Settings by dotted name, tuples as lists, as TOML and JSON give them back."""
    if isinstance(node, dict):
        parts = [flattened(value, f"{name}.{key}" if name else key) for key, value in node.items()]
        return {key: value for part in parts for key, value in part.items()}
    return {name: list(node) if isinstance(node, tuple) else node}


def parse(args: Sequence[str]) -> list[Override]:
    """Read `--key value` arguments. Raises `UserError` for anything else."""
    overrides: list[Override] = []
    position = 0
    while position < len(args):
        name, equals, inline = args[position].partition("=")
        if not name.startswith("--") or len(name) < 3:
            raise UserError(f"unexpected argument '{args[position]}'; overrides look like --max_steps 10")
        position += 1
        words = [inline] if equals else []
        while not equals and position < len(args) and not args[position].startswith("--"):
            words.append(args[position])
            position += 1
        overrides.append(_override(name[2:], words))
    return overrides


def _override(name: str, words: list[str]) -> Override:
    key = name.replace("-", "_")
    if words:
        values = [_value(word) for word in words]
        return Override(key, " ".join(words), values if len(values) > 1 else values[0])
    head, dot, last = key.rpartition(".")
    if last.startswith("no_"):
        return Override(f"{head}{dot}{last[3:]}", "false", False)
    return Override(key, "true", True)


def _value(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


def apply(config: dict[str, Any], overrides: Sequence[Override], *, strict: bool = True) -> dict[str, Any]:
    """A copy of `config` with `overrides` set.

    With `strict` a key that `config` does not hold is refused with the nearest one that it does, and so is text where
    `config` holds a number; without it such keys are added, for a caller who has them checked elsewhere.
    """
    result = copy.deepcopy(config)
    for override in overrides:
        path = _resolve(result, override)
        node: Any = result
        for part in path[:-1]:
            node = node.setdefault(part, {}) if isinstance(node, dict) else node[part]
            if not isinstance(node, dict | list):
                raise UserError(f"'{override.key}': '{part}' holds a value, not a table")
        last = path[-1]
        known = last in node if isinstance(node, dict) else True
        if strict and not known:
            raise UserError(f"unknown key '{override.key}'{nearest(override.key, config)}")
        node[last] = _fitted(override, node[last] if known else None, strict=strict)
    return result


def _resolve(config: dict[str, Any], override: Override) -> list[str | int]:
    """The override's path in `config`, list positions as integers and filled in for lists of one element."""
    path: list[str | int] = []
    node: Any = config
    for part in override.key.split("."):
        if isinstance(node, list) and not part.isdigit():
            if len(node) != 1:
                raise UserError(f"'{override.key}': say which of the {len(node)} elements before '{part}', from 0")
            path.append(0)
            node = node[0]
        if isinstance(node, list):
            if int(part) >= len(node):
                raise UserError(f"'{override.key}': there is no element {part}, the list has {len(node)}")
            path.append(int(part))
            node = node[int(part)]
        else:
            path.append(part)
            node = node.get(part) if isinstance(node, dict) else None
    return path


def _fitted(override: Override, current: Any, *, strict: bool) -> Any:
    """The value as `current`'s type: text stays text (`--run.name 7`), a number must be a number."""
    value = override.value
    if value is None:
        return None
    if isinstance(current, dict) and not isinstance(value, dict):
        raise UserError(
            f"'{override.key}' is a table; set one of its keys{': ' if current else ''}{', '.join(current)}"
        )
    if isinstance(current, str) and not isinstance(value, dict | list):
        return override.raw
    if isinstance(current, list) and not isinstance(value, list):
        return [value]
    if strict and isinstance(current, bool) and not isinstance(value, bool):
        raise UserError(f"{override.key} is '{override.raw}': expected true or false")
    if strict and isinstance(current, int | float) and not isinstance(current, bool) and not _is_number(value):
        raise UserError(f"{override.key} is '{override.raw}': expected a number like {current}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def nearest(key: str, config: dict[str, Any]) -> str:
    """`; did you mean '--max_steps'?` for a misspelt key, empty when nothing in `config` resembles it.

    The whole path is compared first, then the last name alone, so that `--lr` finds `--trainer.optim.lr`.
    """
    known = list(_keys(config))
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    if not close:
        by_name = {name.rpartition(".")[2]: name for name in reversed(known)}
        close = [by_name[n] for n in difflib.get_close_matches(key.rpartition(".")[2], by_name, n=1, cutoff=0.7)]
    return f"; did you mean '--{close[0]}'?" if close else ""


def _keys(node: Any, prefix: str = "") -> Iterator[str]:
    """Dotted paths of all values in `node`, list positions left out where there is one element."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _keys(value, f"{prefix}.{key}" if prefix else key)
    elif isinstance(node, list) and node and isinstance(node[0], dict):
        for position, value in enumerate(node):
            yield from _keys(value, prefix if len(node) == 1 else f"{prefix}.{position}")
    else:
        yield prefix
