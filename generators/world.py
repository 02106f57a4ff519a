"""The world of an episode: which fact is asked, its history, side facts, and what is told in which session."""

from __future__ import annotations

from generators.config import LEVELS, TimelineConfig
from generators.draw import Draw
from generators.facts import EFFECTS, USER, Event, World, make_person, make_slot
from generators.history import Walk, count_history, digits, fact_history
from generators.language import Attribute, Language
from generators.values import universe

SOLO = (*EFFECTS, "repeat", "cancel")
"""Kinds of which one session holds at most one for the same fact: two would contradict each other."""
BOOLEAN_SHARE = 30
"""Percent of yes/no questions that are about an attribute that is itself a yes or no (where such may be asked)."""
MOST_TRIES = 200
"""Draws of a history before its settings are refused as impossible."""


class Unplaceable(Exception):
    """The told events do not fit the sessions without two changes in one; the caller draws again."""


def askable(bank: Language, config: TimelineConfig, asks: str) -> list[Attribute]:
    """The attributes that a question of this kind can be about."""
    out = [
        a
        for a in bank.attributes.values()
        if (not config.attributes or a.name in config.attributes)
        and (not config.value_types or a.value_type in config.value_types)
    ]
    if asks == "count":
        return [a for a in out if a.increments]
    if asks in ("current", "previous", "change"):
        return [a for a in out if a.value_type != "boolean"]
    return out


def build(draw: Draw, config: TimelineConfig, bank: Language) -> World:
    """Draw a history. Tries again where a history would not fit its sessions."""
    asks = draw.weighted(
        [(k, getattr(config.asks, k)) for k in ("current", "previous", "count", "yesno", "change", "abstain")]
    )
    difficulty = draw.between(config.difficulty)
    for _ in range(MOST_TRIES):
        try:
            return _build(draw, config, bank, asks, difficulty)
        except Unplaceable:
            continue
    raise ValueError(
        f"no history fits into {config.sessions} sessions after {MOST_TRIES} tries: "
        "raise sessions, or lower updates, distractors or repeats"
    )


def _build(draw: Draw, config: TimelineConfig, bank: Language, asks: str, difficulty: int) -> World:
    level = LEVELS[difficulty]
    attributes = askable(bank, config, asks)
    if not attributes:
        raise ValueError(
            f"no attribute fits a question of kind {asks!r} under attributes={config.attributes} "
            f"and value_types={config.value_types}"
        )
    booleans = [a for a in attributes if a.value_type == "boolean"]
    attribute = draw.pick(booleans if booleans and draw.percent(BOOLEAN_SHARE) else attributes)
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
        told = count_history(draw, config, bank, world, updates, distractors, taken)
    else:
        told = fact_history(draw, config, bank, world, updates, distractors, repeats, taken)
    if draw.percent(config.styles.forget):
        told.insert(draw.below(len(told) + 1), Event(slot, "forget", "forget", "", named=False))
    _place(draw, told, days)
    last = max((e.session for e in told if e.slot == slot and e.kind in EFFECTS and e.session is not None), default=0)
    if len(days) - 1 - last < config.settled:
        raise Unplaceable
    _untold_days(told, days)
    side = _side_facts(draw, config, bank, world, draw.between(config.facts or level[3]), taken)
    world.events = sorted(told + side, key=lambda e: e.day)
    return world


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
        follower = next((e for e in events[i + 1 :] if e.slot == event.slot and e.kind in EFFECTS), None)
        if event.kind == "change" and follower is not None and follower.style != "untold":
            event.day = follower.day - 1
        else:
            event.day = days[0] - 2000 + i


def _side_facts(
    draw: Draw, config: TimelineConfig, bank: Language, world: World, count: int, taken: set[str]
) -> list[Event]:
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
        walk = Walk(draw, config, slot, "previous")
        walk.state(first)
        if changes and attribute.increments and draw.percent(config.styles.increment):
            delta = draw.between((2, 4)) * attribute.spec["grid"][2]
            total = int(digits(first)) + delta
            text = attribute.spec["format"].replace("{n}", f"{total:,}")
            walk.events.append(Event(slot, "increment", "increment", text, delta, named=False))
        elif changes:
            walk.state(second)
        for event, place in zip(walk.events, places, strict=True):
            event.session, event.day = place, world.days[place]
        events += walk.events
    return events
