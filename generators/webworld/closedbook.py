"""How far one gets without looking: the best guesses of somebody who knows every other world but not this one.

For each question the golds of all other worlds are known, with their templates. A guess counts when it is the gold,
word for word; several wrong options or a longer text are not tried, since strict graders refuse them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from generators.webworld.questions import normalised

CEILING = 0.15
"""Guessing may not be right more often than that, over all questions that need no judge."""


@dataclass(frozen=True)
class Known:
    """A question as the guesser meets it, with the gold to compare."""

    world: int
    template: str
    about: str
    text: str
    gold: str
    """Of a multiple-choice question: the letter."""
    gold_text: str
    options: tuple[str, ...]


def known(rows: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> list[Known]:
    """Questions with their evidence rows, those that need a judge left out."""
    found = []
    for row, hidden in rows:
        if row["eval_function"].startswith("llm_"):
            continue
        options = ()
        if row["eval_function"].startswith("mc_"):
            options = tuple(line[3:] for line in row["question"].split("\n") if line[1:3] == ". ")
        found.append(
            Known(
                hidden["world"],
                hidden["template"],
                hidden["about"],
                row["question"],
                row["answer"],
                hidden["gold_text"],
                options,
            )
        )
    return found


Guess = Callable[[Known], str]


def strategies(questions: Sequence[Known]) -> dict[str, Guess]:
    """Every way of guessing; each leaves the asked world out of what it knows."""
    by_template = _Golds(questions, lambda question: question.template)
    by_about = _Golds(questions, lambda question: f"{question.template} {question.about}")
    letters = _Golds([q for q in questions if q.options], lambda question: "letter", letters=True)
    near = _Nearest(questions)

    def options_or(text: str, question: Known) -> str:
        """A multiple-choice question needs a letter: that of the option, or the most common one."""
        if not question.options:
            return text
        if text in question.options:
            return "ABCDEFGH"[question.options.index(text)]
        return letters.best(question)

    def option_known_best(question: Known) -> str:
        """The option that was right most often elsewhere."""
        if not question.options:
            return by_template.best(question)
        counts = by_template.counts(question)
        return options_or(max(question.options, key=lambda option: counts[option]), question)

    def longest(question: Known) -> str:
        return options_or(max(question.options, key=len), question) if question.options else ""

    def typical(question: Known, sign: int) -> str:
        """The option whose words the other options share most, or least."""
        if not question.options:
            return ""
        counts = Counter(word for option in question.options for word in set(normalised(option).split()))
        shared = {o: sum(counts[word] for word in set(normalised(o).split())) for o in question.options}
        return options_or(max(question.options, key=lambda option: sign * shared[option]), question)

    return {
        "majority of the template": lambda q: options_or(by_template.best(q), q),
        "majority for the same thing": lambda q: options_or(by_about.best(q) or by_template.best(q), q),
        "most common letter": letters.best,
        "option most often right": option_known_best,
        "longest option": longest,
        "option most like the others": lambda q: typical(q, 1),
        "option least like the others": lambda q: typical(q, -1),
        "answer of the nearest question": lambda q: options_or(near.gold(q), q),
    }


class _Golds:
    """Counts of golds in groups, the asked world's own taken off."""

    def __init__(self, questions: Sequence[Known], key: Callable[[Known], str], letters: bool = False) -> None:
        self.key, self.letters = key, letters
        self.all: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.own: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
        for question in questions:
            gold = question.gold if letters else question.gold_text
            self.all[key(question)][gold] += 1
            self.own[key(question), question.world][gold] += 1

    def counts(self, question: Known) -> Counter[str]:
        return self.all[self.key(question)] - self.own[self.key(question), question.world]

    def best(self, question: Known) -> str:
        """The most common gold elsewhere; of equal ones the first in the alphabet."""
        counts = self.counts(question)
        return min(counts, key=lambda gold: (-counts[gold], gold)) if counts else ""


class _Nearest:
    """The question of another world with the same template that shares most words."""

    def __init__(self, questions: Sequence[Known]) -> None:
        self.groups: defaultdict[str, list[tuple[frozenset[str], Known]]] = defaultdict(list)
        for question in questions:
            self.groups[question.template].append((_words(question), question))

    def gold(self, question: Known) -> str:
        mine = _words(question)
        best, found = -1.0, ""
        for words, other in self.groups[question.template]:
            if other.world == question.world:
                continue
            alike = len(mine & words) / len(mine | words)
            if alike > best:
                best, found = alike, other.gold_text
        return found


def _words(question: Known) -> frozenset[str]:
    return frozenset(normalised(question.text.split("\n\n")[0]).split())


@dataclass(frozen=True)
class Report:
    """Share of right guesses: of each strategy over all, and of each template the best strategy's."""

    questions: int
    strategies: dict[str, float]
    templates: dict[str, tuple[int, float, str]]
    """(questions, share, strategy)."""

    @property
    def worst(self) -> float:
        """What somebody gets who picks the best way of guessing for each template, knowing afterwards which that is."""
        return sum(count * share for count, share, _ in self.templates.values()) / self.questions


def check(rows: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> Report:
    """Guess every question of these rows in every way."""
    questions = known(rows)
    right: dict[str, Counter[str]] = {}
    for name, guess in strategies(questions).items():
        right[name] = Counter(q.template for q in questions if guess(q) == (q.gold if q.options else q.gold_text))
    counts = Counter(q.template for q in questions)
    templates = {}
    for template in sorted(counts):
        best = max(right, key=lambda name: right[name][template])
        templates[template] = (counts[template], right[best][template] / counts[template], best)
    overall = {name: sum(hits.values()) / len(questions) for name, hits in right.items()}
    return Report(len(questions), overall, templates)


def premise_from_words(rows: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> tuple[float, float]:
    """How often the words of a question and its template tell whether its premise is false, and how often "no" does.

    Naive Bayes over the presence of words, trained on one half of the worlds and tried on the other.
    """
    halves: tuple[list[tuple[frozenset[str], bool]], list[tuple[frozenset[str], bool]]] = ([], [])
    order: dict[int, int] = {}
    for row, hidden in rows:
        words = frozenset((*normalised(row["question"]).split(), f"#{hidden['template']}"))
        half = order.setdefault(hidden["world"], len(order)) % 2
        halves[half].append((words, "premise" in hidden))
    seen = {
        kind: Counter(word for words, false in halves[0] if false == kind for word in words) for kind in (True, False)
    }
    count = Counter(false for _, false in halves[0])

    def weight(kind: bool, words: frozenset[str]) -> float:
        return math.log(count[kind]) + sum(
            math.log((seen[kind][word] + 0.5) / (count[kind] + 1)) for word in sorted(words)
        )

    right = sum((weight(True, words) > weight(False, words)) == false for words, false in halves[1])
    return right / len(halves[1]), sum(not false for _, false in halves[1]) / len(halves[1])
