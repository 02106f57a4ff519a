"""The strict graders used for reward: what a careful person would accept, and nothing that only looks like it.

The published graders (`rewards.lme_v2_published`) accept any text that contains the gold, so that a policy could earn
by answering with everything, and refuse "(C)". Here the form is free and the content is not: one committed answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rewards.lme_v2_choices import match_choice, match_choice_set, match_truth
from rewards.lme_v2_phrases import match_phrases
from rewards.lme_v2_published import SEPARATORS
from rewards.lme_v2_tokens import clean
from rewards.text import drop_reasoning

_BOX = re.compile(r"(?:\\f?boxed|\x08oxed) ?\{")
_BETWEEN_BOXES = re.compile(r"[\s,;.$*&/|]*(?:and|or|then)?[\s,;.$*&/|]*", re.IGNORECASE)
_MARKER = re.compile(r"\banswers?\b(?: +(?:is|are))? *:|\banswers? +(?:is|are)\b", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_WORDS = re.compile(r"[^\W_]+")
MAX_UNKNOWN = 60
"""Characters of the longest way to write "unknown", markup included."""

MAX_BETWEEN = 20
"""Characters between two boxes of one list (", and ")."""

QUOTED = 10
"""So many characters before a box that are the question's own show that the box is quoted from the question."""


def is_unknown(answer: str) -> bool:
    """Any spelling of "unknown" alone: `UNKNOWN.`, `\\text{UNKNOWN}`, `**Unknown**`."""
    return _WORDS.findall(clean(answer[:MAX_UNKNOWN].lower())) == ["unknown"] and len(answer) <= MAX_UNKNOWN


def final_answer(response: str, question: str) -> str:
    """What the response gives as its answer; empty when it gives none.

    The last box, or several that stand side by side as a list; without a box what follows "the answer is", else all of
    it. Hidden reasoning, a repetition of the question and a box that the question itself shows do not count.
    """
    text = drop_reasoning(response)
    asked, folded = _SPACES.sub(" ", question).strip(), _SPACES.sub(" ", text)
    if len(asked) > 2 * QUOTED and asked in folded:
        text = folded.replace(asked, "\n")
    boxes = [box for box in _boxes(text) if box[2] and not _quoted(text, box, asked)]
    if boxes:
        last = len(boxes) - 1
        while last and _side_by_side(text[boxes[last - 1][1] : boxes[last][0]]):
            last -= 1
        pieces = [boxes[last][2]]
        for left, right in zip(boxes[last:], boxes[last + 1 :], strict=False):
            pieces += [text[left[1] : right[0]].strip() or ",", right[2]]
        return _after_marker(" ".join(dict.fromkeys(pieces) if len(set(pieces[::2])) == 1 else pieces).strip(" ,"))
    if _BOX.search(text):
        text = _BOX.sub(" ", text).replace("}", " ")
    return _after_marker(text.strip())


def _side_by_side(between: str) -> bool:
    return len(between) <= MAX_BETWEEN and _BETWEEN_BOXES.fullmatch(between) is not None


def _boxes(text: str) -> list[tuple[int, int, str]]:
    """(start, end, content) of every outermost box; one that never closes runs to the end."""
    boxes, at = [], 0
    while match := _BOX.search(text, at):
        depth, at = 1, len(text)
        end = at
        for brace in re.compile(r"[{}]").finditer(text, match.end()):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                end, at = brace.start(), brace.end()
                break
        boxes.append((match.start(), at, text[match.end() : end].strip()))
    return boxes


def _quoted(text: str, box: tuple[int, int, str], asked: str) -> bool:
    """Whether the box and the words before it stand in the question ("like \\boxed{A}")."""
    before = _SPACES.sub(" ", text[max(0, box[0] - 2 * QUOTED) : box[0]])[-QUOTED:]
    return len(before.strip()) >= QUOTED - 2 and before + _SPACES.sub(" ", text[box[0] : box[1]]) in asked


def _after_marker(text: str) -> str:
    """The part behind the only "the answer is"; all of it where there is none or more than one."""
    marks = list(_MARKER.finditer(text))
    return text[marks[0].end() :].strip() if len(marks) == 1 and text[marks[0].end() :].strip() else text


def match(name: str, options: Mapping[str, Any], answer: str, gold: str, question: str) -> tuple[bool, str]:
    """Grade an extracted answer with the strict counterpart of the published grader `name`."""
    if not answer:
        return False, "no answer"
    if is_unknown(answer):
        return False, "says that it does not know"
    if gold.strip().lower() in ("true", "false"):
        return match_truth(answer, gold.strip().lower() == "true", question)
    if name == "mc_choice_match":
        return match_choice(answer, gold, question)
    if name == "mc_choice_set_match":
        return match_choice_set(answer, gold, question)
    separators: Sequence[str] | None = options.get("separators", SEPARATORS)
    return match_phrases(answer, gold, separators=separators, ordered=name.endswith("_ordered"), question=question)
