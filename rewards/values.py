"""What a gold or a stale value is: its kinds, its alternative spellings, which of its words are needed.

A value is read once and cached: "25 minutes and 50 seconds (or 25:50)" has two quantity forms, "coral and lime" is a
list whose items are all needed, "You have rowed with Dana three times." is, next to its question, the number three.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from rewards.lexicon import STOP
from rewards.numerals import Quantity
from rewards.text import Text, tokenise
from rewards.units import NUMBER_WORDS, ORDINAL_WORDS
from rewards.words import words

YES = words("yes yeah yep yup yea aye affirmative")
NO = words("no nope nah nay negative")

SKIPPED = words("a an the my your his her their our its - ' this these those")
"""Tokens that carry no part of a name: articles, owners, hyphens."""
_DOTTED = words("dr mr mrs ms st ave mt jr sr prof no")
_SUFFIXES = frozenset(("st", "nd", "rd", "th"))
_ALIASES = {
    "&": "and", "beneath": "under", "underneath": "under", "below": "under", "grey": "gray", "colour": "color",
    "street": "st", "avenue": "ave", "road": "rd", "doctor": "dr", "mister": "mr", "mum": "mom", "mother": "mom",
    "father": "dad", "above": "over", "beside": "by", "tv": "television", "percent": "%", "favourite": "favorite",
    "centre": "center", "theatre": "theater", "neighbour": "neighbor", "saint": "st", "mount": "mt", "fort": "ft",
    "bicycle": "bike", "photo": "photograph", "pic": "photograph", "picture": "photograph", "automobile": "car",
}  # fmt: skip
TITLES = {"mr": "m", "mrs": "f", "ms": "f", "miss": "f", "dr": "dr", "prof": "prof", "professor": "prof"}


def canon(token: str) -> str:
    """One spelling per word: number words as digits, no possessive, no plural, a few aliases."""
    cached = _CANON_NUMBERS.get(token)
    if cached is not None:
        return cached
    first = token[0]
    if first.isdigit() or (first == "." and len(token) > 1):
        return _digits(token)
    if len(token) > 2:
        if token[-2:] == "'s":
            token = token[:-2]
        if "'" in token:
            token = token.replace("'", "")
        if len(token) > 3 and token[-1] == "s" and token[-2] not in "su'i":
            token = token[:-3] + "y" if token[-3:] == "ies" and len(token) > 4 else token[:-1]
    return _ALIASES.get(token, token)


def _digits(token: str) -> str:
    plain = token.replace(",", "")
    if plain.isdigit():
        return str(int(plain)) if len(plain) < 15 else plain
    try:
        return f"{float(plain):g}"
    except ValueError:
        return token


_CANON_NUMBERS = {w: f"{v:g}" for w, v in NUMBER_WORDS.items() if w != "one"} | {
    w: f"{v:g}" for w, v in ORDINAL_WORDS.items()
}


def canonical(text: Text) -> tuple[list[str], list[int]]:
    """The canonical tokens of a text without articles and hyphens, and where each one stands."""
    words, places = [], []
    low = text.lower
    for i, token in enumerate(low):
        if token in SKIPPED:
            continue
        if token in _SUFFIXES and i and low[i - 1][0].isdigit() and text.glued(i):
            continue
        if token == "." and i and low[i - 1] in _DOTTED:
            continue
        words.append(canon(token))
        places.append(i)
    return words, places


@dataclass(frozen=True)
class Form:
    """One way to state a value.

    kind "bool": ``yes``. kind "quantity": ``quantity``. kind "words": ``words`` in order, each needed unless its flag
    in ``needed`` is False. kind "list": every one of ``items`` in any order (in this order when ``ordered``). kind
    "sentence": long golds; ``words`` is a bag, those in ``names`` are all needed, of the rest a share.
    """

    kind: str
    yes: bool = False
    quantity: Quantity | None = None
    words: tuple[str, ...] = ()
    needed: tuple[bool, ...] = ()
    items: tuple[Form, ...] = ()
    ordered: bool = False
    names: frozenset[str] = frozenset()
    proper: bool = False
    """The words begin with capitals: a longer name around them is another name."""
    stems: bool = False
    """A sentence's words may be inflected ("decline", "declined"), commas and function words stand between them."""


@dataclass(frozen=True)
class Value:
    """A gold or stale value and its forms, the most literal first."""

    text: str
    forms: tuple[Form, ...]

    @property
    def is_bool(self) -> bool:
        return bool(self.forms) and self.forms[0].kind == "bool"


@dataclass(frozen=True)
class Question:
    """What is read from the question once."""

    text: str
    words: frozenset[str]
    """Its words in lower case."""
    canon: frozenset[str]
    """Its content words in canonical spelling."""
    known: frozenset[str] = frozenset()
    """Words that a sentence shares with the other values."""


_OPENS_A_QUESTION = words(
    "what which who whom whose when where why how do does did is are was were am have has had can could will would"
    " should on at in to from with by for under"
)


def _core(question: str) -> str:
    """The question itself, without a lead-in ("Before I forget: what is ...?")."""
    lead, colon, rest = question.rpartition(": ")
    first = re.match(r"\s*([^\W\d]+)", rest)
    opened = re.match(r"\s*([^\W\d]+)", lead)
    if not colon or not first or first[1].lower() not in _OPENS_A_QUESTION or not rest.rstrip().endswith("?"):
        return question
    asks_itself = opened and opened[1].lower() in {"what", "which", "who", "when", "where", "how"}
    return question if asks_itself else rest


@lru_cache(maxsize=4096)
def read_question(question: str) -> Question:
    question = _core(question)
    text = tokenise(question)
    words = frozenset(text.lower)
    content = frozenset(canon(w) for w in words if w not in STOP and (w[0].isalnum()))
    return Question(question, words, content)


_POLAR = words(
    "do does did is are was were am have has had can could will would should may might shall isn't aren't don't"
    " doesn't didn't haven't hasn't"
)


def asks_yes_no(question: Question) -> bool:
    words = tokenise(question.text).lower
    last = words
    for mark in (",", ".", "?"):
        if mark in last[:-1]:
            last = last[len(last) - 1 - last[-2::-1].index(mark) :]
    return bool(words) and (words[0] in _POLAR or (bool(last) and last[0] in _POLAR))
