"""Build a config dataclass from loosely given options, checked once, with one clear line on failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rewards.errors import UserError, refuse_unknown

ConfigT = TypeVar("ConfigT")


def build(config: type[ConfigT], values: Mapping[str, Any]) -> ConfigT:
    """`config(**values)` with unknown names and wrong types refused by a `UserError`."""
    refuse_unknown(values, [field.name for field in _fields(config)], "option")
    try:
        return TypeAdapter(config).validate_python(dict(values))
    except ValidationError as error:
        raise UserError(first_line(error, "option")) from None


def first_line(error: ValidationError, what: str) -> str:
    """The first thing that is wrong, in one line that names the `what` it is about."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{what} '{name}': {message} (got {first['input']!r:.200})" if name else message


def build_all(configs: Sequence[type[Any]], values: Mapping[str, Any]) -> list[Any]:
    """One of each of `configs`, every value given to the one that has a field of that name."""
    owner = {field.name: config for config in configs for field in _fields(config)}
    refuse_unknown(values, owner, "option")
    return [
        build(config, {name: value for name, value in values.items() if owner[name] is config}) for config in configs
    ]


def read_flags(args: Sequence[str], configs: Sequence[type[Any]]) -> dict[str, str]:
    """`--some-name value` and `--some-name=value` as values for the fields of `configs`. Raises `UserError`."""
    known = [f"--{field.name.replace('_', '-')}" for config in configs for field in _fields(config)]
    values: dict[str, str] = {}
    words = iter(args)
    for word in words:
        flag, given, value = word.partition("=")
        if not flag.startswith("--"):
            raise UserError(f"'{word}' belongs to no option: options look like {known[0]} VALUE")
        refuse_unknown([flag], known, "option")
        if not given:
            value = next(words, None)
            if value is None or value in known:
                raise UserError(f"{flag} has no value")
        values[flag[2:].replace("-", "_")] = value
    return values


def describe_flags(configs: Iterable[type[Any]]) -> str:
    """One line an option with its default, for --help."""
    lines = []
    for config in configs:
        for field in _fields(config):
            default = "" if field.default in (MISSING, None) else f"default {field.default}"
            lines.append(f"  --{field.name.replace('_', '-'):<28} {default}".rstrip())
    return "\n".join(lines)


def _fields(config: type[Any]) -> tuple[Field[Any], ...]:
    return fields(config)
