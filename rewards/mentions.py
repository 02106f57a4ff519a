"""Where a text names a value: every place that states the gold, a stale value, or another value of the gold's kind."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from rewards.lexicon import STOP
from rewards.numerals import Quantity
from rewards.quantities import parse
from rewards.sameness import same
from rewards.text import Text
from rewards.values import SKIPPED, TITLES, Form, Question, Value, canon, canonical
from rewards.words import words

GOLD, STALE, OTHER = "gold", "stale", "other"


class Mention(NamedTuple):
    """Tokens first..last-1 name a value. ``key`` tells values apart: "gold", "stale:0", "other:12"."""

    first: int
    last: int
    who: str
    key: str
    quantity: Quantity | None = None
    whole: bool = True
    """Nothing but the value stands between its first and last token, so no cue inside counts."""


class Reading(NamedTuple):
    """An answer prepared for matching."""

    text: Text
    words: list[str]
    places: list[int]
    where: dict[str, list[int]]
    """canonical word -> its positions in ``words``"""
    quantities: list[Quantity]


def read_answer(text: Text, *, numeric: bool) -> Reading:
    words, places = canonical(text)
    where: dict[str, list[int]] = {}
    for k, word in enumerate(words):
        where.setdefault(word, []).append(k)
    return Reading(text, words, places, where, parse(text) if numeric else [])


class Span(NamedTuple):
    first: int
    last: int
    quantity: Quantity | None
    whole: bool


def find(reading: Reading, value: Value, asked: Question) -> list[Span]:
    """Token spans that state ``value`` in any of its forms, in reading order, overlaps resolved to the longest."""
    spans: list[Span] = []
    low = reading.text.lower
    for form in value.forms:
        if form.kind == "quantity":
            assert form.quantity is not None
            model, words = form.quantity, asked.words
            label = form.words[0] if form.words else ""
            spans += [
                Span(q.first - bool(label and q.first and canon(low[q.first - 1]) == label), q.last, q, True)
                for q in reading.quantities
                if same(model, q, words) and not is_label(reading.text, q, asked)
            ]
        elif form.kind == "words":
            spans += [Span(a, b, None, True) for a, b in _find_words(reading, form)]
        elif form.kind == "list":
            spans += [Span(a, b, None, False) for a, b in _find_list(reading, form, asked)]
        elif form.kind == "sentence":
            spans += [Span(a, b, None, False) for a, b in _find_bag(reading, form, value)]
    return longest(spans)


LABELS = words("step session chat note message option part section item figure point phase stage conversation")
"""Nouns that a number after them only counts off ("Step 2", "Session 1")."""


def is_label(text: Text, q: Quantity, asked: Question) -> bool:
    if q.kind != "number" or not q.first:
        return False
    before = text.lower[q.first - 1]
    return before in LABELS and before not in asked.words


def longest(spans: list[Span]) -> list[Span]:
    if len(spans) < 2:
        return spans
    spans.sort(key=lambda s: (s[0], -s[1]))
    out = [spans[0]]
    for span in spans[1:]:
        if span[0] >= out[-1][1]:
            out.append(span)
        elif span[1] - span[0] > out[-1][1] - out[-1][0]:
            out[-1] = span
    return out


def _find_words(reading: Reading, form: Form) -> list[tuple[int, int]]:
    """The words of the form one after another; words that are not needed may be missing."""
    wanted, needed = form.words, form.needed
    lead = needed.index(True)
    if len(wanted) == 1 and len(wanted[0]) >= 6 and wanted[0] not in reading.where and not form.stems:
        return _find_split(reading, wanted[0])
    out = []
    starts: set[int] = set()
    for k in range(lead + 1):
        for at in _places(reading, wanted[k], form):
            if at in starts:
                continue
            end = _match_at(reading.words, at, form, k)
            if end is None:
                continue
            starts.add(at)
            first, last = reading.places[at], reading.places[end - 1] + 1
            if _part_of_more(reading, form, k, at, end, first, last):
                continue
            out.append((first, last))
    return out


def _find_split(reading: Reading, word: str) -> list[tuple[int, int]]:
    """ "Tech Corp" for "TechCorp"."""
    words, places = reading.words, reading.places
    return [
        (places[k], places[k + 1] + 1)
        for k in range(len(words) - 1)
        if word.startswith(words[k]) and words[k] + words[k + 1] == word
    ]


def _alike(word: str, wanted: str) -> bool:
    """Whether a word is an inflection of the wanted one."""
    return len(wanted) >= 5 and word.startswith(wanted[:-1]) and len(word) - len(wanted) <= 3


def _places(reading: Reading, wanted: str, form: Form) -> list[int]:
    if not form.stems:
        return reading.where.get(wanted, [])
    return sorted(
        at for word, places in reading.where.items() if word == wanted or _alike(word, wanted) for at in places
    )


def _match_at(words: list[str], at: int, form: Form, k: int) -> int | None:
    """Match the form's words from number k on at words[at]: the position after the last word used, or None."""
    wanted, needed = form.words, form.needed
    n, size, end = len(words), len(wanted), at
    seen = False
    while k < size:
        if end < n and (words[end] == wanted[k] or (form.stems and _alike(words[end], wanted[k]))):
            seen = seen or needed[k]
            end += 1
        elif needed[k]:
            gap = end
            while form.stems and seen and gap < min(n, end + 3) and words[gap] in _BRIDGES:
                gap += 1
            if gap in (end, n) or words[gap] != wanted[k]:
                return None
            end = gap + 1
        k += 1
    return end if seen else None


_BRIDGES = words(", and or then to for by with of at in on it you also is was")


_BREAKS = frozenset('.,;:!?()\n/"|—→&+=\ue000\ue001')
_NAME_BEGINNINGS = words("new east west north south upper lower san santa saint st el la los las port fort mt great")
_NAME_ENDINGS = words("city heights beach springs falls pro max mini ultra lite plus jr ii iii iv vi vii viii ix")
"""What makes a longer name of a proper name: "New" York, Halo 9 "Pro". Closed lists: case decides nothing."""


def _part_of_more(reading: Reading, form: Form, k: int, at: int, end: int, first: int, last: int) -> bool:
    """Whether the words found are only a part of a longer name ("York" in "New York") or of another phrase."""
    text, low = reading.text, reading.text.lower
    size = len(form.words)
    if form.words[0] in TITLES and k:
        if last < len(low) and low[last][0].isalpha() and low[last] not in STOP:
            return True  # a surname alone: "Black" is not "black coffee"
        before = first - 1 - (first > 1 and low[first - 1] == ".")
        if before >= 0 and TITLES.get(canon(low[before])) not in (None, TITLES[form.words[0]]):
            return True
    if form.proper:
        if first and low[first - 1] in _NAME_BEGINNINGS and size == 1:
            return True
        summed = last + 1 < len(low) and low[last] == "plus" and low[last + 1][0].isalnum()
        if last < len(low) and low[last] in _NAME_ENDINGS and not summed:
            return True
    # the head noun left out: what follows must not be another noun ("road trip" for "road bike")
    if end - at < size - k and not form.needed[-1] and not form.proper and form.words[-1] not in reading.words[at:end]:
        following = low[last] if last < len(low) else "."
        if following == "-" or (following[0].isalpha() and following not in STOP and following[-2:] != "ly"):
            has_digits = any(w[0].isdigit() for w in form.words)
            return not has_digits
    return (
        first > 1
        and low[first - 1] == "-"
        and text.glued(first)
        and low[first - 2].isalpha()
        and (text.glued(first - 1) and low[first - 2] not in SKIPPED and low[first - 2] not in STOP)
    )


def _find_list(reading: Reading, form: Form, asked: Question) -> list[tuple[int, int]]:
    """All items near each other, in any order (or in order): the span from the first to the last."""
    found: list[tuple[int, int, int]] = []
    for number, item in enumerate(form.items):
        spans = find(reading, Value("", (item,)), asked)
        if not spans:
            return []
        found += [(s.first, s.last, number) for s in spans]
    found.sort()
    size, out = len(form.items), []
    at = 0
    while at + size <= len(found):
        window = found[at : at + size]
        numbers = [n for _, _, n in window]
        whole = len(set(numbers)) == size and (not form.ordered or numbers == sorted(numbers))
        if whole and window[-1][1] - window[0][0] <= 14 * size + 20 and not _item_denied(reading, window):
            out.append((window[0][0], max(b for _, b, _ in window)))
            at += size
        else:
            at += 1
    return out


_THROUGH = words("to through thru till until -")
_LISTED = words(", and & + / plus ( or")
_DENIALS = words("no not without never minus except excluding nor neither")


def _item_denied(reading: Reading, window: list[tuple[int, int, int]]) -> bool:
    """ "only coral, without any lime": one of the items is taken out again."""
    low = reading.text.lower
    items = {i for a, b, _ in window for i in range(a, b)}
    between = range(max(0, window[0][0] - 1), window[-1][1])
    if any(i not in items and (low[i] in _DENIALS or low[i].endswith("n't")) for i in between):
        return True
    for (_, a, _), (b, _, _) in pairwise(window):  # "a fern plus a cactus; the bonsai died": another statement
        gap = low[a:b]
        if gap and all(w in _THROUGH for w in gap):
            return True  # "Monday to Friday" is more than its ends
        ends = [w for w in gap if w not in SKIPPED]
        if len(ends) > 2 and ends[0] in _LISTED and ends[-1] in _LISTED and not any(w in ".;\n" for w in gap):
            return True  # one more item in between
        if ";" in low[a:b] and any(w[0].isalnum() and w not in STOP for w in low[a:b]):
            return True
    return False


SENTENCE_SHARE = 0.7
"""Of a long sentence gold, the share of its own content words that an answer must repeat (next to all its names)."""


def _find_bag(reading: Reading, form: Form, value: Value) -> list[tuple[int, int]]:
    """A long sentence gold: all its numbers and names, and most of its other words, in any order. A denial among them
    counts against it unless the gold has one too."""
    present = [w for w in form.words if w in reading.where]
    if any(name not in reading.where for name in form.names):
        return []
    if len(present) < SENTENCE_SHARE * len(form.words):
        return []
    positions = [reading.places[reading.where[w][0]] for w in present]
    first, last = min(positions), max(positions) + 1
    denied = any(w in _DENIALS or w.endswith("n't") for w in reading.text.lower[max(0, first - 1) : last])
    if denied and _DENIALS.isdisjoint(value.text.lower().split()) and "n't" not in value.text:
        return []
    return [(first, last)]


def find_all(reading: Reading, gold: Value, stale: tuple[Value, ...], asked: Question) -> list[Mention]:
    """Every mention, in reading order. Where two values share tokens the longer one is meant."""
    if any(
        f.quantity and f.quantity.kind == "number" and f.quantity.value == 0 for v in (gold, *stale) for f in v.forms
    ):
        reading = reading._replace(quantities=_with_none(reading, asked))
    if any(f.quantity and f.quantity.kind == "range" for v in (gold, *stale) for f in v.forms):
        reading = reading._replace(quantities=_from_to_ranges(reading))
    out = [Mention(s.first, s.last, GOLD, GOLD, s.quantity, s.whole) for s in find(reading, gold, asked)]
    for number, value in enumerate(stale):
        for s in find(reading, value, asked):
            out.append(Mention(s.first, s.last, STALE, f"stale:{number}", s.quantity, s.whole))
    out = _settle(out)
    models = [f.quantity for f in gold.forms if f.quantity] or [
        f.quantity for v in stale for f in v.forms if f.quantity
    ]
    if models:
        taken = {i for m in out for i in range(m.first, m.last)}
        for q in reading.quantities:
            if (
                q.first not in taken
                and not is_label(reading.text, q, asked)
                and any(comparable(model, q, asked) for model in models)
            ):
                out.append(Mention(q.first, q.last, OTHER, f"other:{q.kind}:{q.value}", q))
        out.sort()
    return out


def _with_none(reading: Reading, asked: Question) -> list[Quantity]:
    """Where nought is a value, "none" and "no <thing asked about>" say it."""
    low = reading.text.lower
    extra = [
        Quantity("number", 0.0, "", 0.0, "none", i, i + 1)
        for i, w in enumerate(low)
        if w in ("none", "nothing") or (w == "no" and i + 1 < len(low) and canon(low[i + 1]) in asked.canon)
    ]
    return sorted([*reading.quantities, *extra], key=lambda q: q.first)


def _from_to_ranges(reading: Reading) -> list[Quantity]:
    """Where ranges are asked for, "from 6 to 8 hours" is one."""
    low, out = reading.text.lower, list[Quantity]()
    for q in reading.quantities:
        before = out[-1] if out else None
        linked = before and before.last + 1 == q.first and low[before.last] in ("to", "through")
        plain = before and before.kind in ("number", q.kind)
        opened = before and plain and before.first and low[before.first - 1] == "from"
        if before and linked and opened and isinstance(q.value, float | int) and q.raw:
            low_end = float(before.raw) * q.value / q.raw if before.kind == "number" else float(before.value)  # ty: ignore[invalid-argument-type]
            unit = "" if q.kind == "number" else f"{q.kind}:{q.unit}"
            out[-1] = Quantity("range", (low_end, float(q.value)), unit, before.raw, q.word, before.first, q.last)
        else:
            out.append(q)
    return out


def comparable(model: Quantity, seen: Quantity, asked: Question) -> bool:
    """Whether ``seen`` could have been an answer where ``model`` is one: same kind of thing, whatever its value."""
    if model.kind == seen.kind:
        return model.unit == seen.unit or model.kind in ("date", "money", "range", "duration")
    if model.kind == "number":
        stand_in = model._replace(value=seen.raw)
        return seen.kind in ("percent", "money", "measure", "duration", "rate", "range") and (
            seen.kind == "range" or same(stand_in, seen, asked.words)
        )
    if seen.kind == "number":
        return model.kind in ("money", "percent", "measure") and seen.unit == ""
    if model.kind == "clock":
        return seen.kind == "colon"
    if model.kind == "duration":
        return seen.kind == "colon"
    if model.kind == "colon":
        return seen.kind in ("clock", "duration")
    return False


def _settle(found: list[Mention]) -> list[Mention]:
    found.sort(key=lambda m: (m.first, -m.last, m.who))
    out: list[Mention] = []
    for mention in found:
        while out and mention.first < out[-1].last:
            longer = mention.last - mention.first > out[-1].last - out[-1].first
            loose = not mention.whole and not out[-1].whole and mention.first > out[-1].first  # lists that run together
            if loose or not longer:
                break
            out.pop()
        else:
            out.append(mention)
    return out
