"""A question before it is put into words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PHRASES = "norm_phrase_set_match|lower=true|normalize_hyphen=true|strip_punct=true|separators=,;|require_non_empty=true"
ORDERED = PHRASES.replace("match|", "match_ordered|", 1)
CHOICE = "mc_choice_match|require_non_empty=true"
ABSTENTION = "llm_abstention_checker|require_non_empty=true"
GOTCHA = "llm_gotchas_checker|require_non_empty=true"

GRADERS = {"phrase": PHRASES, "number": PHRASES, "ordered": ORDERED, "choice": CHOICE, "free": GOTCHA}
"""The published grader of each form of answer."""

STATIC, DYNAMIC, PROCEDURE = "static-environment", "dynamic-environment", "procedure"
GOTCHAS = "errors-gotchas"


@dataclass(frozen=True)
class Draft:
    """What is asked, the gold, and the facts that answer it.

    `form` is phrase, number, ordered, choice (gold is the right option's text, `wrong` the others) or free. `about` is
    the thing asked for, such as a field's label: what somebody who does not know the world could go by.
    """

    template: str
    question_type: str
    form: str
    gold: str
    facts: tuple[str, ...]
    about: str
    slots: dict[str, Any]
    wrong: tuple[str, ...] = ()
    premise: dict[str, Any] | None = field(default=None)
    """The false premise: `what`, where, and `name`, as `premises.holds` reads it; and the seed where it is true."""
