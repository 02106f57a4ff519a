"""Transition events: what one action did to a page, written from the two trees or by a model.

The text without a model is a template: the action, where it was taken, and the lines that came and went.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lme_v2_env.memory.slices import annotated_actions, page_title, plain_lines
from lme_v2_env.trajectory import State, Trajectory

TEMPLATE = "template-1"
"""Names the template in the settings that key the store: raise it when the text changes."""

SHOWN_LINES = 12
"""Lines that came or went, each, that an event tells."""


@dataclass(frozen=True, slots=True)
class Event:
    """The step from state `before` to `before + 1`."""

    before: int
    action: str
    overview: str
    change: str
    fallback: bool = False
    """Whether a model was asked and the template had to write it."""

    @property
    def text(self) -> str:
        return f"{self.overview}\n\n{self.change}"


def template_events(trajectory: Trajectory) -> list[Event]:
    """One event a transition, without a model."""
    actions = annotated_actions(trajectory.states)
    pairs = pairwise(trajectory.states)
    steps = enumerate(zip(actions, pairs, strict=True))
    return [_event(trajectory, number, action, *pair) for number, (action, pair) in steps]


def _event(trajectory: Trajectory, number: int, action: str, before: State, after: State) -> Event:
    old, new = plain_lines(before), plain_lines(after)
    where = page_title(before) or before.url
    overview = f"On '{where}' the agent did: {action or 'nothing'} (step {number + 1}, goal: {trajectory.goal})"
    if before.url == after.url:
        place = "The address stayed the same."
    else:
        place = f"It led to '{page_title(after) or after.url}'."
    gone, come = set(old), set(new)
    parts = [place]
    parts += _listed("Now there:", [line for line in new if line not in gone])
    parts += _listed("No longer there:", [line for line in old if line not in come])
    if len(parts) == 1:
        parts.append("Nothing on the page changed.")
    return Event(before.index, action, overview, "\n".join(parts))


def _listed(head: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    rest = len(lines) - SHOWN_LINES
    return [head, *(f"- {line}" for line in lines[:SHOWN_LINES]), *([f"- and {rest} more lines"] if rest > 0 else [])]
