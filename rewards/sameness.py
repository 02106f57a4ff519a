"""When two quantities are the same value, whatever their spelling and unit."""

from __future__ import annotations

from functools import lru_cache

from rewards.numerals import Quantity
from rewards.units import DURATIONS
from rewards.words import words


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 * max(1.0, abs(a), abs(b))


def _colon_matches(colon: Quantity, other: Quantity) -> bool:
    parts = colon.value
    assert isinstance(parts, tuple)
    if other.kind == "colon":
        return parts == other.value
    if other.kind == "duration" and other.unit == "s":
        assert isinstance(other.value, float | int)
        if len(parts) == 2:
            return _close(parts[0] * 60 + parts[1], other.value) or _close(parts[0] * 3600 + parts[1] * 60, other.value)
        if len(parts) == 3:
            return _close(parts[0] * 3600 + parts[1] * 60 + parts[2], other.value)
        return False
    if other.kind == "clock" and len(parts) == 2:
        assert isinstance(other.value, tuple)
        minutes, half = other.value
        mine = parts[0] * 60 + parts[1]
        if not half or (not colon.unit and parts[0] <= 12):
            return mine % 720 == minutes % 720
        return mine % 1440 == minutes % 1440
    return False


@lru_cache(maxsize=4096)
def _question_units(asked: frozenset[str]) -> tuple[frozenset[str], bool, bool, bool]:
    """What units the question names: (duration words, asks for money, for a percentage, for a time of day)."""
    spans = frozenset(w for w in asked if w in DURATIONS and len(w) > 2)
    money = bool(asked & _MONEY_WORDS)
    percent = bool(asked & _PERCENT_WORDS)
    clock = bool(asked & {"time", "when", "hour", "o'clock"})
    return spans, money, percent, clock


_MONEY_WORDS = words(
    "much cost costs price paid pay spend spent budget worth rent salary earn earned money dollars amount fee"
    " save saved cashback total charge charged owe raised raise made discount premium deposit bill mortgage loan"
    " income wage wages savings price"
)
_PERCENT_WORDS = words("percent percentage share fraction proportion rate portion discount % tip interest part")


def same(gold: Quantity, seen: Quantity, asked: frozenset[str] = frozenset()) -> bool:
    """Whether ``seen`` in an answer is the value ``gold``. ``asked`` is the question's words: they supply a unit that
    one side leaves out ("How many months?" "9")."""
    a, b = gold.kind, seen.kind
    if a == "colon" or b == "colon":
        return _colon_matches(gold, seen) if a == "colon" else _colon_matches(seen, gold)
    if a == b:
        if a == "number" and seen.word == "dozen" and gold.word != "dozen" and "dozen" in asked:
            return _close(float(gold.raw), seen.raw)
        return _same_kind(gold, seen)
    if {a, b} == {"money", "measure"}:  # "2400 pounds"
        cash, heavy = (gold, seen) if a == "money" else (seen, gold)
        return cash.unit in ("GBP", "") and heavy.word in ("pound", "pounds") and _close(cash.raw, heavy.raw)
    if a == "number" or b == "number":
        plain, other = (gold, seen) if a == "number" else (seen, gold)
        return _number_matches(plain, other, asked, plain_is_gold=a == "number")
    return False


def _same_kind(gold: Quantity, seen: Quantity) -> bool:
    g, s = gold.value, seen.value
    if gold.kind == "range":
        assert isinstance(g, tuple)
        assert isinstance(s, tuple)
        units = gold.unit == seen.unit or not gold.unit or not seen.unit
        raw_equal = _close(g[0], s[0]) and _close(g[1], s[1])
        return (units and raw_equal) or (bool(gold.unit) != bool(seen.unit) and _raw_ends(gold) == _raw_ends(seen))
    if gold.kind == "date":
        assert isinstance(g, tuple)
        assert isinstance(s, tuple)
        readings = [s, (s[0], s[2], s[1])] if seen.unit == "either" else [s]
        golds = [g, (g[0], g[2], g[1])] if gold.unit == "either" else [g]
        return any(_same_date(one, other) for one in golds for other in readings)
    if gold.kind == "clock":
        assert isinstance(g, tuple)
        assert isinstance(s, tuple)
        if g[1] and s[1]:
            return g == s
        return g[0] % 720 == s[0] % 720
    if gold.kind == "money":
        assert isinstance(g, float | int)
        assert isinstance(s, float | int)
        return _close(g, s) and (gold.unit == seen.unit or not gold.unit or not seen.unit)
    if gold.kind == "number":
        assert isinstance(g, float | int)
        assert isinstance(s, float | int)
        return _close(g, s) and gold.unit == seen.unit
    if gold.kind == "rate":
        assert isinstance(g, tuple)
        assert isinstance(s, tuple)
        return _close(g[0], s[0]) and _close(g[1], s[1])
    if isinstance(g, float | int) and isinstance(s, float | int):
        return gold.unit == seen.unit and _close(g, s)
    return g == s and gold.unit == seen.unit


def _raw_ends(q: Quantity) -> tuple[float, float]:
    assert isinstance(q.value, tuple)
    scale = q.raw / q.value[0] if q.value[0] else 1.0
    return round(q.value[0] * scale, 6), round(q.value[1] * scale, 6)


def _same_date(gold: tuple, seen: tuple) -> bool:
    if (gold[1] and gold[1] != seen[1]) or (gold[2] and gold[2] != seen[2]):
        return False
    return not (gold[0] and seen[0] and gold[0] != seen[0]) and (not gold[0] or bool(seen[0]) or bool(gold[2]))


_PERIODS = {"daily": 1.0, "day": 1.0, "week": 7.0, "weekly": 7.0, "month": 30.0, "monthly": 30.0, "year": 365.0}
"""Days of the period that a question names ("How many times a week?")."""


def _number_matches(plain: Quantity, other: Quantity, asked: frozenset[str], *, plain_is_gold: bool) -> bool:
    value = plain.value
    assert isinstance(value, float | int)
    if plain.unit == "ordinal":
        return False
    spans, money, percent, clock = _question_units(asked)
    if other.kind == "percent":
        return _close(value, other.raw) and percent
    if other.kind == "money":
        return _close(value, other.raw) and (not plain_is_gold or money)
    if other.kind == "measure":
        return _close(value, other.raw)
    if other.kind == "duration":
        if not spans:
            return plain_is_gold and "old" in asked and other.unit == "mo" and _close(value, other.raw)
        wanted = {DURATIONS[w] for w in spans}
        unit = other.unit
        assert isinstance(other.value, float | int)
        return any(base == unit and _close(value * factor, other.value) for factor, base in wanted)
    if other.kind == "clock":
        assert isinstance(other.value, tuple)
        hours = int(value)
        if clock and value != hours and 0 < value < 24:  # "8.10"
            return (hours * 60 + round((value - hours) * 100)) % 720 == other.value[0] % 720
        return (
            clock
            and other.value[0] % 60 == 0
            and value == int(value)
            and 0 < value <= 24
            and (value * 60 % 720 == other.value[0] % 720)
        )
    if other.kind == "rate":
        assert isinstance(other.value, tuple)
        periods = {days for word, days in _PERIODS.items() if word in asked}
        if periods and other.value[1] not in periods:
            return False
        often = "often" in asked and plain_is_gold
        return _close(value, other.value[0]) and (often or bool(asked & {"many", "times"}))
    if other.kind == "date":
        assert isinstance(other.value, tuple)
        return bool(asked & {"year", "when"}) and other.value[0] == value and 1800 <= value <= 2199
    return False
