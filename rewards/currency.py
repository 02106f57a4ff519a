"""The currency grader: does an answer stand behind the current value of a fact, a superseded one, several, or none?

``grade`` is the single entry of the reward, the evaluation and the reports. It reads the values first (quantities, then
names), finds where the answer mentions them, and then decides which mention the answer commits to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rewards.mentions import GOLD, find, find_all, read_answer
from rewards.text import tokenise
from rewards.values import read_question, read_value

GRADER_VERSION = "0.1"
"""Changes whenever any verdict may change; result rows record it."""

Verdict = Literal["correct", "stale", "hedged", "wrong", "refused"]


@dataclass(frozen=True)
class Grade:
    """A verdict, its two reward terms and why. The reward is r_cur + stale_weight * r_stale."""

    verdict: Verdict
    r_cur: int
    """1 for correct, else 0."""
    r_stale: int
    """-1 for stale, and for hedged that names a superseded value; else 0."""
    explanation: str
    """The mention that decided, in the answer's own words."""


def mentions_value(text: str, value: str | int | float) -> bool:
    """Whether the text contains the value at all: "four" is 4, and 10 is not in "100". Says nothing of commitment."""
    asked = read_question("")
    reading = read_answer(tokenise(text), numeric=True)
    return bool(find(reading, read_value(str(value), ""), asked))


def grade(
    answer: str,
    gold: str | int | float,
    stale: Sequence[str] = (),
    *,
    question: str = "",
    abstain: bool = False,
) -> Grade:
    """Grade one answer. ``stale`` holds every other value the asked attribute ever had; ``abstain`` marks a question
    whose right answer is that it was never mentioned."""
    asked = read_question(question)
    text = tokenise(answer)
    reading = read_answer(text, numeric=True)
    mentions = find_all(reading, read_value(str(gold), question), tuple(read_value(s, question) for s in stale), asked)
    golds = [m for m in mentions if m.who == GOLD]
    stales = [m for m in mentions if m.who == "stale"]
    if not text.lower:
        return Grade("refused", 0, 0, "empty answer")
    if golds and not stales:
        return Grade("correct", 1, 0, f"says {text.quote(golds[0].first, golds[0].last)!r}")
    if golds:
        return Grade("hedged", 0, -1, "names gold and a superseded value")
    if stales:
        return Grade("stale", 0, -1, f"says {text.quote(stales[0].first, stales[0].last)!r}")
    return Grade("wrong", 0, 0, "does not mention the value")
