"""What LongMemEval-V2 is made of: states, trajectories, questions, checked at the door.

Schema: the published dataset (xiaowu0162/longmemeval-v2, Apache-2.0). One point is easily taken the wrong way, and the
dataset's own SCHEMA.md does: `State.action` is the action that led INTO the state (None for state 0), while
`State.thought` is what the agent said AT the state, about its next action.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from rewards.errors import UserError
from rewards.lme_v2 import grade, needs_judge, parse_spec

DOMAINS = ("web", "enterprise")
OUTCOMES = ("success", "failure")

SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of characters, which JSON can carry but no file, endpoint or tokenizer takes; replaced at the door."""

LARGEST_PICTURE = 32 << 20
"""Bytes of a picture that is sent to a model; a screenshot has one or two million."""

QUESTION_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")

QUESTION_TYPES = (
    "static-environment",
    "static-environment-abs",
    "dynamic-environment",
    "dynamic-environment-abs",
    "procedure",
    "procedure-abs",
    "errors-gotchas",
)
"""The seven published types; `-abs` marks questions with a wrong premise, whatever the id looks like."""


@dataclass(frozen=True, slots=True)
class State:
    """One observed page. `tree` is BrowserGym's flattened accessibility tree; `screenshot` is a path as published."""

    index: int
    step: int
    url: str
    action: str | None
    thought: str | None
    tree: str
    screenshot: str | None = None


@dataclass(frozen=True)
class Trajectory:
    """One run of a web agent: its goal, whether it succeeded, and the states in order."""

    id: str
    domain: str
    environment: str
    goal: str
    outcome: str
    start_url: str
    states: tuple[State, ...]

    @cached_property
    def fingerprint(self) -> str:
        """The published fingerprint: sha256 over the content that a memory may use, without screenshots."""
        states = [
            {
                "state_index": state.index,
                "step": state.step,
                "url": state.url,
                "action": state.action,
                "thoughts": state.thought,
                "text": state.tree,
            }
            for state in self.states
        ]
        content = {
            "id": self.id,
            "goal": self.goal,
            "outcome": self.outcome,
            "start_url": self.start_url,
            "actions": [state.action for state in self.states if state.action],
            "states": states,
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class QuestionView:
    """All that a memory, a policy or a reader may see of a question: its text and its picture, no path, no id."""

    text: str
    image: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Question:
    """One benchmark question with what only the harness may know: id, type, gold, grader."""

    id: str
    domain: str
    environment: str
    question_type: str
    text: str
    image: Path | None
    """The picture's file, or None. Its name holds the question's id, so it never leaves the harness."""
    gold: str
    eval_function: str

    @property
    def premise(self) -> bool:
        """Whether the question rests on something that is not so (published: `-abs` types)."""
        return self.question_type.endswith("-abs")

    @property
    def needs_judge(self) -> bool:
        return needs_judge(self.eval_function)

    def view(self) -> QuestionView:
        """What may leave the harness. Raises `UserError` when the picture cannot be read."""
        if self.image is None:
            return QuestionView(self.text)
        try:
            if self.image.stat().st_size > LARGEST_PICTURE:
                raise UserError(f"question image {self.image.name} is larger than {LARGEST_PICTURE >> 20} MiB")
            return QuestionView(self.text, self.image.read_bytes())
        except OSError as error:
            raise UserError(f"question image {self.image.name} cannot be read: {error.strerror}") from error


class EvidencePoint(NamedTuple):
    """A state that answers a question, with the line of its tree that does."""

    trajectory_id: str
    state_index: int
    line: str | None = None


def trajectory_from(row: Any, where: str) -> Trajectory:
    """One published row, in any of its spellings. `where` (file and line) heads every error message.

    `thoughts` and `text` stand for `thought` and `accessibility_tree`; a legacy shape keeps them below
    `content[].observation` and the goal in `metadata.original_goal`.
    """
    if not isinstance(row, dict):
        raise UserError(f"{where}: expected an object, got {_kind(row)}")
    raw_states = row.get("states", row.get("content"))
    if not isinstance(raw_states, list) or not raw_states:
        raise UserError(f"{where}: field 'states' is {'empty' if raw_states == [] else 'missing or no list'}")
    states = tuple(_state(raw, index, f"{where}, states[{index}]") for index, raw in enumerate(raw_states))
    return Trajectory(
        id=_text(row, "id", where),
        domain=_choice(row, "domain", DOMAINS, where),
        environment=_text(row, "environment", where, default=""),
        goal=_goal(row, where),
        outcome=_choice(row, "outcome", OUTCOMES, where),
        start_url=_text(row, "start_url", where, default=states[0].url),
        states=states,
    )


def question_from(row: Any, folder: Path, where: str) -> Question:
    """One row of questions.jsonl; `folder` is where its picture's path starts."""
    if not isinstance(row, dict):
        raise UserError(f"{where}: expected an object, got {_kind(row)}")
    image = _optional(row, "image", where)
    if image and (PurePosixPath(image).is_absolute() or ".." in PurePosixPath(image).parts or "\0" in image):
        raise UserError(f"{where}: field 'image' is {image!r}, which leaves the folder of the questions")
    name = _text(row, "id", where)
    if not QUESTION_ID.fullmatch(name):
        raise UserError(
            f"{where}: field 'id' is '{name[:80]}': files are named after it, so give letters, digits, - _ ."
        )
    question = Question(
        id=name,
        domain=_choice(row, "domain", DOMAINS, where),
        environment=_text(row, "environment", where, default=""),
        question_type=_choice(row, "question_type", QUESTION_TYPES, where),
        text=_text(row, "question", where),
        image=folder / image if image else None,
        gold=_text(row, "answer", where),
        eval_function=_text(row, "eval_function", where),
    )
    try:
        grader, _ = parse_spec(question.eval_function)
        if not question.needs_judge:
            grade(question.eval_function, "anything", question.gold)  # also refuses options that the grader has not
    except (ValueError, TypeError) as error:
        raise UserError(f"{where}: field 'eval_function': {error}") from error
    if grader == "llm_abstention_checker" and not question.premise:
        raise UserError(f"{where}: the abstention grader goes with '-abs' types only, not {question.question_type}")
    return question


def _state(raw: Any, index: int, where: str) -> State:
    if not isinstance(raw, dict):
        raise UserError(f"{where}: expected an object, got {_kind(raw)}")
    seen = raw.get("observation")
    source = raw | seen if isinstance(seen, dict) else raw
    tree = "accessibility_tree" if "accessibility_tree" in source else "text"
    thought = "thought" if "thought" in source else "thoughts"
    for name in ("step", "state_index"):
        if source.get(name) is not None and type(source[name]) is not int:
            raise UserError(f"{where}: field '{name}' should be a whole number or null, got {_kind(source[name])}")
    step = source.get("step")
    return State(
        index=index,
        step=index if step is None else step,
        url=_text(source, "url", where, default=""),
        action=_optional(source, "action", where),
        thought=_optional(source, thought, where),
        tree=_text(source, tree, where, may_be_empty=True),
        screenshot=_optional(source, "screenshot", where),
    )


def _goal(row: Mapping[str, Any], where: str) -> str:
    metadata = row.get("metadata")
    goal = row.get("goal")
    if goal is None and isinstance(metadata, dict):
        goal = metadata.get("original_goal")
    if isinstance(goal, list) and all(isinstance(part, str) for part in goal):
        goal = " ".join(goal)
    if not isinstance(goal, str):
        raise UserError(f"{where}: field 'goal' should be a string, got {_kind(goal)}")
    return SURROGATE.sub("\ufffd", goal)


def _text(row: Mapping[str, Any], name: str, where: str, default: str | None = None, may_be_empty: bool = False) -> str:
    value = row.get(name, default)
    if not isinstance(value, str):
        raise UserError(f"{where}: field '{name}' should be a string, got {_kind(value)}")
    if not value and default is None and not may_be_empty:
        raise UserError(f"{where}: field '{name}' is empty")
    return SURROGATE.sub("\ufffd", value)


def _optional(row: Mapping[str, Any], name: str, where: str) -> str | None:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise UserError(f"{where}: field '{name}' should be a string or null, got {_kind(value)}")
    return SURROGATE.sub("\ufffd", value) if value else value


def _choice(row: Mapping[str, Any], name: str, allowed: tuple[str, ...], where: str) -> str:
    value = _text(row, name, where)
    if value not in allowed:
        raise UserError(f"{where}: field '{name}' is '{value}', expected one of {', '.join(allowed)}")
    return value


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
