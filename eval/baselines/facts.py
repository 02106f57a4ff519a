"""A store of short facts for Supersede, in the manner of Mem0: the model adds, updates and deletes, nothing is learned.

Each session the model sees the facts, numbered, and the session, and answers with operations. The facts, rendered, take
the place of the notes: they hold at most `budget` characters, and the answer turn is the notes protocol's own. What the
model is not asked to do is rewrite everything: a fact that it does not touch stays as it is.

When the facts outgrow the budget, those that were written longest ago are forgotten. A line that is no operation costs
nothing and is counted.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from lme_v2_env.trajectory import SURROGATE
from rewards.text import drop_reasoning
from supersede_env.episode import EpisodeView
from supersede_env.protocol import Message, NotesRollout, ProtocolConfig, Step, fill, render_turns, wordings
from supersede_env.scoring import LONGEST_TAIL, Outcome

VERSION = 2
"""Part of the prompt hash: raise it when replies are read, or facts forgotten, in another way."""

OPERATIONS = {
    "add": "add",
    "insert": "add",
    "update": "update",
    "change": "update",
    "replace": "update",
    "delete": "delete",
    "remove": "delete",
    "keep": "keep",
    "none": "keep",
    "noop": "keep",
}
"""How models call the operations -> ours."""

LINE = re.compile(rf"[\s>*•-]*(?:\d+[.)]\s+)?[*_`]*({'|'.join(OPERATIONS)})\b(.*)", re.IGNORECASE | re.DOTALL)
"""A line that begins with an operation, with or without a list mark; then the rest of it."""

MARKS = r"[\s:*_`]*(?:[-=→]+>?\s+)?"
"""What stands before a fact."""

NUMBER = re.compile(
    rf"[\s:*_`]*+\(?(?:fact\b)?\s*[#\[(]?(\d{{1,6}})\b[\])]*(?:\s+to\b\s*|\.\s+|{MARKS})", re.IGNORECASE
)
"""The number of a fact as models write it: `2:`, `[2]`, `#2 ->`, `fact 2 to`."""

FENCE = re.compile(r"^\s*```\w*\s*$")


@dataclass(frozen=True, slots=True)
class Operation:
    """`number` is that of the fact in the prompt; None, like an empty text, where the reply has none."""

    kind: str
    number: int | None
    text: str


def parse_operations(reply: str) -> list[Operation | None]:
    """One entry a line or JSON object of the reply, in order; None for what is no operation."""
    listed = _listed(reply)
    if listed is not None:
        return [_from_object(entry) for entry in listed]
    return [_from_line(line) for line in reply.splitlines() if line.strip() and not FENCE.match(line)]


def _from_line(line: str) -> Operation | None:
    match = LINE.match(line)
    if not match:
        listed = _listed(line)
        return _from_object(listed[0]) if listed and len(listed) == 1 else None
    kind, rest = OPERATIONS[match.group(1).lower()], match.group(2)
    number = NUMBER.match(rest) if kind in ("update", "delete") else None
    if number:
        return Operation(kind, int(number.group(1)), _plain(rest[number.end() :]))
    return Operation(kind, None, _plain(re.sub(rf"\A{MARKS}", "", rest)))


def _listed(reply: str) -> list[Any] | None:
    """The operations of a JSON reply: a list, an object that holds one, or one object; None for any other reply."""
    start = min((place for place in (reply.find("["), reply.find("{")) if place >= 0), default=-1)
    end = max(reply.rfind("]"), reply.rfind("}")) + 1
    if start < 0 or LINE.match(reply):
        return None
    try:
        found = json.loads(reply[start:end])
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict):
        lists = [value for value in found.values() if isinstance(value, list) and _objects(value)]
        found = max(lists, key=len) if lists else [found]
    return found if isinstance(found, list) and _objects(found) else None


def _objects(found: list[Any]) -> bool:
    return all(isinstance(entry, dict) for entry in found)


def _from_object(entry: dict[str, Any]) -> Operation | None:
    kind = next((entry[name] for name in ("op", "operation", "action", "event") if name in entry), None)
    if not isinstance(kind, str) or kind.strip().lower() not in OPERATIONS:
        return None
    number = next((entry[name] for name in ("number", "id", "fact_id") if name in entry), None)
    if isinstance(number, str) and number.isascii() and number.isdigit():
        number = int(number)
    text = next((entry[name] for name in ("text", "fact", "content", "memory") if isinstance(entry.get(name), str)), "")
    whole = number if isinstance(number, int) and not isinstance(number, bool) else None
    return Operation(OPERATIONS[kind.strip().lower()], whole, _plain(text))


def _plain(text: str) -> str:
    """One line, without the marks that models put around a text, or halves of characters."""
    line = " ".join(SURROGATE.sub("\ufffd", text).split()).strip("*_`").strip()
    return line[1:-1].strip() if len(line) > 1 and line[0] == line[-1] and line[0] in "\"'" else line


@dataclass
class _Fact:
    text: str
    written: int
    """When: the number of the write."""


def _rendered(facts: Sequence[_Fact]) -> str:
    return "\n".join(f"{number}. {fact.text}" for number, fact in enumerate(facts, 1))


class FactStore:
    """Facts in the order in which they were added; `render` is at most `budget` characters long."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.facts: list[_Fact] = []
        self.counts: Counter[str] = Counter()
        """Operations carried out by kind, lines that were none (`malformed`) and facts lost to the budget."""
        self._writes = 0

    def render(self) -> str:
        return _rendered(self.facts)

    def apply(self, operations: list[Operation | None]) -> str:
        """Carry out what can be; numbers are those of the facts before the first. Returns what the
        budget cost: the texts that were forgotten or cut off."""
        shown = dict(enumerate(self.facts, 1))
        for operation in operations:
            self.counts[self._carried_out(operation, shown)] += 1
        return self._forget()

    def _carried_out(self, operation: Operation | None, shown: dict[int, _Fact]) -> str:
        if operation is None:
            return "malformed"
        if operation.kind == "keep":
            return "keep"
        if operation.kind == "add":
            if not operation.text:
                return "malformed"
            known = next((fact for fact in self.facts if fact.text == operation.text), None)
            if known is None:
                known = _Fact(operation.text, 0)
                self.facts.append(known)
            self._write(known)
            return "add"
        fact = shown.get(operation.number or 0)
        if fact is None:
            return "malformed"
        if operation.kind == "update":
            if not operation.text:
                return "malformed"
            fact.text = operation.text
            self._write(fact)
            return "update"
        self.facts.remove(shown.pop(operation.number or 0))
        return "delete"

    def _write(self, fact: _Fact) -> None:
        self._writes += 1
        fact.written = self._writes

    def _forget(self) -> str:
        """Drop the facts written longest ago until the rest fits; the last one left is cut."""
        writes = sorted(fact.written for fact in self.facts)

        def since(write: int) -> list[_Fact]:
            return [fact for fact in self.facts if fact.written >= write]

        dropped = bisect_left(writes[:-1], True, key=lambda write: len(_rendered(since(write))) <= self.budget)
        kept = since(writes[dropped]) if writes else []
        lost = [fact.text for fact in self.facts if fact not in kept]
        self.counts["forgotten"] += dropped
        self.facts = kept
        over = len(self.render()) - self.budget
        if over > 0:
            (fact,) = kept
            room = max(0, len(fact.text) - over)
            lost.append(fact.text[room:])
            fact.text = fact.text[:room].rstrip()
            self.facts = kept if fact.text else []
        return "\n".join(lost)


class FactsRollout(NotesRollout):
    """One episode played with a fact store: `prompt()` and `step()` as the notes protocol has them."""

    def __init__(self, view: EpisodeView, config: ProtocolConfig) -> None:
        super().__init__(view, config)
        self.store = FactStore(config.budget)
        self.lost: list[str] = []
        """What the budget cost, for every session."""

    def prompt(self) -> list[Message]:
        turn = len(self.history)
        if self.done or turn >= len(self._parts):
            return super().prompt()
        words, part = fact_wordings()[self.config.wording], self._parts[turn]
        slots = {
            "session": render_turns(part),
            "date": part.date,
            "notes": self.notes or self._wording.empty_notes,
            "budget": str(self.config.budget),
        }
        keep_date = self.config.show_dates and bool(part.date)
        return [
            {"role": "system", "content": fill(words["system"], slots, keep_date)},
            {"role": "user", "content": fill(words["session"], slots, keep_date)},
        ]

    def step(self, reply: str) -> None:
        if self.done or len(self.history) >= len(self._parts):
            super().step(reply)
            return
        lost = self.store.apply(parse_operations(drop_reasoning(reply)))
        self.notes = self.store.render()
        self.lost.append(lost)
        self.history.append(Step("notes", reply, self.notes, len(lost)))


@cache
def fact_wordings() -> dict[str, dict[str, str]]:
    """The prompts of a session, by wording; those of the answer are the notes protocol's."""
    return json.loads(files("eval.baselines").joinpath("facts_wordings.json").read_text(encoding="utf-8"))


def outcome(rollout: NotesRollout) -> Outcome:
    """The outcome of a finished rollout; of facts, what was cut off are the facts that were forgotten."""
    found = Outcome.of(rollout)
    if not isinstance(rollout, FactsRollout):
        return found
    return replace(found, cut_off=tuple(f"\n{text}"[:LONGEST_TAIL] if text else "" for text in rollout.lost))


COUNTED = ("add", "update", "delete", "keep", "malformed", "forgotten")


def report(rollout: NotesRollout) -> dict[str, Any]:
    """Fields of the row: operations carried out, lines that were none, facts lost to the budget."""
    return (
        {"facts": {name: rollout.store.counts[name] for name in COUNTED}} if isinstance(rollout, FactsRollout) else {}
    )


def operations(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line over a run's scored rows: what the model did a rollout."""
    found = [row["facts"] for row in rows if row["scored"]]
    means = (f"{sum(counts[name] for counts in found) / len(found):.2f} {name}" for name in COUNTED if found)
    return f"operations a rollout: {', '.join(means) or 'none'}"


def facts_hash(config: ProtocolConfig) -> str:
    """Identifies everything that shapes a prompt of this baseline."""
    key = [asdict(config), wordings()[config.wording].hash, fact_wordings()[config.wording], VERSION]
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]
