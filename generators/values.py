"""Values of every type, drawn from pools and grids that the two splits share no open-class member of.

A grid is [low, high, step]; which split a number belongs to depends on the number alone (`number_side`), so that
amounts never repeat across splits, whichever attribute they belong to. Closed classes (weekdays, frequencies, yes/no)
are shared and listed in `CLOSED_TYPES`. Small counts are split as well, though totals after increments may meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from generators.language import Attribute, Language, language

CLOSED_TYPES = ("boolean", "weekday", "frequency")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# Minutes past the hour of clock times: the splits never meet.
CLOCK_MINUTES = {"train": (5, 15, 20, 35, 50), "validation": (10, 25, 40, 45, 55)}


def number_text(value: int, form: str) -> str:
    """A grid value in its attribute's written form: `{n}` with a thousands comma, or seconds as "min_sec"."""
    if form == "min_sec":
        return f"{value // 60} minutes and {value % 60} seconds"
    return form.replace("{n}", f"{value:,}")


@cache
def universe(split: str, name: str) -> tuple[str, ...]:
    """All values that an attribute can take in one split, in a fixed order."""
    bank = language(split)
    return tuple(_universe(bank, bank.attributes[name]))


def number_side(n: int) -> str:
    """The split that may use a number: even ones (round hundreds and up by their tens) are for training."""
    return "validation" if (n // 10 if n >= 100 and n % 10 == 0 else n) % 2 else "train"


def grid_numbers(split: str, spec: dict[str, Any]) -> list[int]:
    low, high, step = spec["grid"]
    return [n for n in range(low, high + 1, step) if number_side(n) == split]


def _universe(bank: Language, attribute: Attribute) -> Sequence[str]:
    spec = attribute.spec
    if "pool" in spec:
        return bank.pools[spec["pool"]]
    if "grid" in spec:
        numbers = grid_numbers(bank.split, spec)
        if spec["format"] == "min_sec":
            numbers = [n for n in numbers if n % 60 > 1]  # no "0 seconds" and no "1 seconds"
        return [number_text(n, spec["format"]) for n in numbers]
    return {"clock": _clocks, "date": _dates, "record": _records}[attribute.value_type](bank.split, spec)


def _clocks(split: str, spec: dict[str, Any]) -> list[str]:
    hours, half = spec.get("hours", [5, 6, 7, 8]), spec.get("half", "am")
    return [f"{hour}:{minute:02d} {half}" for hour in hours for minute in CLOCK_MINUTES[split]]


def _dates(split: str, spec: dict[str, Any]) -> list[str]:
    del spec
    parity = 0 if split == "train" else 1
    return [
        f"{month} {day}"
        for i, month in enumerate(MONTHS)
        for day in range(3, MONTH_DAYS[i] + 1)
        if (day + i) % 2 == parity
    ]


def _records(split: str, spec: dict[str, Any]) -> list[str]:
    del spec
    parity = 0 if split == "train" else 1
    return [f"{won}-{lost}" for won in range(6, 17) for lost in range(3, 12) if (won + lost) % 2 == parity]
