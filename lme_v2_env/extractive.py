"""A reader without a model: it finds the line of the context that is most like the question and copies from it.

It can answer a question whose answer stands on one line of a page (a value, an amount, a name), tell whether a named
thing is on a page, and choose the option whose words a page has. It cannot count, compare pages, follow several steps,
look at pictures or notice that a question's premise is wrong. It serves tests and training without GPUs, where what
matters is whether the evidence was retrieved; its accuracy says nothing about a language model's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lme_v2_env.chat import Endpoint
from lme_v2_env.memory.api import ContextItem, searched
from lme_v2_env.memory.index import STOP_WORDS
from lme_v2_env.memory.slices import plain_line, words
from lme_v2_env.reader import Reading
from lme_v2_env.trajectory import QuestionView

VERSION = 2
"""Part of a run's record: raise it when answers change."""

OPTION = re.compile(r"^\s*\(?([A-H])[.):]\s+(.+)$", re.MULTILINE)
TRUE_FALSE = re.compile(r"\btrue\s*(?:or|/)\s*false\b", re.IGNORECASE)
YES_NO = re.compile(r"\byes\s*(?:or|/)\s*no\b", re.IGNORECASE)
ASKS_NUMBER = re.compile(r"\b(integer|number|amount|price|cost|how much|percentage)\b", re.IGNORECASE)
ASKS_MONEY = re.compile(r"\b(dollars?|price|cost|\$|usd)\b", re.IGNORECASE)
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
MONEY = re.compile(r"[$€£]\s?(\d+(?:,\d{3})*(?:\.\d+)?)")
NAME = re.compile(r"'([^']+)'")
NAMED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|((?:[A-Z][\w+-]*)(?:\s+[A-Z0-9][\w+-]*)+)")
"""What a question calls by name: in back ticks, in double quotes, or several capitalised words in a row."""

ACTION = re.compile(r"^(?:\d+\. |Reached by: )\w+\((?:[^()'\"]|'[^']*'|\"[^\"]*\")*\)(?:\s+#\s+(?:\[\w+\] )?)?")
"""The call at the head of an action's line: its arguments are bids and typed texts, no names of anything."""

GOAL = "Goal of the run:"
"""Says what somebody wanted, not what is so."""

UNKNOWN = "\\boxed{UNKNOWN}"

PAGE_WEIGHT = 0.5
"""How much of a line's score the rest of its page adds: which page a line stands on is part of most questions."""

LEAST_COVER = 0.15
"""Below this share of the question's words (by weight) on the line and its page the answer is UNKNOWN."""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    words: frozenset[str]
    page: int


class ExtractiveReader:
    """Deterministic; reads the whole context whatever its length."""

    endpoints: tuple[Endpoint, ...] = ()
    settings: dict[str, Any] = {"reader": "extractive", "version": VERSION, "images": False}  # noqa: RUF012

    def read(self, question: QuestionView, domain: str, items: Sequence[ContextItem]) -> Reading:
        shown = tuple(item for item in items if item.type == "text")
        texts = [item.value for item in shown]
        size = sum(map(len, texts))
        return Reading(
            text=answer(question.text, texts),
            shown=shown,
            tokens=size // 3,
            tokens_shown=size // 3,
            finish_reason="stop",
        )


def answer(question: str, texts: Sequence[str]) -> str:
    """A response with a box; the line that it rests on comes before it."""
    lines = _lines(texts)
    if not lines:
        return UNKNOWN
    weigh = _weights(lines)
    asked = frozenset(words(searched(question))) - STOP_WORDS
    options = OPTION.findall(question)
    if len(options) >= 2:
        return _choose(options, lines, asked, weigh)
    for pattern, yes, no in ((TRUE_FALSE, "true", "false"), (YES_NO, "yes", "no")):
        if pattern.search(question):
            return _stands(question, lines, asked, yes, no)
    ranked = _ranked(lines, asked, weigh)
    for line, cover in ranked[:40]:
        if cover < LEAST_COVER:
            break
        value = _value(question, line)
        if value:
            return f"{line.text}\n\\boxed{{{value}}}"
    return UNKNOWN


def _lines(texts: Sequence[str]) -> list[_Line]:
    """Distinct lines of the context; a new page begins at every blank line."""
    found: dict[str, _Line] = {}
    page = 0
    for text in texts:
        page += 1
        for raw in text.split("\n"):
            if not raw.strip():
                page += 1
                continue
            line = plain_line(raw)
            if line.startswith(GOAL):
                continue
            if line not in found:
                found[line] = _Line(line, frozenset(words(line)), page)
    return list(found.values())


def _weights(lines: Sequence[_Line]) -> dict[str, float]:
    """Inverse line frequency of every word."""
    counts = Counter(word for line in lines for word in line.words)
    return {word: math.log(1 + len(lines) / count) for word, count in counts.items()}


def _ranked(lines: Sequence[_Line], asked: frozenset[str], weigh: dict[str, float]) -> list[tuple[_Line, float]]:
    """Lines with the share of the question's weight that they (and, at half weight, their pages) cover, best first."""
    pages: dict[int, set[str]] = {}
    for line in lines:
        pages.setdefault(line.page, set()).update(line.words & asked)
    rarest = max(weigh.values())
    total = sum(weigh.get(word, rarest) for word in asked) or 1.0
    scored = []
    for line in lines:
        own = line.words & asked
        around = pages[line.page] - own
        gained = sum(weigh[word] for word in own) + PAGE_WEIGHT * sum(weigh[word] for word in around)
        scored.append((line, gained / total if own else 0.0))
    return sorted(scored, key=lambda pair: -pair[1])


def _value(question: str, line: _Line) -> str | None:
    """What of the line answers the question: an amount, a number, or a name that the question does not have."""
    if ASKS_NUMBER.search(question):
        asked = set(NUMBER.findall(question))
        found = MONEY.findall(line.text) if ASKS_MONEY.search(question) else NUMBER.findall(line.text)
        fresh = [value for value in found if value not in asked]
        return _plain_number(fresh[-1]) if fresh else None
    known = " ".join(words(question))
    for name in NAME.findall(ACTION.sub("", line.text)):
        if name.strip() and " ".join(words(name)) not in known:
            return name.strip()
    return None


def _plain_number(text: str) -> str:
    value = text.replace(",", "")
    return value.rstrip("0").rstrip(".") if "." in value else value


def _choose(options: Sequence[tuple[str, str]], lines: Sequence[_Line], asked: frozenset[str], weigh: dict) -> str:
    """The option of which one line covers most; none when several are equal."""
    scored = []
    for letter, text in options:
        wanted = frozenset(words(text)) - STOP_WORDS
        cover = [sum(weigh[word] for word in line.words & wanted) for line in lines]
        total = sum(weigh.get(word, max(weigh.values())) for word in wanted) or 1.0
        scored.append((max(cover) / total, letter))
    scored.sort(reverse=True)
    if scored[0][0] < LEAST_COVER or scored[0][0] == scored[1][0]:
        return UNKNOWN
    return f"\\boxed{{{scored[0][1]}}}"


def _stands(question: str, lines: Sequence[_Line], asked: frozenset[str], yes: str, no: str) -> str:
    """Whether what the question names stands on a page; UNKNOWN when it names nothing."""
    names = [next(filter(None, match)) for match in NAMED.findall(searched(question))]
    wanted = [frozenset(words(name)) - STOP_WORDS for name in names]
    wanted = [name for name in wanted if name]
    if not wanted:
        return UNKNOWN
    found = all(any(name <= line.words for line in lines) for name in wanted)
    return f"\\boxed{{{yes if found else no}}}"
