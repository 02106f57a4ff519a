"""Words for a finished history: each told event becomes a sentence of a user turn, amid talk about other things."""

from __future__ import annotations

from datetime import date
from typing import Any

from generators.config import TimelineConfig
from generators.draw import Draw
from generators.language import Language
from generators.world import USER, Event, Person, Slot, World

DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# (event kind, style) -> wrapper; kinds that are always told one way come first.
BY_KIND = {"repeat": "repeat", "plan": "plan", "cancel": "cancel", "plan_failed": "plan_failed", "late": "late",
           "hypothetical": "hypothetical", "far": "far", "prior": "prior", "increment": "increment",
           "correct": "correction", "forget": "forget"}
CLAUSES = {"{is}": "is", "{was}": "was", "{did}": "did", "{do}": "do"}


def stamp(day: int, minute: int) -> str:
    """`YYYY/MM/DD (Ddd) HH:MM`, the form of the public data."""
    d = date.fromordinal(day)
    return f"{d.year}/{d.month:02d}/{d.day:02d} ({DAY_NAMES[d.weekday()]}) {minute // 60:02d}:{minute % 60:02d}"


def sentence_case(text: str) -> str:
    return text[0].upper() + text[1:]


def fill(template: str, slot: Slot, value: str = "", name: str | None = None) -> str:
    """Put person, value and entity into a template; `name` replaces the usual "my cousin Nadia"."""
    if "{n}" in template:
        template = template.replace("{n}", name or slot.person.label())
    if "{v}" in template:
        template = template.replace("{v}", value)
    if "{p}" in template:
        template = template.replace("{p}", slot.person.possessive)
    if "{e}" in template:
        template = template.replace("{e}", slot.entity)
    return template


def phrases(bank: Language, slot: Slot, key: str, value: str, third: bool | None = None) -> tuple[str, ...]:
    """The templates of one key in the slot's voice; a boolean attribute keeps one list for each value."""
    table = bank.attributes[slot.attribute].phrases
    forms = table.get(key) or table[f"{key}:{value}"]
    return forms[slot.person != USER if third is None else third]


def topic(bank: Language, slot: Slot, form: str = "first", name: str | None = None) -> str:
    form = form if slot.person == USER else "third"
    return fill(bank.attributes[slot.attribute].topics[form], slot, name=name)


def _wrapper_key(draw: Draw, event: Event, asked: Person) -> str | None:
    """Which wrapper tells the event; None for a remark that shows the value only in passing."""
    if event.kind in BY_KIND:
        return None if event.kind == "repeat" and draw.percent(40) else BY_KIND[event.kind]
    if event.style == "implicit":
        return None
    if event.kind == "revert":
        return "reversion" if event.named else "reversion_unnamed"
    if event.kind == "set":
        stated = event.slot.person in (USER, asked) or event.style == "paraphrased"
        return "state" if stated else "gossip"
    return event.style


def tell(draw: Draw, bank: Language, event: Event, asked: Person) -> str:
    """The sentence for an event."""
    slot = event.slot
    key = _wrapper_key(draw, event, asked)
    if key is None:
        return sentence_case(fill(draw.pick(phrases(bank, slot, "hint", event.value)), slot, event.value))
    text = draw.pick(bank.wrappers[key][slot.person != USER])
    for mark, clause in CLAUSES.items():
        if mark in text:
            text = text.replace(mark, fill(draw.pick(phrases(bank, slot, clause, event.value)), slot, event.value))
    if "{inc}" in text:
        key = "inc" if event.delta > 0 else "dec"
        change = draw.pick(phrases(bank, slot, key, event.value)).replace("{d}", str(abs(event.delta)))
        text = text.replace("{inc}", fill(change, slot))
    if "{topic}" in text:
        text = text.replace("{topic}", topic(bank, slot))
    return sentence_case(fill(text, slot, event.value))


def chatter(draw: Draw, template: str) -> str:
    """Off-topic talk with values of its own."""
    if "{num}" in template:
        template = template.replace("{num}", str(draw.between((3, 9))))
    if "{money}" in template:
        template = template.replace("{money}", f"${draw.between((12, 89))}")
    return template


def user_turn(draw: Draw, theme: dict[str, Any], opening: bool, facts: list[str], extra: int) -> str:
    """A request about the theme; the facts come along before it or after it."""
    talk = [chatter(draw, draw.pick(theme["asks" if opening else "more"]))]
    talk += [chatter(draw, t) for t in draw.sample(theme["more"], min(extra, len(theme["more"]))) if t not in talk]
    at = draw.below(len(talk) + 1)
    return " ".join([*talk[:at], *facts, *talk[at:]])


def assistant_turn(draw: Draw, bank: Language, theme: dict[str, Any], told: bool, tips: int) -> str:
    parts = [draw.pick(bank.chatter["acks"]) if told else draw.pick(bank.chatter["replies"])]
    parts.append(chatter(draw, draw.pick(theme["brief"])))
    parts += [chatter(draw, t) for t in draw.sample(theme.get("tips", []), min(tips, len(theme.get("tips", []))))]
    if draw.percent(60):
        parts.append(draw.pick(bank.chatter["closers"]))
    return " ".join(parts)


def render_session(draw: Draw, config: TimelineConfig, bank: Language, asked: Person, events: list[Event],
                   day: int) -> dict[str, Any]:
    """One session; sets turn and text of its events."""
    pairs = max(1, draw.between(config.turns) // 2)
    places = sorted(draw.below(pairs) for _ in events)
    for event, place in zip(events, places, strict=True):
        event.turn = 2 * place
        event.text = tell(draw, bank, event, asked)
    theme = draw.pick(bank.chatter["topics"])
    turns: list[dict[str, str]] = []
    for i in range(pairs):
        facts = [e.text for e in events if e.turn == 2 * i]
        turns.append({"role": "user", "content": user_turn(draw, theme, i == 0, facts, draw.between(config.chat) - 1)})
        tips = draw.between(config.tips)
        turns.append({"role": "assistant", "content": assistant_turn(draw, bank, theme, bool(facts), tips)})
    return {"date": stamp(day, 360 + draw.below(1000)), "turns": turns}


def render(draw: Draw, config: TimelineConfig, bank: Language, world: World) -> list[dict[str, Any]]:
    """All sessions of the world."""
    by_session: list[list[Event]] = [[] for _ in world.days]
    for event in world.events:
        if event.session is not None:
            by_session[event.session].append(event)
    person = world.slot.person
    return [render_session(draw, config, bank, person, events, day)
            for events, day in zip(by_session, world.days, strict=True)]
