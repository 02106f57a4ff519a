"""Build a config dataclass from loosely given options, checked once, with one clear line on failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rewards.errors import UserError, refuse_unknown

ConfigT = TypeVar("ConfigT")


def build(config: type[ConfigT], values: Mapping[str, Any]) -> ConfigT:
    """`config(**values)` with unknown names and wrong types refused by a `UserError`."""
    refuse_unknown(values, [field.name for field in fields(config)], "option")  # ty: ignore[invalid-argument-type]
    try:
        return TypeAdapter(config).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise UserError(f"option '{name}': {message} (got {first['input']!r})" if name else message) from None
