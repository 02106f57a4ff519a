"""Numbers, money, percentages, measures, durations, frequencies, clock times, dates, weekdays, ranges and scores.

``parse`` reads a token stream once, left to right, and returns comparable values. No library is used: text2num reads
"no one" as a number and has no spans, dateparser and dateutil guess a date out of almost any word and resolve it
against today, pint takes half a second to import. The grammar needed here is small and closed.

Values are kept in one base unit per kind: seconds or months for durations, minutes after midnight for clock times.
"""

from __future__ import annotations

from rewards.calendars import BEFORE_A_DAY, Calendar
from rewards.numerals import Quantity
from rewards.text import Text
from rewards.units import (
    CURRENCIES,
    CURRENCY_SIGNS,
    DURATIONS,
    FREQUENCY_WORDS,
    MEASURES,
    MONTHS,
    NUMBER_WORDS,
    ORDINAL_WORDS,
    WEEKDAYS,
)
from rewards.words import words

_LINKS = words("- to through til till until and a bis à")
_HUNDREDTHS = words("cent cents pence ¢")
_AFTER_ONCE = words("a an per every each in this last so weekly daily monthly yearly and or before already")


class _Parser(Calendar):
    """One pass over the tokens. Methods take a position and return a Quantity, or None and the caller moves on."""

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
            return self.stamp(i)
        if token in MONTHS:
            return self.month_first(i)
        if token in WEEKDAYS:
            listed = i == 0 and low[1:2] in (["&"], ["/"], ["+"])
            if len(token) <= 3 and self.n > 2 and not listed and (i == 0 or low[i - 1] not in BEFORE_A_DAY):
                return None  # "he sat", "the sun", "to wed"
            return Quantity("weekday", WEEKDAYS[token], "", WEEKDAYS[token], token, i, i + 1)
        if token in FREQUENCY_WORDS:
            return Quantity("rate", FREQUENCY_WORDS[token], "", 1, token, i, i + 1)
        if token in ("every", "each"):
            return self.every(i)
        if token in ("noon", "midday", "midnight"):
            minutes = 0 if token == "midnight" else 720
            return Quantity("clock", (minutes, "am" if minutes == 0 else "pm"), "", minutes, token, i, i + 1)
        if token in ("half", "quarter", "ten", "twenty", "five", "a", "5", "10", "20", "25") and (
            clock := self.spoken_clock(i)
        ):
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

    def from_number(self, i: int, sign: float, first: int) -> Quantity | None:
        low, n = self.low, self.n
        token = low[i]
        if token in ("a", "an", "half", "quarter", "three") and (span := self.indefinite(i)):
            return self.extend_duration(span, first)
        if token == "once":
            after = low[i + 1] if i + 1 < n else "."
            counted = (
                not after[0].isalpha() or after in _AFTER_ONCE or (i > 0 and low[i - 1] in ("only", "just", "exactly"))
            )
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
        if (
            j < n
            and self.text.glued(j)
            and low[j].isalpha()
            and len(low[j]) == 1
            and low[first].isdigit()
            and low[j] not in "xks"
        ):
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
        if token in _HUNDREDTHS:
            return Quantity("money", value / 100, "", value, token, first, j + 1)
        if token == "per" and j + 1 < n and low[j + 1] == "cent":
            return Quantity("percent", value, "", value, "percent", first, j + 2)
        if token in CURRENCY_SIGNS and (not low[j - 1][0].isdigit() or (j + 1 < n and low[j + 1][0].isdigit())):
            return None  # "First $79": the sign belongs to what follows
        if token in CURRENCY_SIGNS or token in CURRENCIES:
            code = CURRENCY_SIGNS.get(token) or CURRENCIES[token]
            return Quantity("money", value, code, value, token, first, j + 1)
        if token == "times" or token == "time" or (token == "x" and glued):
            return self.times(value, j + 1, first, "times")
        if token in DURATIONS and (len(token) > 1 or glued or self.short_unit(j)):
            factor, base = DURATIONS[token]
            span = Quantity("duration", value * factor, base, value, token, first, j + 1)
            return self.extend_duration(span, first)
        if token == "°" and j + 1 < n and low[j + 1] in ("c", "f"):
            return Quantity(
                "measure", value, "celsius" if low[j + 1] == "c" else "fahrenheit", value, "°", first, j + 2
            )
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
        """ "an hour", "half an hour", "a quarter of an hour", "three quarters of an hour", "a fortnight"."""
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
        """ "3 times", and when a period follows, "3 times a week" as a rate."""
        period = self.period(j)
        if period:
            return Quantity("rate", (count, period[0]), "", count, word, first, period[1])
        return Quantity("number", count, "", count, word, first, j)

    def period(self, j: int) -> tuple[float, int] | None:
        """ "a week", "per month", "each day", "every two weeks", "weekly" from token j: (days, next token)."""
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
        """ "every week", "every other week", "every two weeks", "every third day"; not "every Tuesday"."""
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
        if word == "°" and j + 2 < n and low[j + 1] in ("c", "f"):  # "24°C and 26°C"
            k = j + 2
            word = low[k]
        elif word in MEASURES or word in DURATIONS or word == "%" or word in CURRENCIES:  # "6 hours to 8 hours"
            k = j + 1
            if k >= n or (word == "a" and low[k] != "-"):
                return None
            word = low[k]
        if word not in _LINKS or word == "a":
            return None
        between = first > 0 and low[first - 1] == "between"
        if first > 1 and low[first - 1] in CURRENCY_SIGNS:
            between = low[first - 2] == "between"
        if (word == "and") != between or (word == "to" and first > 0 and low[first - 1] == "by"):
            return None
        if word != "-" and first > 0 and low[first - 1] == "from" and not self.spans_a_range(first):
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
        """ "from 6 to 8" is a change unless the words before say otherwise."""
        return first > 1 and self.low[first - 2] in ("anywhere", "ranging", "ranges", "range", "varies", "somewhere")

    def from_unit(self, value: float, j: int, first: int) -> Quantity | None:
        if j >= self.n or self.low[j] in ("win", "wins", "times", "time"):
            return None
        found = self.unit(value, j, first)
        return found if found and found.kind in ("duration", "measure", "percent", "money") else None

    def money(self, i: int) -> Quantity | None:
        """ "$1,200", "$1.35k", "$40 million"; also a range "$30-40k"."""
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
