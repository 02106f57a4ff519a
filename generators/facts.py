"""What histories are made of: people, tracked facts, dated events, and the world that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field

from generators.draw import Draw
from generators.language import Attribute, Language

EFFECTS = ("set", "change", "correct", "increment", "revert")
"""Kinds that make a value true. Told or untold, they are the history; everything else is only talk."""
RELATIONS = {
    "her": ("sister", "cousin", "aunt", "neighbor", "friend", "colleague", "flatmate"),
    "his": ("brother", "cousin", "uncle", "neighbor", "friend", "colleague", "flatmate"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """The user (no name), or somebody the user talks about."""

    name: str = ""
    relation: str = ""
    possessive: str = "their"

    def label(self, owner: str = "my") -> str:
        return f"{owner} {self.relation} {self.name}" if self.name else "I"


USER = Person()


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One tracked fact, compared by identity: a person's value of an attribute (of `entity`, if it has one)."""

    person: Person
    attribute: str
    entity: str = ""


@dataclass(slots=True)
class Event:
    """Something that happened or was said. `session` is None while (or because) it is not told."""

    slot: Slot
    kind: str
    style: str
    value: str
    delta: int = 0
    named: bool = True
    """Whether the telling contains the value."""
    day: int = 0
    session: int | None = None
    turn: int = -1
    text: str = ""


@dataclass(slots=True)
class World:
    """A finished history. `events` is in true order; told events also carry their session."""

    slot: Slot
    asks: str
    difficulty: int
    days: list[int]
    """Day number (proleptic ordinal) of each session."""
    question_day: int
    events: list[Event] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    """The candidate values of the asked attribute."""

    def told(self) -> list[Event]:
        return [e for e in self.events if e.session is not None]


def held(events: list[Event], slot: Slot) -> list[str]:
    """The values that the slot went through, oldest first, with returns (A, B, A stays A, B, A)."""
    values: list[str] = []
    for event in events:
        if event.kind in EFFECTS and event.slot == slot and (not values or values[-1] != event.value):
            values.append(event.value)
    return values


def previous_of(values: list[str]) -> str | None:
    return next((v for v in reversed(values[:-1]) if v != values[-1]), None)


def make_person(draw: Draw, bank: Language, taken: set[str]) -> Person:
    while True:
        possessive, pool = draw.pick((("her", "women"), ("his", "men")))
        name = draw.pick(bank.pools[pool])
        if name not in taken:
            taken.add(name)
            return Person(name, draw.pick(RELATIONS[possessive]), possessive)


def make_slot(draw: Draw, bank: Language, attribute: Attribute, person: Person) -> Slot:
    pool = attribute.spec.get("entity")
    return Slot(person, attribute.name, draw.pick(bank.pools[pool]) if pool else "")
