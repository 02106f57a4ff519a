"""Reading a gold or stale value next to its question: its forms, packed alternates, the words that are needed."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from rewards.lexicon import STOP
from rewards.numerals import Quantity
from rewards.quantities import parse
from rewards.sameness import same
from rewards.text import Text, tokenise
from rewards.units import DURATIONS, MEASURES, NUMBER_WORDS, ORDINAL_WORDS
from rewards.values import NO, SKIPPED, TITLES, YES, Form, Question, Value, canon, canonical, read_question
from rewards.words import words

_LEADING = words("in at on to from by of with for into inside the")
_ACCEPTABLE = re.compile(r"\b(?:is|are) (?:also )?(?:acceptable|accepted|fine|ok|okay)\b", re.IGNORECASE)
_PAREN = re.compile(r"\(([^()]{1,200})\)")
_OR_START = re.compile(r"^(?:or|aka|a\.k\.a\.|i\.e\.,?|also|also known as|that is,?|=)\s+", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[\w)'\"])[.!?;](?=\s+[A-Z\d(]|\s*$)")


def _alternates(value: str) -> list[str]:
    """The separately sufficient spellings packed into one gold."""
    if _ACCEPTABLE.search(value):
        pieces = [p for p in _SENTENCE_END.split(value) if p and p.strip()]
        out = []
        for piece in pieces:
            cut = _ACCEPTABLE.sub("", piece)
            out += [s for s in _alternates(_PAREN.sub("", cut).strip(" .")) if s]
        return out or [value]
    sides = value.split(" or ")
    if len(sides) == 2:  # "2 meters or 200 cm"
        left, right = (parse(tokenise(side)) for side in sides)
        if len(left) == len(right) == 1 and same(left[0], right[0]):
            return sides
    out = [value]
    parens = _PAREN.findall(value)
    if parens:
        main = _PAREN.sub(" ", value).strip(" .,;")
        if main:
            out = [main]
        for inner in parens:
            stripped = _OR_START.sub("", inner.strip())
            explicit = stripped != inner.strip()
            at_end = value.rstrip(" .").endswith(f"({inner})")
            short = len(inner.split()) <= 3 and len(main.split()) <= 8
            if explicit or (at_end and short and _may_stand_alone(stripped, main)):
                out.append(stripped)
    return out


def _may_stand_alone(inner: str, main: str) -> bool:
    """Whether a bracketed remark names the value again ("(level 2)", "(UCLA)") and not a detail of it."""
    if inner.isupper() and len(inner) <= 8:
        return True
    text = tokenise(re.sub(r"^(?:about|approx\.?|approximately|roughly|circa|~)\s*", "", inner, flags=re.IGNORECASE))
    if any(w in STOP or w in ("from", "on") for w in text.lower[:1]):
        return False
    inner_q, main_q = parse(text), parse(tokenise(main))
    labelled = len(text.lower) == 2 and text.lower[0].isalpha() and bool(main_q)
    if labelled and (text.lower[1].isdigit() or len(text.lower[1]) == 1):  # "(track 9)", "(carriage E)"
        return True
    if not inner_q:
        return False
    return (bool(main_q) and inner_q[0].raw == main_q[0].raw) or any(
        q.kind in ("colon", "duration", "clock", "measure") for q in inner_q
    )


@lru_cache(maxsize=16384)
def read_value(value: str, question: str, contrast: tuple[str, ...] = ()) -> Value:
    """Read a gold or stale value in the light of its question. What a sentence shares with the values in ``contrast``
    says nothing and may be missing."""
    asked = read_question(question)
    if contrast and len(value.split()) >= 4:
        shared = frozenset.intersection(*(frozenset(canonical(tokenise(other))[0]) for other in contrast))
        asked = replace(asked, known=frozenset(w for w in shared if w[0].isalpha()))
    forms: list[Form] = []
    literal = tokenise(value)
    if len(literal.lower) >= 3 and literal.lower[0] not in YES and literal.lower[0] not in NO:
        words = [w for w in canonical(literal)[0] if w]
        while words and not words[-1][-1].isalnum():
            words.pop()
        if len(words) >= 3:
            forms.append(Form("words", words=tuple(words), needed=tuple(w[0].isalnum() for w in words)))
    for spelling in _alternates(value):
        for form in _forms(spelling, asked):
            if form not in forms:
                forms.append(form)
    return Value(value, tuple(forms))


def _forms(spelling: str, asked: Question) -> list[Form]:
    text = tokenise(spelling)
    low = text.lower
    if not low:
        return []
    if low[0] in YES or low[0] in NO:
        rest = [w for w in low[1:] if w[0].isalnum()]
        if not rest or low[1] in (",", ".", ";", "!", "—", "(", ":"):
            return [Form("bool", yes=low[0] in YES)]
    if "," in low or "and" in low or "&" in low or "\n" in low or "/" in low:
        listed = _list_form(spelling, text, asked)
        if listed:
            return [listed]
    quantity = _pure_quantity(text, asked)
    if quantity is None and low == ["none"] and "many" in asked.words:
        quantity = Quantity("number", 0.0, "", 0.0, "none", 0, 1)
    if quantity:
        label = low[quantity.first - 1] if quantity.first else ""
        named = label.isalpha() and label not in STOP and label not in _QUANTITY_FILLER
        return [Form("quantity", quantity=quantity, words=(canon(label),) if named else ())]
    return _word_forms(text, asked)


def _pure_quantity(text: Text, asked: Question) -> Quantity | None:
    """The quantity that a spelling consists of, next to filler and the question's own words."""
    found = parse(text)
    if not found:
        return None
    low = text.lower
    colon = next((i for i, w in enumerate(low) if w in (":", ".", ";") and i), len(low))
    strung = next((i for i, w in enumerate(low) if w in ("and", "&", ",", "plus") and i), None)
    if strung is not None and any(
        w.isalpha() and w not in STOP and canon(w) not in asked.canon for w in low[strung:colon]
    ):
        counts = [q for q in found if q.kind == "number" and q.last <= strung]
        if counts:
            return None  # "two cats and a tortoise"
    head = [q for q in found if q.first < colon]
    head = [q for q in head if not (q.kind == "rate" and len(head) > 1 and q.word in ("every", "each"))] or head
    if len(head) > 1 and head[0].kind == "date" and all(q.kind == "weekday" for q in head[1:]):
        head = head[:1]
    if len(head) != 1:
        return None
    quantity = head[0]
    before = [w for w in low[: quantity.first] if w[0].isalnum()]
    after = [w for w in low[quantity.last : colon] if w[0].isalnum()]
    if quantity.kind == "number" and quantity.first and low[quantity.first - 1] == "-":
        return None
    if any(canon(w) not in asked.canon and w not in STOP and w not in _QUANTITY_FILLER for w in before):
        return None
    extra = [w for w in after if canon(w) not in asked.canon and w not in STOP and w not in _QUANTITY_FILLER]
    if quantity.unit == "ordinal":  # an ordinal names a thing: "5th floor" is words, with floor optional
        return None if extra else quantity
    capital = any(text.capital(i) for i in range(quantity.last, len(low)) if low[i] in extra)
    if capital or len(extra) > 3:
        return None
    if quantity.kind == "range" and extra and quantity.unit.startswith("measure"):
        return None
    return quantity


_QUANTITY_FILLER = words(
    "every each about around approximately roughly nearly almost over under exactly close total number ago old"
    " each way times time so far altogether together least most more than per ounces completed currently total"
    " daily weekly now"
)


_LABELLED = re.compile(r"^[^\W\d]+ \w?\d+\w?$")
_ORDER = re.compile(
    r"\border of\b|\bin (?:what |which )?order\b|\b(?:what|which) order\b|\bsequence\b|\bfirst to last\b"
)


def _list_form(spelling: str, text: Text, asked: Question) -> Form | None:
    """ "A and B", "A, B, and C", one item a line. A comma alone does not make two things a list."""
    low = text.lower
    if any(w in ("is", "are", "was", "were", "you", "i", "we", "which", "then", "first", "did", "have") for w in low):
        return None
    flat = _PAREN.sub(" ", spelling)
    pieces = [
        p.strip(" .") for p in re.split(r",\s*(?:and\s+)?|\s+and\s+|\s*&\s*|\n|\s+/\s+", flat, flags=re.IGNORECASE)
    ]
    pieces = [p for p in pieces if p]
    joined = " and " in f" {spelling.lower()} " or "&" in spelling or "\n" in spelling or " / " in spelling
    labelled = all(_LABELLED.match(p) for p in pieces)
    if len(pieces) < 2 or (len(pieces) == 2 and not joined and not labelled) or any(len(p.split()) > 6 for p in pieces):
        return None
    if parse(text) and _pure_quantity(text, asked):
        return None
    items = []
    for piece in pieces:
        forms = _forms_of_item(piece, asked)
        if not forms:
            return None
        items.append(forms[0])
    ordered = bool(_ORDER.search(asked.text.lower()))
    return Form("list", items=tuple(items), ordered=ordered)


def _forms_of_item(piece: str, asked: Question) -> list[Form]:
    text = tokenise(piece)
    quantity = _pure_quantity(text, asked)
    counted = (
        quantity is not None and quantity.kind == "number" and any(w.isalpha() for w in text.lower[quantity.last :])
    )
    if quantity and not counted:
        return [Form("quantity", quantity=quantity)]
    return _word_forms(text, asked)


_SUBJECTS = words("you i we it he she they the there you've i've we've it's your my")
_PRONOUNS = words("you i we it he she they you've i've we've")
_SPEAKS = {"said": "say", "says": "say", "told": "tell", "advised": "advise", "decided": "decide"}
_FINITE = words("is are was were am have has had do does did will would can could you've i've we've it's he's she's")


def _word_forms(text: Text, asked: Question) -> list[Form]:
    low = text.lower
    words, places = canonical(text)
    keep = [(w, p) for w, p in zip(words, places, strict=True) if w[0].isalnum() or w in "%.,:/&+"]
    while keep and not keep[-1][0][0].isalnum():
        keep.pop()
    while keep and not keep[0][0][0].isalnum():
        keep.pop(0)
    if not keep:
        return []
    sentence = len(keep) >= 4 and (
        low[0] in _PRONOUNS or (low[0] in _SUBJECTS and any(w in _FINITE or w[-2:] == "ed" for w in low[1:8]))
    )
    if sentence or len(keep) > 9:
        option = _chosen_option(keep, asked)
        if option is not None:
            return [option]
        reduced = [
            (w, p)
            for w, p in keep
            if w not in asked.canon and low[p] not in STOP and w[0].isalnum() and _SPEAKS.get(w) not in asked.words
        ]
        reduced = [(w, p) for w, p in reduced if w not in asked.known] or reduced
        if not reduced:
            reduced = keep
        if len(reduced) > 5 or not sentence:
            return [_bag(text, reduced, asked)]
        while len(reduced) > 1 and low[reduced[0][1]].endswith(("ed", "ing")):
            reduced = reduced[1:]
        place = reduced[0][1]
        if len(reduced) > 1 and 0 < place <= 2 and low[place - 1] in _SUBJECTS and not text.capital(place):
            reduced = reduced[1:]  # the verb: "You hid it behind ..."
        first = reduced[0][1]
        chunk = [(w, p) for w, p in keep if first <= p <= reduced[-1][1]]
        wanted = {p for _, p in reduced}
        return [
            Form(
                "words",
                words=tuple(w for w, _ in chunk),
                needed=tuple(p in wanted and low[p] not in _PLACE_WORDS for _, p in chunk),
                proper=any(text.capital(p) for _, p in chunk if p),
                stems=True,
            )
        ]
    while len(keep) > 1 and keep[0][0] in _LEADING:
        keep = keep[1:]
    return [_phrase(text, keep, asked)]


def _chosen_option(keep: list[tuple[str, int]], asked: Question) -> Form | None:
    """For "more water or less?" the option that a sentence gold takes, and the noun behind it."""
    words = tokenise(asked.text).lower
    if "or" not in words[1:-1]:
        return None
    at = len(words) - 1 - words[::-1].index("or")
    right = next((w for w in words[at + 1 :] if w not in SKIPPED and w[0].isalpha()), "")
    left = next((w for w in reversed(words[:at]) if w not in SKIPPED and w[0].isalpha()), "")
    opposite = {"more": "less", "less": "more"}.get(right, left)
    for option, against in ((right, opposite), (opposite, right)):
        stem = option[: max(4, len(option) - 2)]
        hits = [k for k, (w, _) in enumerate(keep) if len(option) > 3 and w.startswith(stem)]
        barred = any(w.startswith(against[: max(4, len(against) - 2)]) for w, _ in keep)
        if hits and not barred:
            k = hits[0]
            chunk = [option if keep[k][0].startswith(option) else keep[k][0]]
            needed = [True]
            if k + 1 < len(keep) and keep[k + 1][0] in asked.canon and option in ("more", "less", "fewer"):
                chunk.append(keep[k + 1][0])
                needed.append(False)
            return Form("words", words=tuple(chunk), needed=tuple(needed))
    return None


_PLACE_WORDS = words("under over behind beneath underneath below above near beside inside by next")
_MEANT = frozenset(["under", "over", "behind", "near"])


def _phrase(text: Text, keep: list[tuple[str, int]], asked: Question) -> Form:
    """A name or a short phrase. Optional are the question's words, units after digits, common nouns after a model name,
    and "by <author>"."""
    low = text.lower
    words = [w for w, _ in keep]
    capital = [text.capital(p) or low[p][0].isdigit() for _, p in keep]
    digits = [low[p][0].isdigit() for _, p in keep]
    needed = [True] * len(words)
    has_model = any(digits)
    for k, (word, place) in enumerate(keep):
        if (
            (word in asked.canon and not digits[k])
            or (k and digits[k - 1] and (low[place] in MEASURES or low[place] in DURATIONS) and text.glued(place))
            or (has_model and not capital[k] and k > max(i for i, d in enumerate(digits) if d))
            or not word[0].isalnum()
            or (low[place] in STOP and low[place] not in NUMBER_WORDS)
        ):
            needed[k] = False
    if len(keep) > 1 and words[0] in TITLES and capital[1]:
        needed[0] = False
    if len(keep) == 2 and low[keep[0][1]] in ORDINAL_WORDS and words[1] in ("floor", "level", "grade", "row", "story"):
        needed[1] = False
    coded = [k for k in range(1, len(keep)) if digits[k] and len(words[k - 1]) <= 2 and words[k - 1].isalpha()]
    if coded and text.glued(keep[coded[0]][1]):  # "Ford F-150": the model code says it all
        needed[: coded[0] - 1] = [False] * (coded[0] - 1)
    if "by" in words[1:-1]:
        by = words.index("by", 1)
        if capital[by - 1] and all(capital[by + 1 :]) and not capital[by]:
            needed[by:] = [False] * (len(words) - by)
    for tail in ("at", "in"):  # "The Sugar Bowl at Pier Park": the place is not part of the name
        if tail in words[2:-1]:
            at = words.index(tail, 2)
            if all(capital[:at]) and all(capital[at + 1 :]) and not capital[at]:
                needed[at:] = [False] * (len(words) - at)
    if not any(needed):  # everything is in the question: an either/or question; its own words decide
        needed = [low[p] not in STOP for _, p in keep]
        options = asked.text.lower().split() if "or" in asked.words else []
        shared = [sum(canon(w.strip(",.?!")) == word for w in options) > 1 for word in words]
        if any(need and not both for need, both in zip(needed, shared, strict=True)):
            needed = [need and not both for need, both in zip(needed, shared, strict=True)]
        if any(digits) or any(w in ORDINAL_WORDS for w in low):
            needed = [digits[k] or low[p] in ORDINAL_WORDS or capital[k] for k, (_, p) in enumerate(keep)]
        elif not any(needed):
            needed = [True] * len(words)
        elif len(words) == 2 and sum(needed) == 2 and not any(capital):
            needed = [True, False]  # "the blue ones" for "the blue pills"
    return Form("words", words=tuple(words), needed=tuple(needed), proper=capital[0] and not digits[0])


def _bag(text: Text, keep: list[tuple[str, int]], asked: Question) -> Form:
    names = frozenset(w for w, p in keep if text.lower[p][0].isdigit() or (text.capital(p) and p > 0))
    names |= frozenset(w for w, p in keep if text.lower[p] in NUMBER_WORDS)
    return Form("sentence", words=tuple(dict.fromkeys(w for w, _ in keep)), names=names)
