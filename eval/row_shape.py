"""What a row of a run must hold before it is counted on: run folders are copied, merged and edited by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

from rewards.currency import Verdict
from rewards.errors import UserError

Test = Callable[[Any], bool]
Shape = Mapping[str, Test]

COUNTED = ("is_correct", "is_stale", "is_hedged", "is_wrong", "is_refused", "gold_in_notes", "overflows")
"""Metrics that every summary reads."""


def number(value: Any) -> bool:
    """Finite, and of a size that can be summed."""
    return isinstance(value, int | float) and type(value) is not bool and -1e15 < value < 1e15 and math.isfinite(value)


def text(value: Any) -> bool:
    return isinstance(value, str)


def truth(value: Any) -> bool:
    return isinstance(value, bool)


def table(value: Any) -> bool:
    return isinstance(value, dict)


def numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(number(item) for item in value.values())


def states(value: Any) -> bool:
    """Pairs of a trajectory's id and a state's index."""
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and text(pair[0]) and type(pair[1]) is int for pair in value
    )


def may_lack(test: Test) -> Test:
    return lambda value: value is None or test(value)


SUPERSEDE: Shape = {
    "sample": lambda value: type(value) is int and value >= 0,
    "verdict": lambda value: value in get_args(Verdict),
    "r_cur": lambda value: number(value) and value in (0, 1),
    "r_stale": lambda value: number(value) and value in (0, -1),
    "reward": number,
    "metrics": lambda value: numbers(value) and all(name in value for name in COUNTED),
    "diagnosis": may_lack(text),
    "tags": may_lack(table),
}

LME: Shape = {
    **dict.fromkeys(("correct", "strict_correct", "unknown"), truth),
    **dict.fromkeys(("response", "answer", "timestamp_utc", "question_type", "domain"), text),
    **dict.fromkeys(("context_tokens", "context_tokens_shown"), number),
    "query_seconds": may_lack(number),
    "usage": table,
    "retrieved": states,
    "evidence": may_lack(numbers),
    "evidence_states": may_lack(states),
    "gathered": may_lack(table),
}


LATER = ("diagnosis", "tags")
"""Fields that rows of earlier versions lack."""

READ: Shape = {name: LME[name] for name in LME if name not in ("correct", "strict_correct", "unknown", "answer")}
"""What a row holds when the reader has answered and the judge has not."""


def fits(row: Mapping[str, Any], shape: Shape) -> bool:
    return all(test(row.get(name)) for name, test in shape.items())


def refuse_misshapen(row: Any, shape: Shape, where: str) -> None:
    """Raise `UserError`, naming the field, unless the row is one: with an id, scored in this shape or not scored."""
    if not isinstance(row, dict):
        raise UserError(f"{where} is damaged: it is no object; {MEND}")
    rules: Shape = {"id": text, "scored": truth}
    if row.get("scored") is True:
        rules = {**rules, **shape}
    elif row.get("scored") is False:
        rules = {**rules, "unscored_reason": text, **{name: shape[name] for name in ("sample",) if name in shape}}
    for name, test in rules.items():
        if not test(row.get(name)) or (name not in row and name not in LATER):
            raise UserError(f"{where} is damaged: '{name}' is {str(row.get(name))[:60]!r}; {MEND}")


MEND = "delete that line, and the same command makes its row again"
