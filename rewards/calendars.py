"""Clock times and dates, read from a token stream."""

from __future__ import annotations

from rewards.numerals import Numerals, Quantity, words_to_number
from rewards.units import AM_PM, MONTHS, NUMBER_WORDS, ORDINAL_WORDS, WEEKDAYS
from rewards.words import words

BEFORE_A_DAY = words("& + on every each next this last until till since from to and or in by of , ( / - |")


_MINUTE_WORDS = frozenset(("five", "ten", "twenty"))


class Calendar(Numerals):
    """Adds times of day and dates."""

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
        """ "7 pm", "seven in the evening", "8 o'clock", "seven thirty" (words only), "19 h"."""
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
            minutes = words_to_number(low, k, self.n) if k < self.n else None
            if minutes and minutes[0] in (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55) and not minutes[2]:
                after = self.half_day(value % 12 * 60 + minutes[0], minutes[1], first)
                preceded = first > 0 and low[first - 1] in ("at", "by", "around", "about", "past", "is", "until")
                assert isinstance(after.value, tuple)
                if after.value[1] or preceded or minutes[0] >= 10:
                    return after
        return None

    def spoken_clock(self, i: int) -> Quantity | None:
        """ "half past seven", "a quarter to seven", "ten past six"."""
        low, n = self.low, self.n
        j = i + 1 if low[i] == "a" else i
        if j + 2 > n:
            return None
        hours = NUMBER_WORDS.get(low[i + 1], 0.0) if low[i] == "half" and i + 1 < n else 0.0
        if 1 <= hours <= 12 and (i + 2 >= n or low[i + 2] in AM_PM or not low[i + 2][0].isalnum()):
            return self.half_day(hours % 12 * 60 + 30, i + 2, i)  # British "half seven"
        if j < n and low[j] in ("half", "quarter"):
            minutes, k = (30.0 if low[j] == "half" else 15.0), j + 1
        elif low[i] in _MINUTE_WORDS or (low[i].isdigit() and int(low[i]) in (5, 10, 20, 25)):
            said = words_to_number(low, i, n) if low[i].isalpha() else (float(low[i]), i + 1, False)
            if said is None:
                return None
            minutes, k = said[0], said[1]
        else:
            return None
        if k + 1 >= n or low[k] not in ("past", "to", "after", "till", "before"):
            return None
        hour = self.read(k + 1)
        if hour is None or not 1 <= hour[0] <= 12 or hour[0] != int(hour[0]):
            return None
        of_day = hour[1] < n and (low[hour[1]] in AM_PM or low[hour[1] : hour[1] + 2] == ["in", "the"])
        spoken = low[j] in ("half", "quarter") or of_day or self.tells_time(i) or minutes >= hour[0]
        if low[k] in ("to", "till", "before") and not spoken:
            return None  # "ten to twelve hours" is a range
        if low[k] in ("after", "before") and low[j] not in ("half", "quarter"):
            return None
        shift = minutes if low[k] in ("past", "after") else -minutes
        return self.half_day((hour[0] % 12 * 60 + shift) % 720, hour[1], i)

    def tells_time(self, i: int) -> bool:
        return i > 0 and self.low[i - 1] in ("at", "by") and (i < 2 or self.low[i - 2] != "looking")

    def colon(self, i: int) -> Quantity:
        """ "7:30 am" is a clock time; a bare "21:05" stays open: time of day, m:ss or h:mm."""
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
        """ "6/21": a month and a day when only one order is possible."""
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

    def stamp(self, i: int) -> Quantity:
        """A numeric date with what the head of a session puts after it. "2022/08/29 (Mon) 19:25" is a stamp: it says
        when something was written and states no date, day or time. With one of the two only, it is that date."""
        low, n = self.low, self.n
        date, j = self.numeric_date(i), i + 1
        k = j + (j < n and low[j] in ("(", ","))
        day = k < n and low[k] in WEEKDAYS
        if day:
            j = k + 1 + (k + 1 < n and low[k + 1] == ")")
        time = j < n and ":" in low[j] and low[j] != ":"
        if day and time:
            return Quantity("stamp", (date.value, low[k], low[j]), "", 0, low[i], i, j + 1)
        return date._replace(last=j + time)

    def year(self, j: int) -> tuple[int, int]:
        """A four-digit year at token j or after a comma / "of": (year, next token), or (0, j)."""
        low, n = self.low, self.n
        k = j + 1 if j < n and low[j] in (",", "of", "in") else j
        if k < n and len(low[k]) == 4 and low[k].isdigit() and 1800 <= int(low[k]) <= 2199:
            return int(low[k]), k + 1
        return 0, j

    def month_first(self, i: int) -> Quantity | None:
        """ "March 14", "March the 14th, 2026", "March 2026", "March". "may" counts only next to a day or a year."""
        low, n = self.low, self.n
        j = i + 1
        if j < n and low[j] == "." and len(low[i]) <= 4:
            j += 1
        k = j + 1 if j < n and low[j] == "the" else j
        day = (
            self.read(k)
            if k < n and (low[k][0].isdigit() or low[k] in ORDINAL_WORDS or low[k] in NUMBER_WORDS)
            else None
        )
        if day and day[0] == int(day[0]) and 1 <= day[0] <= 31:
            year, end = self.year(day[1])
            return Quantity("date", (year, MONTHS[low[i]], int(day[0])), "", 0, low[i], i, end)
        year, end = self.year(j)
        if year:
            return Quantity("date", (year, MONTHS[low[i]], 0), "", 0, low[i], i, end)
        if (len(low[i]) <= 3 or low[i] == "march") and self.n > 2 and (i == 0 or low[i - 1] not in BEFORE_A_DAY):
            return None  # "you may", "they march"
        return Quantity("date", (0, MONTHS[low[i]], 0), "", 0, low[i], i, i + 1)

    def day_first(self, value: float, j: int, first: int, ordinal: bool) -> Quantity | None:
        """ "14 March", "14th of March 2026", "the fourteenth of March"."""
        low, n = self.low, self.n
        k = j + 1 if j < n and low[j] == "of" else j
        if k >= n or low[k] not in MONTHS or not 1 <= value <= 31:
            return None
        if k + 1 < n and low[k + 1].isdigit() and int(low[k + 1]) <= 31:
            return None  # "first October 8, then ..."
        if low[k] == "may" and k + 1 < n and low[k + 1] in ("be", "have", "not", "well"):
            return None
        year, end = self.year(k + 1)
        return Quantity("date", (year, MONTHS[low[k]], int(value)), "", 0, low[k], first, end)
