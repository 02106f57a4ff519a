"""The agent's output file: what is accepted, and which of its spans exist."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FILE = "memory_module_output.json"
MOST_STATES = 20
MOST_BYTES = 1 << 20


class BadOutput(ValueError):
    """The file does not keep the agreement; the message says where."""


@dataclass(frozen=True, slots=True)
class Span:
    """States `start` to `end` of a trajectory, both included."""

    trajectory_id: str
    start: int
    end: int

    @property
    def states(self) -> int:
        """Any number: not what len() could return."""
        return self.end - self.start + 1


@dataclass(frozen=True, slots=True)
class Output:
    markdown: str
    spans: tuple[Span, ...]


def parse(data: bytes, *, parity: bool = False) -> Output:
    """The file's content, checked. Raises `BadOutput`."""
    try:
        payload = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # a ValueError also for a number of 5,000 digits
        raise BadOutput(f"not JSON ({error})") from error
    return validate(payload, parity=parity)


def validate(payload: Any, *, parity: bool = False) -> Output:
    """A decoded file, checked. Unknown fields are passed over. Raises `BadOutput`.

    Spans of one trajectory that share states are joined, so that a state counts once to the budget and is shown once;
    with `parity` they stay as given and count twice, as in the published code.
    """
    if not isinstance(payload, dict):
        raise BadOutput("memory output must be a JSON object")
    markdown = payload.get("memory_markdown")
    if not isinstance(markdown, str):
        raise BadOutput("memory_markdown must be a string")
    raw = payload.get("trajectory_spans")
    if not isinstance(raw, list):
        raise BadOutput("trajectory_spans must be a list")
    spans = tuple(_span(item, f"trajectory_spans[{number}]") for number, item in enumerate(raw))
    if not parity:
        spans = joined(spans)
    total = min(sum(span.states for span in spans), sys.maxsize)  # a number of 4,301 digits cannot be printed
    if total > MOST_STATES:
        raise BadOutput(f"trajectory_spans exceed the total state budget: {total} > {MOST_STATES}")
    return Output(_plain(markdown), spans)


def _plain(text: str) -> str:
    """Without halves of characters, which JSON can hold and no file."""
    return text.encode("utf-8", "replace").decode()


def _span(item: Any, where: str) -> Span:
    if not isinstance(item, dict):
        raise BadOutput(f"{where} must be a JSON object")
    name, start, end = (item.get(key) for key in ("trajectory_id", "start_state_index", "end_state_index"))
    if not isinstance(name, str) or not name.strip():
        raise BadOutput(f"{where}.trajectory_id must be a non-empty string")
    if not isinstance(start, int) or isinstance(start, bool) or start < 0:
        raise BadOutput(f"{where}.start_state_index must be an integer >= 0")
    if not isinstance(end, int) or isinstance(end, bool) or end < start:
        raise BadOutput(f"{where}.end_state_index must be an integer >= start_state_index")
    return Span(_plain(name.strip()), start, end)


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans that share states as one, at the place of the first."""
    whole: list[tuple[int, Span]] = []
    for place, span in sorted(enumerate(spans), key=lambda pair: (pair[1].trajectory_id, pair[1].start)):
        first, last = whole[-1] if whole else (place, None)
        if last and last.trajectory_id == span.trajectory_id and span.start <= last.end:
            whole[-1] = min(first, place), Span(span.trajectory_id, last.start, max(last.end, span.end))
        else:
            whole.append((place, span))
    return tuple(span for _, span in sorted(whole, key=lambda pair: pair[0]))


def existing(spans: Iterable[Span], states: Mapping[str, int]) -> tuple[list[Span], list[tuple[Span, str]]]:
    """(spans that exist, others with the reason); `states` counts those of each trajectory. Nothing is clipped."""
    kept, dropped = [], []
    for span in spans:
        count = states.get(span.trajectory_id)
        if count is None:
            dropped.append((span, "no such trajectory"))
        elif span.end >= count:
            dropped.append((span, f"the trajectory ends at state {count - 1}"))
        else:
            kept.append(span)
    return kept, dropped
