"""Numbers in digits and in words, read from a token stream; the base of the quantity parser."""

from __future__ import annotations

from typing import NamedTuple

from rewards.text import Text
from rewards.units import (
    CURRENCIES,
    CURRENCY_SIGNS,
    DURATIONS,
    MAGNITUDES,
    MEASURES,
    NUMBER_WORDS,
    ORDINAL_WORDS,
    SCALES,
)
from rewards.words import words


class Quantity(NamedTuple):
    """One value in a text. ``value`` is comparable within ``kind`` (and ``unit``); tokens first..last-1 hold it.

    kind      value                                             unit
    number    magnitude                                         "" or "ordinal"
    measure   magnitude in the base unit of the dimension       dimension, e.g. "length"
    money     amount                                            currency code or ""
    percent   magnitude                                         ""
    duration  seconds, or months                                "s" or "mo"
    rate      (times, days of the period)                       ""   "three times a week" = (3, 7)
    clock     (minutes after midnight or in the half day, "am" | "pm" | "")   ""
    colon     the parts as written: a clock time, m:ss, h:mm or a ratio       ""
    date      (year, month, day), 0 where unsaid                ""
    weekday   0 = Monday                                        ""
    range     (low, high) in the order written                  unit of both ends; also scores
    """

    kind: str
    value: float | tuple
    unit: str
    raw: float
    word: str
    first: int
    last: int


_SOURCES = words("session note message chat entry conversation memory place record line")
_COUNTABLE_AFTER_ONE = frozenset(("time", "times"))
_NOT_A_NUMBER_BEFORE = words(
    "no any some every each this that which another other the only not last next new old first second right wrong"
    " same correct current previous latest either neither former latter a good bad big small"
)
_NOT_A_NUMBER_AFTER = frozenset(
    [
        "of",
        "that",
        "you",
        "is",
        "was",
        "who",
        "which",
        "another",
        "where",
        "i",
        "we",
        "they",
        "he",
        "she",
        "it",
        "with",
        "in",
        "on",
        "for",
        "from",
        ",",
        ".",
        ";",
        ":",
        ")",
        "!",
        "?",
        "\n",
    ]
)


def _number(token: str) -> float | None:
    if token[0].isdigit() or (token[0] == "." and len(token) > 1):
        try:
            return float(token.replace(",", ""))
        except ValueError:
            return None
    return None


def words_to_number(low: list[str], i: int, n: int) -> tuple[float, int, bool] | None:
    """Read a number written in words from token i: (value, next token, ordinal)."""
    total, current, j, seen, ordinal = 0.0, 0.0, i, False, False
    last_scale = float("inf")
    while j < n:
        word = low[j]
        if word in NUMBER_WORDS:
            value = NUMBER_WORDS[word]
            if seen and not (
                (current % 100 == 0 and value < 100 and (current > 0 or total > 0))
                or (current % 10 == 0 and current > 9 and value < 10)
            ):
                break
            current += value
            seen = True
            j += 1
        elif word in ORDINAL_WORDS and (not seen or ((j > i and low[j - 1] in ("-", "and")) or current % 10 == 0)):
            if seen and current and ORDINAL_WORDS[word] >= 10 and current % 100:
                break
            return total + current + ORDINAL_WORDS[word], j + 1, True
        elif seen and word in SCALES:
            scale = SCALES[word]
            if scale == 100:
                current = (current or 1) * 100
            else:
                if scale >= last_scale:
                    break
                total += (current or 1) * scale
                current, last_scale = 0.0, scale
            j += 1
        elif (
            seen and word == "-" and j + 1 < n and current % 10 == 0 and current % 100 + (current % 100 == 0) * 20 >= 20
        ):
            following = low[j + 1]
            if NUMBER_WORDS.get(following, 99) < 10 and current % 100 >= 20:
                j += 1
            elif ORDINAL_WORDS.get(following, 99) < 10 and current % 100 >= 20:
                return total + current + ORDINAL_WORDS[following], j + 2, True
            else:
                break
        elif seen and word == "and" and j + 1 < n and (low[j - 1] in SCALES) and low[j + 1] in NUMBER_WORDS:
            j += 1
        else:
            break
    return (total + current, j, ordinal) if seen else None


class Numerals:
    """Reads magnitudes at token positions of one text."""

    def __init__(self, text: Text) -> None:
        self.text, self.low, self.n = text, text.lower, len(text.lower)
        self.out: list[Quantity] = []

    def read(self, i: int) -> tuple[float, int, bool] | None:
        """A magnitude at token i, in digits or words, "k", "dozen", "and a half" included: (value, next, ordinal)."""
        low, n = self.low, self.n
        if i >= n:
            return None
        token = low[i]
        value = _number(token)
        ordinal = False
        if value is not None and self.decimal_comma(i):
            return value + float(low[i + 2]) / 100, i + 3, False
        if value is not None:
            if self.text.glued(i) and low[i - 1][0].isalpha():
                return None  # "F150", "v2": part of a name
            hyphened = i > 1 and low[i - 1] == "-" and self.text.glued(i) and self.text.glued(i - 1)
            if hyphened and low[i - 2].isalpha() and low[i - 2] not in NUMBER_WORDS:
                return None  # "F-150"
            j = i + 1
            if j < n and self.text.glued(j) and low[j] in ("st", "nd", "rd", "th"):
                ordinal, j = True, j + 1
            elif j + 1 < n and low[j] == "/" and self.text.glued(j) and self.text.glued(j + 1):
                below = _number(low[j + 1])
                if below and (value, below) != (24, 7) and value == int(value) and below == int(below):
                    small, large = min(value, below), max(value, below)
                    if 1 <= small <= 12 < large <= 31 and not (j + 2 < n and low[j + 2] == "/"):
                        return None  # "6/21": a date, read by short_date
                if (
                    below
                    and value < below
                    and j + 2 < n
                    and (low[j + 2] in ("of", "cup", "cups") or self.has_unit(j + 2))
                ):
                    value, j = value / below, j + 2
            elif j + 2 < n and low[j + 1] == "/" and self.text.glued(j + 1):
                top, below = _number(low[j]), _number(low[j + 2])
                if top and below and top < below:
                    value, j = value + top / below, j + 3
        elif token in NUMBER_WORDS or token in ORDINAL_WORDS:
            if token == "one" and not self.one_counts(i):
                return None
            words = words_to_number(low, i, n)
            if words is None:
                return None
            value, j, ordinal = words
        elif token in ("a", "an"):
            if i + 1 < n and low[i + 1] in SCALES:
                words = words_to_number(["one", *low[i + 1 : i + 12]], 0, min(n - i, 12))
                assert words is not None
                return words[0], i + words[1], words[2]
            if i + 1 < n and low[i + 1] in ("dozen", "couple", "score"):
                value, j = 1.0, i + 1
            else:
                return None
        elif (
            token == "half" and (k := self.after_article(i + 1)) and k < n and low[k] in ("dozen", "million", "percent")
        ):
            value, j = 0.5, k
        elif token == "dozen" or token == "couple":
            value, j = 1.0, i
        else:
            return None
        while j < n and (factor := self.magnitude(j)):
            value, j = value * factor, j + 1
            if j < n and low[j] == "of" and low[j - 1] in ("couple", "dozen"):
                j += 1
        if j + 2 < n and low[j] == "and" and low[j + 1] in ("a", "one") and low[j + 2] in ("half", "quarter"):
            value, j = value + (0.5 if low[j + 2] == "half" else 0.25), j + 3
        return value, j, ordinal

    def decimal_comma(self, i: int) -> bool:
        """ "22,50" is 22.5 next to a currency."""
        low, n = self.low, self.n
        if i + 2 >= n or low[i + 1] != "," or not (low[i].isdigit() and low[i + 2].isdigit() and len(low[i + 2]) == 2):
            return False
        if not (self.text.glued(i + 1) and self.text.glued(i + 2)):
            return False
        after = low[i + 3] if i + 3 < n else ""
        return (i > 0 and low[i - 1] in CURRENCY_SIGNS) or after in CURRENCY_SIGNS or after in CURRENCIES

    def after_article(self, i: int) -> int:
        """The token after "a", hyphens allowed ("half-a-dozen"); 0 when there is no article."""
        low, n = self.low, self.n
        while i < n and low[i] == "-":
            i += 1
        if i >= n or low[i] not in ("a", "an"):
            return 0
        i += 1
        while i < n and low[i] == "-":
            i += 1
        return i

    def has_unit(self, j: int) -> bool:
        token = self.low[j]
        return token in MEASURES or (token in DURATIONS and len(token) > 1) or token in SCALES

    def magnitude(self, j: int) -> float | None:
        """The factor that token j multiplies the number before it with."""
        token = self.low[j]
        factor = MAGNITUDES.get(token)
        if factor is None or (len(token) <= 2 and not self.text.glued(j)):
            return None
        if token == "m" and not self.money_before(j):
            return None
        return factor

    def money_before(self, j: int) -> bool:
        return j >= 2 and self.low[j - 2] in CURRENCY_SIGNS

    def one_counts(self, i: int) -> bool:
        """Whether the word "one" at token i counts something; "no one" and "the red one" do not."""
        before = self.low[i - 1] if i else ""
        after = self.low[i + 1] if i + 1 < self.n else "."
        if after in _COUNTABLE_AFTER_ONE or after in DURATIONS or after in SCALES:
            return True
        if after in _SOURCES and "another" in self.low[i + 2 : i + 14]:
            return False  # "one session says ..., another ..."
        if before in _NOT_A_NUMBER_BEFORE or after in ("of", "another", "that", "day"):
            return False
        return not (after in _NOT_A_NUMBER_AFTER and before.endswith(("est", "er", "ed")) and before.isalpha())
