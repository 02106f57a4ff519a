"""The true history of an episode: who had which value when, and what of it is told in which session.

The order of things keeps shortcuts out. First comes a skeleton: the order in which K values are told, with repeats.
Then one of the K is drawn as the answer, independently of its place. Only then is every telling given a kind (a
change, a late mention of an old value, a plan that fell through, somebody else's value ...) that makes the drawn value
the true answer. So neither the place nor the number of a value's mentions says anything about its truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from generators.config import LEVELS, TimelineConfig
from generators.draw import Draw
from generators.language import Attribute, Language
from generators.values import universe

EFFECTS = ("set", "change", "correct", "increment", "revert")
"""Kinds that make a value true. Told or untold, they are the history; everything else is only talk."""
SOLO = (*EFFECTS, "repeat", "cancel")
"""Kinds of which one session holds at most one for the same fact: two would contradict each other."""
RELATIONS = {"her": ("sister", "cousin", "aunt", "neighbor", "friend", "colleague", "flatmate"),
             "his": ("brother", "cousin", "uncle", "neighbor", "friend", "colleague", "flatmate")}


@dataclass(frozen=True, slots=True)
class Person:
    """The user (no name), or somebody the user talks about."""

    name: str = ""
    relation: str = ""
    possessive: str = "their"

    def label(self, owner: str = "my") -> str:
        return f"{owner} {self.relation} {self.name}" if self.name else "I"


USER = Person()


@dataclass(frozen=True, slots=True)
class Slot:
    """One tracked fact: a person's value of an attribute (of the thing `entity`, where the attribute has one)."""

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


class Unplaceable(Exception):
    """The told events do not fit the sessions without two changes in one; the caller draws again."""


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


def askable(bank: Language, config: TimelineConfig, asks: str) -> list[Attribute]:
    """The attributes that a question of this kind can be about."""
    out = [a for a in bank.attributes.values()
           if (not config.attributes or a.name in config.attributes)
           and (not config.value_types or a.value_type in config.value_types)]
    if asks == "count":
        return [a for a in out if a.increments]
    if asks in ("current", "previous", "change"):
        return [a for a in out if a.value_type != "boolean"]
    return out


def build(draw: Draw, config: TimelineConfig, bank: Language) -> World:
    """Draw a history. Tries again where a history would not fit its sessions."""
    while True:
        try:
            return _build(draw, config, bank)
        except Unplaceable:
            continue


def _build(draw: Draw, config: TimelineConfig, bank: Language) -> World:
    asks = draw.weighted([(k, getattr(config.asks, k))
                          for k in ("current", "previous", "count", "yesno", "change", "abstain")])
    difficulty = draw.between(config.difficulty)
    level = LEVELS[difficulty]
    attributes = askable(bank, config, asks)
    if not attributes:
        raise ValueError(f"no attribute fits a question of kind {asks!r} under attributes={config.attributes} "
                         f"and value_types={config.value_types}")
    attribute = draw.pick(attributes)
    taken: set[str] = set()
    asked_person = make_person(draw, bank, taken) if draw.percent(config.third_person) else USER
    slot = make_slot(draw, bank, attribute, asked_person)
    start = 737791 + draw.below(2000)  # ordinal of 2021-01-01
    days = [start]
    for _ in range(draw.between(config.sessions) - 1):
        days.append(days[-1] + draw.between(config.gap_days))
    world = World(slot, asks, difficulty, days, days[-1] + draw.between((1, 20)))
    updates = draw.between(config.updates or level[0])
    if asks in ("current", "yesno", "abstain") and draw.percent(config.styles.no_update):
        updates = 0
    if asks in ("previous", "change"):
        updates = max(1, updates)
    distractors = draw.between(config.distractors or level[1])
    repeats = draw.between(config.repeats or level[2]) if draw.percent(config.styles.repeat) else 0
    if asks == "count":
        told = _count_history(draw, config, bank, world, updates, distractors, taken)
    else:
        told = _history(draw, config, bank, world, updates, distractors, repeats, taken)
    if draw.percent(config.styles.forget):
        told.insert(draw.below(len(told) + 1), Event(slot, "forget", "forget", "", named=False))
    _place(draw, told, days)
    _untold_days(told, days)
    side = _side_facts(draw, config, bank, world, draw.between(config.facts or level[3]), taken)
    world.events = sorted(told + side, key=lambda e: e.day)
    return world


def _distractor_role(draw: Draw, config: TimelineConfig) -> str:
    return draw.weighted([(k, getattr(config.styles, k)) for k in ("plan", "hypothetical", "other")])


def _update_style(draw: Draw, config: TimelineConfig, correction: bool) -> str:
    kinds = ("explicit", "implicit", "paraphrased", "correction") if correction else (
        "explicit", "implicit", "paraphrased")
    return draw.weighted([(k, getattr(config.styles, k)) for k in kinds])


def _set_style(draw: Draw, config: TimelineConfig) -> str:
    """The first telling of a fact: stated, or shown in passing."""
    styles = config.styles
    return draw.weighted([("explicit", styles.explicit + styles.paraphrased), ("implicit", styles.implicit)])


class _Walk:
    """Gives each place of the skeleton a kind, keeping the state that the listener would have."""

    def __init__(self, draw: Draw, config: TimelineConfig, slot: Slot, asks: str) -> None:
        self.draw, self.config, self.slot, self.asks = draw, config, slot, asks
        self.events: list[Event] = []
        self.now: str | None = None
        self.held: set[str] = set()
        self.heard: set[str] = set()

    def add(self, kind: str, style: str, value: str, slot: Slot | None = None, named: bool = True) -> Event:
        event = Event(slot or self.slot, kind, style, value, named=named)
        self.events.append(event)
        return event

    def state(self, value: str) -> None:
        """The value is true from here on, told in whatever way fits what came before."""
        if self.now == value:
            self.add("repeat", "repeat", value)
            return
        if self.now is None:
            self.add("set", _set_style(self.draw, self.config), value)
        elif value in self.held:
            self.add("revert", "reversion", value)
        else:
            correction = self.asks not in ("previous", "change") and self.events[-1].kind in ("set", "change")
            style = _update_style(self.draw, self.config, correction)
            self.add("correct" if style == "correction" else "change", style, value)
        self.now = value
        self.held.add(value)

    def old(self, value: str, prior: bool) -> None:
        """A mention of a value that is no longer true; untold history is added where it was never told before."""
        if value in self.held:
            self.add("late", "late", value)
            return
        self.held.add(value)
        kind = "prior" if prior else "far"
        past = Event(self.slot, "set" if prior is False else "change", "untold", value)
        self._insert_past(past, prior)
        self.add(kind, "late", value)

    def _insert_past(self, past: Event, prior: bool) -> None:
        effects = [i for i, e in enumerate(self.events) if e.kind in EFFECTS and e.slot == self.slot]
        told = [i for i in effects if self.events[i].style != "untold"]
        at = told[-1] if prior else 0
        self.events.insert(at, past)


def _history(draw: Draw, config: TimelineConfig, bank: Language, world: World, updates: int, distractors: int,
             repeats: int, taken: set[str]) -> list[Event]:
    attribute = bank.attributes[world.slot.attribute]
    values = universe(bank.split, attribute.name)
    if attribute.value_type == "boolean":
        updates, distractors = min(1, updates), 0 if updates else 1
    k = min(1 + updates + distractors, len(values))
    if k < 1 + updates + distractors:
        distractors = max(0, k - 1 - updates)
        updates = k - 1 - distractors
    labels = draw.sample(values, k)
    world.labels = labels
    order = draw.shuffled(labels)
    for _ in range(repeats):
        order.insert(draw.below(len(order) + 1), draw.pick(labels))
    answer = draw.pick(labels) if config.balanced else order[-1]
    rest = draw.shuffled([v for v in labels if v != answer])
    olds, others = rest[:updates], rest[updates:]
    wants_previous = world.asks in ("previous", "change")
    if wants_previous and config.balanced:
        # The asked value is the previous one: draw that one first, from all.
        olds = [answer, *olds[1:]]
        answer = rest[0]
    prior = olds[0] if olds and (wants_previous or draw.percent(50)) else None
    if not draw.percent(config.styles.late):
        order = [v for v in order if v in olds] + [v for v in order if v not in olds]
        if not config.balanced:
            order = [v for v in order if v != answer] + [answer]
    roles = {v: _distractor_role(draw, config) for v in others}
    return _tell(draw, config, bank, world, order, answer, olds, prior, roles, taken)


def _tell(draw: Draw, config: TimelineConfig, bank: Language, world: World, order: list[str], answer: str,
          olds: list[str], prior: str | None, roles: dict[str, str], taken: set[str]) -> list[Event]:
    walk = _Walk(draw, config, world.slot, world.asks)
    wants_previous = world.asks in ("previous", "change")
    decisive = draw.pick([i for i, v in enumerate(order) if v == answer])
    before = [i for i, v in enumerate(order) if v == prior and i < decisive] if wants_previous else []
    prior_told = before[-1] if before else None
    owners: dict[str, Slot] = {}
    for i, value in enumerate(order):
        if value == answer:
            if i >= decisive or value not in walk.held or walk.now == value:
                walk.state(value)
            else:
                walk.old(value, False)
        elif value in olds:
            _tell_old(walk, i, value, answer, decisive, prior, prior_told)
        else:
            _tell_distractor(walk, bank, world, roles[value], value, i == order.index(value),
                             value not in order[i + 1:], owners, taken)
    return walk.events


def _tell_old(walk: _Walk, i: int, value: str, answer: str, decisive: int, prior: str | None,
              prior_told: int | None) -> None:
    draw, reversion = walk.draw, walk.config.styles.reversion
    wants_previous = walk.asks in ("previous", "change")
    if i > decisive:
        unseen = value not in walk.held
        if unseen and not wants_previous and draw.percent(reversion) and draw.percent(50):
            # The change is told, and later undone without naming the value that holds again.
            walk.state(value)
            walk.add("revert", "reversion", answer, named=False)
            walk.now = answer
        else:
            walk.old(value, value == prior and unseen)
        return
    too_late = prior_told is not None and value != prior and i > prior_told
    superseded = value in walk.held and walk.now != value and i != prior_told
    if too_late or (superseded and not draw.percent(reversion)):
        walk.old(value, False)
    else:
        walk.state(value)


def _tell_distractor(walk: _Walk, bank: Language, world: World, role: str, value: str, first: bool, last: bool,
                     owners: dict[str, Slot], taken: set[str]) -> None:
    if role == "hypothetical":
        walk.add("hypothetical", "hypothetical", value)
    elif role == "plan":
        kind = "plan_failed" if first and last else "cancel" if last else "plan"
        walk.add(kind, "plan", value)
    else:
        if value not in owners:
            user_free = world.slot.person != USER and all(o.person != USER for o in owners.values())
            person = USER if user_free else make_person(walk.draw, bank, taken)
            owners[value] = replace(world.slot, person=person)
        kind = "set" if first else "repeat"
        style = _update_style(walk.draw, walk.config, False) if first else "repeat"
        walk.add(kind, style, value, owners[value])


def _count_history(draw: Draw, config: TimelineConfig, bank: Language, world: World, updates: int, distractors: int,
                   taken: set[str]) -> list[Event]:
    """A stated number, then differences; the total is nowhere in the text."""
    attribute = bank.attributes[world.slot.attribute]
    form, step = attribute.spec["format"], attribute.spec["grid"][2]
    numbers = [int(v.replace(",", "")) for v in map(_digits, universe(bank.split, attribute.name))]
    total = draw.pick(numbers)
    walk = _Walk(draw, config, world.slot, "count")
    totals = [total]
    walk.state(form.replace("{n}", f"{total:,}"))
    increments: list[Event] = []
    for _ in range(max(1, updates)):
        # Even multiples of the step keep the total inside the split's own half of the grid.
        deltas = [d * step for d in (2, 4, 6, -2, -4) if total + d * step not in totals and total + d * step > 2 * step]
        if not any("dec" in attribute.phrases for _ in (0,)):
            deltas = [d for d in deltas if d > 0]
        delta = draw.pick(deltas)
        total += delta
        totals.append(total)
        event = Event(world.slot, "increment", "increment", form.replace("{n}", f"{total:,}"), delta, named=False)
        increments.append(event)
    texts = {form.replace("{n}", f"{t:,}") for t in totals}
    spare = [v for v in draw.sample(universe(bank.split, attribute.name), min(len(numbers), distractors + len(texts)))
             if v not in texts][:distractors]
    world.labels = [walk.events[0].value, *spare]
    owners: dict[str, Slot] = {}
    for value in spare:
        _tell_distractor(walk, bank, world, _distractor_role(draw, config), value, True, True, owners, taken)
    first, talk = walk.events[0], walk.events[1:]
    events: list[Event] = [first, *increments]
    for event in talk:
        events.insert(draw.below(len(events) + 1), event)
    return events


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())


def _clash(a: Event, b: Event) -> bool:
    """Whether two tellings of one fact cannot share a session."""
    if a.slot != b.slot:
        return False
    if a.kind in ("plan", "cancel", "plan_failed") and b.kind in ("plan", "cancel", "plan_failed"):
        return a.value == b.value
    return a.value == b.value or (a.kind in SOLO and b.kind in SOLO and "cancel" not in (a.kind, b.kind))


def _fits(told: list[Event], places: list[int], per_session: int) -> bool:
    for i, event in enumerate(told):
        same = [j for j in range(i) if places[j] == places[i]]
        if len(same) >= per_session or any(_clash(told[j], event) for j in same):
            return False
    return True


def _place(draw: Draw, events: list[Event], days: list[int]) -> None:
    """Give every told event a session, in order."""
    told = [e for e in events if e.style != "untold"]
    n, m = len(days), len(told)
    for attempt in range(24):
        apart = m <= n and attempt < 8
        places = sorted(draw.sample(range(n), m) if apart else [draw.below(n) for _ in range(m)])
        if _fits(told, places, 2 if attempt < 16 else 3):
            for event, place in zip(told, places, strict=True):
                event.session, event.day = place, days[place]
            return
    raise Unplaceable


def _untold_days(events: list[Event], days: list[int]) -> None:
    """Date the untold past: long ago, or just before the told change that follows it."""
    for i, event in enumerate(events):
        if event.style != "untold":
            continue
        follower = next((e for e in events[i + 1:] if e.slot == event.slot and e.kind in EFFECTS), None)
        if event.kind == "change" and follower is not None and follower.style != "untold":
            event.day = follower.day - 1
        else:
            event.day = days[0] - 2000 + i


def _side_facts(draw: Draw, config: TimelineConfig, bank: Language, world: World, count: int,
                taken: set[str]) -> list[Event]:
    """Other facts told along the way; six in ten change once."""
    events: list[Event] = []
    names = [n for n in bank.attributes if n != world.slot.attribute]
    for name in draw.sample(names, count):
        attribute = bank.attributes[name]
        person = make_person(draw, bank, taken) if draw.percent(30) else USER
        slot = make_slot(draw, bank, attribute, person)
        first, second = draw.sample(universe(bank.split, name), 2)
        changes = 1 if draw.percent(60) else 0
        places = sorted(draw.sample(range(len(world.days)), 1 + changes))
        walk = _Walk(draw, config, slot, "previous")
        walk.state(first)
        if changes and attribute.increments and draw.percent(config.styles.increment):
            delta = 2 * attribute.spec["grid"][2]
            total = int(_digits(first)) + delta
            text = attribute.spec["format"].replace("{n}", f"{total:,}")
            walk.events.append(Event(slot, "increment", "increment", text, delta, named=False))
        elif changes:
            walk.state(second)
        for event, place in zip(walk.events, places, strict=True):
            event.session, event.day = place, world.days[place]
        events += walk.events
    return events
