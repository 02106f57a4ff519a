"""Grading LongMemEval-V2 answers: as published, and strictly for rewards.

`grade` takes the answer out of a response and compares it with the gold under the question's own grader spec. With
`strict=False` the result equals the published code's on every input; with `strict=True` it is what a careful person
would say (`rewards.lme_v2_strict`). A row keeps both. Flawed-premise and gotcha questions need a language model:
`needs_judge` tells, `judge` asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewards import lme_v2_published as published
from rewards import lme_v2_strict as careful
from rewards.lme_v2_judge import JudgedGrade, judge
from rewards.lme_v2_published import JUDGED, extract_boxed, parse_spec

__all__ = [
    "GRADER_VERSION",
    "Grade",
    "JudgedGrade",
    "extract_boxed",
    "grade",
    "judge",
    "needs_judge",
    "parse_spec",
]

GRADER_VERSION = "lme-v2-3"
"""Changes whenever any answer may be graded differently; results of different versions are not comparable."""


@dataclass(frozen=True, slots=True)
class Grade:
    """A verdict on one response. `answer` is the text that was graded, `unknown` whether it says "unknown"."""

    correct: bool
    explanation: str
    answer: str
    unknown: bool
    grader: str
    strict: bool


def needs_judge(eval_function: str) -> bool:
    """Whether the spec names a grader that asks a language model. Raises `ValueError` for a spec that is none."""
    return parse_spec(eval_function)[0] in JUDGED


def grade(eval_function: str, response: str, gold: str, *, question: str = "", strict: bool = False) -> Grade:
    """Grade a reader's whole response. Raises `ValueError` for a bad spec or one that needs a judge.

    `question` (its full text) is used by the strict graders only: for the texts of lettered options and to tell a
    restated question from a second answer.
    """
    name, options = parse_spec(eval_function)
    if name in JUDGED:
        raise ValueError(f"{name} needs a judge: use rewards.lme_v2.judge")
    if strict:
        answer = careful.final_answer(response, question)
        correct, why = careful.match(name, options, answer, gold, question)
        return Grade(correct, why, answer, careful.is_unknown(answer), name, True)
    answer = published.extract_boxed(response)
    if published.is_unknown(answer):
        return Grade(False, "says that it does not know", answer, True, name, False)
    correct = published.MATCHERS[name](answer, gold, options)
    return Grade(correct, "matches the gold" if correct else "does not match the gold", answer, False, name, False)
