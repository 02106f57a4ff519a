"""Numbers, money, percentages, measures, durations, frequencies, clock times, dates, weekdays, ranges and scores.

``parse`` reads a token stream once, left to right, and returns comparable values. No library is used: text2num reads
"no one" as a number and has no spans, dateparser and dateutil guess a date out of almost any word and resolve it
against today, pint takes half a second to import. The grammar needed here is small and closed.

Values are kept in one base unit per kind: seconds or months for durations, minutes after midnight for clock times.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rewards.text import Text
from rewards.units import (
    AM_PM,
    CURRENCIES,
    CURRENCY_SIGNS,
    DURATIONS,
    FREQUENCY_WORDS,
    MAGNITUDES,
    MEASURES,
    MONTHS,
    NUMBER_WORDS,
    ORDINAL_WORDS,
    SCALES,
    WEEKDAYS,
)


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


_LINKS = frozenset(("-", "to", "through", "til", "till", "until", "and", "a", "bis", "à"))
_COUNTABLE_AFTER_ONE = frozenset(("time", "times"))
_NOT_A_NUMBER_BEFORE = frozenset(
    "no any some every each this that which another other the only not last next new old first second right wrong"
    " same correct current previous latest either neither former latter a good bad big small".split()
)
_NOT_A_NUMBER_AFTER = frozenset(
    "of that you is was who which another where i we they he she it with in on for from , . ; : ) ! ? \n".split(" ")
)


def _number(token: str) -> float | None:
    if token[0].isdigit() or (token[0] == "." and len(token) > 1):
        try:
            return float(token.replace(",", ""))
        except ValueError:
            return None
    return None


def _words_to_number(low: list[str], i: int, n: int) -> tuple[float, int, bool] | None:
    """Read a number written in words from token i: (value, next token, ordinal)."""
    total, current, j, seen, ordinal = 0.0, 0.0, i, False, False
    last_scale = float("inf")
    while j < n:
        word = low[j]
        if word in NUMBER_WORDS:
            value = NUMBER_WORDS[word]
            if seen and not (
                (current % 100 == 0 and value < 100 and (current > 0 or total > 0)) or (current % 10 == 0 and current > 9 and value < 10)
            ):
                break
            current += value
            seen = True
            j += 1
        elif word in ORDINAL_WORDS and (not seen or (j > i and low[j - 1] in ("-", "and") or current % 10 == 0)):
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
        elif seen and word == "-" and j + 1 < n and current % 10 == 0 and 20 <= current % 100 + (current % 100 == 0) * 20:
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


_AFTER_ONCE = frozenset("a an per every each in this last so weekly daily monthly yearly and or before already".split())


class _Parser:
    """One pass over the tokens. Methods take a position and return a Quantity, or None and the caller moves on."""

    def __init__(self, text: Text) -> None:
        self.text, self.low, self.n = text, text.lower, len(text.lower)
        self.out: list[Quantity] = []

    def run(self) -> list[Quantity]:
        i, low, n, at = 0, self.low, self.n, self.at
        starters = _STARTERS
        while i < n:
            token = low[i]
            if token in starters or token[0].isdigit() or token[0] == ".":
                found = at(i)
                if found is not None:
                    self.out.append(found)
                    i = found.last
                    continue
            i += 1
        return self.out

    def at(self, i: int) -> Quantity | None:
        low = self.low
        token = low[i]
        if ":" in token and token != ":":
            return self.colon(i)
        if token[0].isdigit() and (token.count("-") == 2 or token.count("/") == 2 or token.count(".") == 2):
            return self.numeric_date(i)
        if token in MONTHS:
            return self.month_first(i)
        if token in WEEKDAYS:
            if len(token) <= 3 and not self.text.capital(i):
                return None
            if token in ("wed", "sat", "sun") and self.n > 2 and (i == 0 or low[i - 1] not in ("on", "every", "each", "next", "this")):
                return None
            return Quantity("weekday", WEEKDAYS[token], "", WEEKDAYS[token], token, i, i + 1)
        if token in FREQUENCY_WORDS:
            return Quantity("rate", FREQUENCY_WORDS[token], "", 1, token, i, i + 1)
        if token in ("every", "each"):
            return self.every(i)
        if token in ("noon", "midday", "midnight"):
            minutes = 0 if token == "midnight" else 720
            return Quantity("clock", (minutes, "am" if minutes == 0 else "pm"), "", minutes, token, i, i + 1)
        if token in ("half", "quarter", "ten", "twenty", "five", "a") and (clock := self.spoken_clock(i)):
            return clock
        if token in CURRENCY_SIGNS:
            return self.money(i)
        sign = 1.0
        if token == "-" or token == "minus":
            if i + 1 >= self.n or (token == "-" and (not self.text.glued(i + 1) or self.text.glued(i))):
                return None
            if not low[i + 1][0].isdigit() and low[i + 1] not in NUMBER_WORDS:
                return None
            return self.from_number(i + 1, -1.0, i)
        return self.from_number(i, sign, i)

    # -- the pieces --------------------------------------------------------------------------------------------------

    def read(self, i: int) -> tuple[float, int, bool] | None:
        """A magnitude at token i: digits or words, with "k", "million", "and a half", "dozen": (value, next, ordinal)."""
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
            if i > 1 and low[i - 1] == "-" and self.text.glued(i) and self.text.glued(i - 1) and low[i - 2].isalpha():
                if low[i - 2] not in NUMBER_WORDS:
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
                if below and value < below and j + 2 < n and (low[j + 2] in ("of", "cup", "cups") or self.has_unit(j + 2)):
                    value, j = value / below, j + 2
            elif j + 2 < n and low[j + 1] == "/" and self.text.glued(j + 1):
                top, below = _number(low[j]), _number(low[j + 2])
                if top and below and top < below:
                    value, j = value + top / below, j + 3
        elif token in NUMBER_WORDS or token in ORDINAL_WORDS:
            if token == "one" and not self.one_counts(i):
                return None
            words = _words_to_number(low, i, n)
            if words is None:
                return None
            value, j, ordinal = words
        elif token in ("a", "an"):
            if i + 1 < n and low[i + 1] in ("dozen", "couple", "hundred", "thousand", "million", "score"):
                value, j = 1.0, i + 1
            else:
                return None
        elif token == "half" and (k := self.after_article(i + 1)) and k < n and low[k] in ("dozen", "million"):
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
        """"22,50" is 22.5 next to a currency."""
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
        if before in _NOT_A_NUMBER_BEFORE or after in ("of", "another", "that", "day"):
            return False
        return not (after in _NOT_A_NUMBER_AFTER and before.endswith(("est", "er", "ed")) and before.isalpha())

    def from_number(self, i: int, sign: float, first: int) -> Quantity | None:
        low, n = self.low, self.n
        token = low[i]
        if token in ("a", "an", "half", "quarter", "three") and (span := self.indefinite(i)):
            return self.extend_duration(span, first)
        if token == "once":
            after = low[i + 1] if i + 1 < n else "."
            counted = not after[0].isalpha() or after in _AFTER_ONCE or (i > 0 and low[i - 1] in ("only", "just", "exactly"))
            if not counted:
                return None  # "you once had"
            return self.times(1.0, i + 1, first, "once")
        if token == "twice":
            return self.times(2.0, i + 1, first, "twice")
        if token == "thrice":
            return self.times(3.0, i + 1, first, "thrice")
        if token[0].isdigit() and i + 2 < n and self.text.glued(i + 1):
            if low[i + 1] == "/" and (day := self.short_date(i)):
                return day
            if low[i + 1] == "h" and low[i + 2].isdigit() and len(low[i + 2]) == 2 and self.text.glued(i + 2):  # 19h30
                parts = (int(float(token)), int(low[i + 2]))
                return Quantity("colon", parts, "24" if parts[0] > 12 else "", parts[0], token, first, i + 3)
        got = self.read(i)
        if got is None:
            return None
        value, j, ordinal = got
        value *= sign
        if j < n:
            if (stop := self.ranged(value, i, j, first)) is not None:
                return stop
            if ordinal or (value == int(value) and 1 <= value <= 31):
                dated = self.day_first(value, j, first, ordinal)
                if dated:
                    return dated
            if (clock := self.clock_suffix(value, j, first)) is not None:
                return clock
            unit = self.unit(value, j, first)
            if unit is not None:
                return unit
        if j < n and self.text.glued(j) and low[j].isalpha() and len(low[j]) == 1 and low[first].isdigit() and low[j] not in "xks":
            return None  # "14b"
        if low[j - 1] == "dozen":
            return Quantity("number", value, "", value / 12, "dozen", first, j)
        return Quantity("number", value, "ordinal" if ordinal else "", value, low[j] if j < n else "", first, j)

    def unit(self, value: float, j: int, first: int) -> Quantity | None:
        """A magnitude whose unit begins at token j."""
        low, n = self.low, self.n
        token = low[j]
        if token == "-" and j + 1 < n and self.text.glued(j + 1) and low[j + 1].isalpha():
            j += 1  # 55-inch, 20-minute
            token = low[j]
        glued = self.text.glued(j)
        if token == "%":
            return Quantity("percent", value, "", value, "%", first, j + 1)
        if token in ("percent", "pct", "percentage"):
            return Quantity("percent", value, "", value, token, first, j + 1)
        if token == "per" and j + 1 < n and low[j + 1] == "cent":
            return Quantity("percent", value, "", value, "percent", first, j + 2)
        if token in CURRENCY_SIGNS or (token in CURRENCIES):
            code = CURRENCY_SIGNS.get(token) or CURRENCIES[token]
            return Quantity("money", value, code, value, token, first, j + 1)
        if token == "times" or token == "time" or (token == "x" and glued):
            return self.times(value, j + 1, first, "times")
        if token in DURATIONS and (len(token) > 1 or glued or self.short_unit(j)):
            factor, base = DURATIONS[token]
            span = Quantity("duration", value * factor, base, value, token, first, j + 1)
            return self.extend_duration(span, first)
        if token == "°" and j + 1 < n and low[j + 1] in ("c", "f"):
            return Quantity("measure", value, "celsius" if low[j + 1] == "c" else "fahrenheit", value, "°", first, j + 2)
        if token == "°" or token in ("degree", "degrees"):
            if j + 1 < n and low[j + 1] in ("celsius", "fahrenheit", "c", "f"):
                unit = "celsius" if low[j + 1][0] == "c" else "fahrenheit"
                return Quantity("measure", value, unit, value, low[j + 1], first, j + 2)
            return Quantity("measure", value, "degrees", value, "degrees", first, j + 1)
        if token in MEASURES and (len(token) > 2 or glued or self.short_unit(j)):
            dimension, factor = MEASURES[token]
            found = Quantity("measure", value * factor, dimension, value, token, first, j + 1)
            return self.extend_measure(found, first)
        if token in ("win", "wins", "won") and j + 2 < n:
            k = j + 2 if low[j + 1] in ("and", ",", "to") else j + 1
            if (lost := self.read(k)) and lost[1] < n and low[lost[1]] in ("loss", "losses", "lost", "defeats"):
                return Quantity("range", (value, lost[0]), "", value, "score", first, lost[1] + 1)
        return None

    def short_unit(self, j: int) -> bool:
        """A one- or two-letter unit written apart ("5 km", "3 h") must not go on as a word ("5 in the box")."""
        return self.low[j] not in ("in", "m", "s", "d", "y", "l", "g", "a", "c", "f") or (
            self.low[j] in ("m", "l", "g", "c", "f", "s")
            and (j + 1 >= self.n or not self.low[j + 1][0].isalpha())
            and self.low[j - 1][0].isdigit()
        )

    def extend_duration(self, span: Quantity, first: int) -> Quantity:
        """Add the smaller parts that follow: "27 minutes and 40 seconds", "2 hours and a half", "1 year, 5 months"."""
        low, n = self.low, self.n
        total, unit, j = span.value, span.unit, span.last
        assert isinstance(total, float | int)
        scale = DURATIONS[span.word][0] if span.word in DURATIONS else 1.0
        while j < n:
            k = j
            if low[k] in ("and", ",", "&"):
                k += 1
            if k < n and low[k] == "and":
                k += 1
            if k + 1 < n and k > j and low[k] == "a" and low[k + 1] in ("half", "quarter"):
                total, j = total + scale * (0.5 if low[k + 1] == "half" else 0.25), k + 2
                continue
            part = self.read(k)
            if part is None or part[1] >= n:
                break
            word = low[part[1]]
            if word == "m" and scale == 3600 and self.text.glued(part[1]):
                word = "min"
            if word not in DURATIONS or (
                len(word) == 1 and not self.text.glued(part[1]) and not (word == "s" and self.short_unit(part[1]))
            ):
                break
            factor, base = DURATIONS[word]
            if base != unit or factor >= scale:
                break
            total, scale, j = total + part[0] * factor, factor, part[1] + 1
        if j != span.last:
            span = span._replace(value=total, last=j, raw=total)
        if j < n and low[j] in ("past", "to") and span.word.startswith("min"):
            hour = self.read(j + 1)
            if hour and hour[0] == int(hour[0]) and 1 <= hour[0] <= 12 and span.raw < 60:
                minutes = hour[0] % 12 * 60 + (span.raw if low[j] == "past" else -span.raw)
                return self.half_day(minutes % 720, hour[1], first)
        return span

    def extend_measure(self, found: Quantity, first: int) -> Quantity:
        """Feet and inches, pounds and ounces."""
        low = self.low
        j = found.last
        if found.word in ("feet", "foot", "ft", "pounds", "pound", "lbs", "lb", "kg", "stone") and j < self.n:
            k = j + 1 if low[j] in ("and", ",") else j
            part = self.read(k)
            if part and part[1] < self.n and low[part[1]] in MEASURES:
                dimension, factor = MEASURES[low[part[1]]]
                if dimension == found.unit and factor < MEASURES[found.word][1]:
                    assert isinstance(found.value, float | int)
                    return found._replace(value=found.value + part[0] * factor, last=part[1] + 1)
        return found

    def indefinite(self, i: int) -> Quantity | None:
        """"an hour", "half an hour", "a quarter of an hour", "three quarters of an hour", "a fortnight"."""
        low, n = self.low, self.n
        fraction, j = 1.0, i
        if low[i] in ("a", "an") and i + 1 < n and low[i + 1] in ("half", "quarter"):
            j = i + 1
        if low[j] == "half":
            fraction, j = 0.5, j + 1
        elif low[j] == "quarter":
            fraction, j = 0.25, j + 1
        elif low[j] == "three":
            if j + 1 < n and low[j + 1] == "-":
                j += 1
            if j + 1 < n and low[j + 1] in ("quarters", "quarter"):
                fraction, j = 0.75, j + 2
            else:
                return None
        if j < n and low[j] == "-" and j > i:
            j += 1
        if j < n and low[j] == "of" and j > i:
            j += 1
        if j < n and low[j] in ("a", "an"):
            j += 1
        if j <= i or j >= n or len(low[j]) < 3 or low[j] not in DURATIONS or low[j] == "second":
            return None
        if j == i + 1 and i and low[i - 1] in ("times", "time", "once", "twice", "hours", "minutes", "days", "much"):
            return None
        factor, base = DURATIONS[low[j]]
        return Quantity("duration", fraction * factor, base, fraction, low[j], i, j + 1)

    def times(self, count: float, j: int, first: int, word: str) -> Quantity:
        """"3 times", and when a period follows, "3 times a week" as a rate."""
        period = self.period(j)
        if period:
            return Quantity("rate", (count, period[0]), "", count, word, first, period[1])
        return Quantity("number", count, "", count, word, first, j)

    def period(self, j: int) -> tuple[float, int] | None:
        """"a week", "per month", "each day", "every two weeks", "weekly" from token j: (days, next token)."""
        low, n = self.low, self.n
        if j >= n:
            return None
        if low[j] in FREQUENCY_WORDS and isinstance(FREQUENCY_WORDS[low[j]], tuple):
            return FREQUENCY_WORDS[low[j]][1], j + 1
        if low[j] in ("every", "each"):
            found = self.every(j)
            return (found.value[1], found.last) if found and isinstance(found.value, tuple) else None
        if low[j] in ("a", "per", "an", "/") and j + 1 < n and low[j + 1] in DURATIONS:
            return _days(low[j + 1], 1.0), j + 2
        return None

    def every(self, i: int) -> Quantity | None:
        """"every week", "every other week", "every two weeks", "every third day"; not "every Tuesday"."""
        low, n = self.low, self.n
        j, step = i + 1, 1.0
        if j < n and low[j] in ("single",):
            j += 1
        if j < n and low[j] in ("other", "second"):
            step, j = 2.0, j + 1
        elif j < n and (got := self.read(j)):
            step, j = got[0], got[1]
        if j < n and low[j] in DURATIONS and len(low[j]) > 2:
            return Quantity("rate", (1.0, _days(low[j], step)), "", 1, "every", i, j + 1)
        return None

    def ranged(self, value: float, i: int, j: int, first: int) -> Quantity | None:
        """The number read up to token j as the low end of "6-8", "six to eight hours", "between 6 and 8", or "5-2"."""
        low, n = self.low, self.n
        k, word = j, low[j]
        own_unit = ""
        if word in MEASURES or word in DURATIONS or word == "%" or word in CURRENCIES:  # "6 hours to 8 hours"
            own_unit, k = word, j + 1
            if k >= n or (word == "a" and low[k] != "-"):
                return None
            word = low[k]
        if word not in _LINKS or word == "a":
            return None
        between = first > 0 and low[first - 1] == "between"
        if first > 1 and low[first - 1] in CURRENCY_SIGNS:
            between = low[first - 2] == "between"
        if (word == "and") != between:
            return None
        if word != "-" and first > 0 and low[first - 1] == "from" and not own_unit and not self.spans_a_range(first):
            return None
        k += 1
        if k < n and low[k] in CURRENCY_SIGNS:
            k += 1
        high = self.read(k)
        if high is None or (word == "-" and low[k] not in NUMBER_WORDS and not low[k][0].isdigit()):
            return None
        upper = self.from_unit(high[0], high[1], first)
        if upper is None:
            unit, end, scale, label = "", high[1], 1.0, ""
        else:
            unit, end, label = f"{upper.kind}:{upper.unit}", upper.last, upper.word
            scale = upper.value / high[0] if high[0] and isinstance(upper.value, float) else 1.0
        if word == "to" and upper is not None and upper.kind == "clock":
            return None
        return Quantity("range", (value * scale, high[0] * scale), unit, value, label, first, end)

    def spans_a_range(self, first: int) -> bool:
        """"from 6 to 8" is a change unless the words before say otherwise."""
        return first > 1 and self.low[first - 2] in ("anywhere", "ranging", "ranges", "range", "varies", "somewhere")

    def from_unit(self, value: float, j: int, first: int) -> Quantity | None:
        if j >= self.n or self.low[j] in ("win", "wins", "times", "time"):
            return None
        found = self.unit(value, j, first)
        return found if found and found.kind in ("duration", "measure", "percent", "money") else None

    def money(self, i: int) -> Quantity | None:
        """"$1,200", "$1.35k", "$40 million"; also a range "$30-40k"."""
        got = self.read(i + 1)
        if got is None:
            return None
        value, j, _ = got
        first = i
        if i and self.low[i - 1] == "-" and self.text.glued(i) and not self.text.glued(i - 1):
            value, first = -value, i - 1
        if j < self.n and (span := self.ranged(value, i + 1, j, i)) is not None:
            unit = span.unit or f"money:{CURRENCY_SIGNS[self.low[i]]}"
            return span._replace(first=i, unit=unit)
        return Quantity("money", value, CURRENCY_SIGNS[self.low[i]], value, self.low[i], first, j)

    # -- clock times and dates ---------------------------------------------------------------------------------------

    def half_day(self, minutes: float, j: int, first: int) -> Quantity:
        """A time on the twelve-hour dial and the words that pick the half of the day, if any follow."""
        low, n = self.low, self.n
        half, k = "", j
        if k < n and low[k] in ("o'clock", "oclock", "sharp"):
            k += 1
            j = k
        if k < n and low[k] in AM_PM:
            half, j = AM_PM[low[k]], k + 1
        elif k + 1 < n and low[k] in ("in", "at") and low[k + 1] in ("the", "night"):
            word = low[k + 2] if low[k + 1] == "the" and k + 2 < n else low[k + 1]
            stop = k + 3 if low[k + 1] == "the" else k + 2
            if word == "morning":
                half, j = "am", stop
            elif word in ("afternoon", "evening", "night"):
                half, j = "pm", stop
        if half:
            minutes = minutes % 720 + (720 if half == "pm" else 0)
        return Quantity("clock", (minutes, half), "", minutes, "time", first, j)

    def clock_suffix(self, value: float, j: int, first: int) -> Quantity | None:
        """"7 pm", "seven in the evening", "8 o'clock", "seven thirty" (words only), "19 h"."""
        low = self.low
        token = low[j]
        if value != int(value) and 0 < value < 13 and token in AM_PM and low[j - 1][-3:-2] == ".":  # "6.15 am"
            minutes = round((value - int(value)) * 100)
            return self.half_day(int(value) % 12 * 60 + minutes, j, first) if minutes < 60 else None
        if value != int(value) or not 0 < value <= 12:
            return None
        if token in AM_PM or token in ("o'clock", "oclock"):
            return self.half_day(value % 12 * 60, j, first)
        if token in ("in", "at"):
            found = self.half_day(value % 12 * 60, j, first)
            assert isinstance(found.value, tuple)
            return found if found.value[1] else None
        if first < j and low[first].isalpha() and (token in NUMBER_WORDS or token == "-"):
            k = j + 1 if token == "-" else j
            minutes = _words_to_number(low, k, self.n) if k < self.n else None
            if minutes and minutes[0] in (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55) and not minutes[2]:
                after = self.half_day(value % 12 * 60 + minutes[0], minutes[1], first)
                preceded = first > 0 and low[first - 1] in ("at", "by", "around", "about", "past", "is", "until")
                assert isinstance(after.value, tuple)
                if after.value[1] or preceded or minutes[0] >= 10:
                    return after
        return None

    def spoken_clock(self, i: int) -> Quantity | None:
        """"half past seven", "a quarter to seven", "ten past six"."""
        low, n = self.low, self.n
        j = i + 1 if low[i] == "a" else i
        if j + 2 >= n + 0 and j + 2 > n:
            return None
        if low[i] == "half" and i + 1 < n and low[i + 1] in NUMBER_WORDS and 1 <= NUMBER_WORDS[low[i + 1]] <= 12:
            if i + 2 >= n or low[i + 2] in AM_PM or not low[i + 2][0].isalnum():  # British "half seven"
                return self.half_day(NUMBER_WORDS[low[i + 1]] % 12 * 60 + 30, i + 2, i)
        if j < n and low[j] in ("half", "quarter"):
            minutes, k = (30.0 if low[j] == "half" else 15.0), j + 1
        elif low[i] != "a" and low[i] in ("five", "ten", "twenty"):
            words = _words_to_number(low, i, n)
            if words is None:
                return None
            minutes, k = words[0], words[1]
        else:
            return None
        if k + 1 >= n or low[k] not in ("past", "to", "after", "till", "before"):
            return None
        hour = self.read(k + 1)
        if hour is None or not 1 <= hour[0] <= 12 or hour[0] != int(hour[0]):
            return None
        if low[k] in ("to", "till", "before") and low[j] not in ("half", "quarter") and not self.tells_time(i):
            return None  # "ten to twelve hours" is a range
        shift = minutes if low[k] in ("past", "after") else -minutes
        return self.half_day((hour[0] % 12 * 60 + shift) % 720, hour[1], i)

    def tells_time(self, i: int) -> bool:
        return i > 0 and self.low[i - 1] in ("at", "by") and (i < 2 or self.low[i - 2] != "looking")

    def colon(self, i: int) -> Quantity:
        """"7:30 am" is a clock time; a bare "18:25" stays open: time of day, m:ss or h:mm."""
        token = self.low[i]
        parts = tuple(int(p) for p in token.split(":")[:4])
        if len(parts) == 2 and parts[0] <= 24 and parts[1] < 60 and len(token.split(":")[1]) == 2:
            half = self.half_day(parts[0] * 60 + parts[1], i + 1, i)
            assert isinstance(half.value, tuple)
            if half.value[1] and parts[0] <= 12:
                return half
            j = half.last
            if j < self.n and self.low[j] in ("h", "hrs", "hours", "uhr"):
                j += 1
            zero = token[0] == "0" or parts[0] > 12 or parts[0] == 0
            return Quantity("colon", parts, "24" if zero else "", parts[0], token, i, j)
        j = i + 1
        if j < self.n and self.low[j] in ("minutes", "min", "mins", "hours", "hrs"):
            j += 1
        return Quantity("colon", parts, "", parts[0], token, i, j)

    def short_date(self, i: int) -> Quantity | None:
        """"6/21": a month and a day when only one order is possible."""
        low = self.low
        if not (low[i].isdigit() and low[i + 2].isdigit() and self.text.glued(i + 2)):
            return None
        a, b = int(low[i]), int(low[i + 2])
        if (a, b) == (24, 7) or not 1 <= min(a, b) <= 12 < max(a, b) <= 31:
            return None
        return Quantity("date", (0, min(a, b), max(a, b)), "", 0, low[i], i, i + 3)

    def numeric_date(self, i: int) -> Quantity:
        token = self.low[i]
        a, b, c = (int(p) for p in token.replace("/", "-").replace(".", "-").split("-"))
        if a > 31:
            value = (a, b, c)
        elif b > 12:
            value = (c, a, b)
        elif a > 12:
            value = (c, b, a)
        else:
            return Quantity("date", (c, a, b), "either", 0, token, i, i + 1)
        return Quantity("date", value, "", 0, token, i, i + 1)

    def year(self, j: int) -> tuple[int, int]:
        """A four-digit year at token j or after a comma / "of": (year, next token), or (0, j)."""
        low, n = self.low, self.n
        k = j + 1 if j < n and low[j] in (",", "of", "in") else j
        if k < n and len(low[k]) == 4 and low[k].isdigit() and 1800 <= int(low[k]) <= 2199:
            return int(low[k]), k + 1
        return 0, j

    def month_first(self, i: int) -> Quantity | None:
        """"March 14", "March the 14th, 2026", "March 2026", "March". "may" counts only next to a day or a year."""
        low, n = self.low, self.n
        j = i + 1
        if j < n and low[j] == "." and len(low[i]) <= 4:
            j += 1
        k = j + 1 if j < n and low[j] == "the" else j
        day = self.read(k) if k < n and (low[k][0].isdigit() or low[k] in ORDINAL_WORDS or low[k] in NUMBER_WORDS) else None
        if day and day[0] == int(day[0]) and 1 <= day[0] <= 31:
            year, end = self.year(day[1])
            return Quantity("date", (year, MONTHS[low[i]], int(day[0])), "", 0, low[i], i, end)
        year, end = self.year(j)
        if year:
            return Quantity("date", (year, MONTHS[low[i]], 0), "", 0, low[i], i, end)
        if low[i] in ("may", "march", "mar", "dec", "sep", "oct", "jan", "jun", "jul") and not self.text.capital(i):
            return None
        if low[i] == "may" and (i == 0 or low[i - 1] not in ("in", "until", "since", "by", "of", "last", "this", "next")):
            return None
        return Quantity("date", (0, MONTHS[low[i]], 0), "", 0, low[i], i, i + 1)

    def day_first(self, value: float, j: int, first: int, ordinal: bool) -> Quantity | None:
        """"14 March", "14th of March 2026", "the fourteenth of March"."""
        low, n = self.low, self.n
        k = j + 1 if j < n and low[j] == "of" else j
        if k >= n or low[k] not in MONTHS or not 1 <= value <= 31:
            return None
        if low[k] == "may" and k + 1 < n and low[k + 1] in ("be", "have", "not", "well") and not self.text.capital(k):
            return None
        year, end = self.year(k + 1)
        return Quantity("date", (year, MONTHS[low[k]], int(value)), "", 0, low[k], first, end)


_STARTERS = frozenset(
    {"-", "minus", "a", "an", "half", "quarter", "once", "twice", "thrice", "every", "each", "noon", "midday"}
    | {"midnight", "dozen", "couple", "°"}
    | set(NUMBER_WORDS)
    | set(ORDINAL_WORDS)
    | set(CURRENCY_SIGNS)
    | set(MONTHS)
    | set(WEEKDAYS)
    | set(FREQUENCY_WORDS)
)


def _days(word: str, step: float) -> float:
    """The length of a period of ``step`` units in days; a month is 30 and a year 365 so that periods stay apart."""
    factor, base = DURATIONS[word]
    if base == "s":
        return step * factor / 86400
    return step * (30.0 if factor == 1 else 365.0 * factor / 12)


def parse(text: Text) -> list[Quantity]:
    """Every quantity of the text in reading order, none overlapping."""
    return _Parser(text).run()


# -- comparison --------------------------------------------------------------------------------------------------------


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


_MONEY_WORDS = frozenset(
    "much cost costs price paid pay spend spent budget worth rent salary earn earned money dollars amount fee save saved"
    " cashback total charge charged owe raised raise made discount premium deposit bill mortgage loan income wage wages"
    " savings price".split()
)
_PERCENT_WORDS = frozenset("percent percentage share fraction proportion rate portion discount % tip interest part".split())


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
        return units and raw_equal or (bool(gold.unit) != bool(seen.unit) and _raw_ends(gold) == _raw_ends(seen))
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
        return clock and other.value[0] % 60 == 0 and value == int(value) and 0 < value <= 24 and (
            value * 60 % 720 == other.value[0] % 720
        )
    if other.kind == "rate":
        assert isinstance(other.value, tuple)
        return _close(value, other.value[0]) and bool(asked & {"many", "times"})
    if other.kind == "date":
        assert isinstance(other.value, tuple)
        return bool(asked & {"year", "when"}) and other.value[0] == value and 1800 <= value <= 2199
    return False
