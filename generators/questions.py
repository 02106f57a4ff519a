"""The question and everything that follows from the history alone: gold, stale values, evidence, oracle notes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from generators.config import TimelineConfig
from generators.draw import Draw
from generators.facts import EFFECTS, USER, Event, Slot, World, held, make_person, make_slot, previous_of
from generators.language import Language
from generators.render import fill, phrases, sentence_case, topic
from generators.values import universe

NOTHING_YET = "Nothing to note yet."
"""The oracle's notes before any tracked fact came up: an empty reply would teach a model to say nothing."""
ORDERED = ("count", "quantity", "money", "duration")
"""Value types of which one can be larger than another, so that "up or down?" makes sense."""


@dataclass(frozen=True)
class Question:
    text: str
    gold: str
    stale: list[str]
    answer: str
    """A short natural answer, the oracle's."""
    evidence: list[list[int]]
    """[session, turn] of the tellings that the gold rests on."""
    value_asked: str = ""
    """The value that a yes/no question names."""


def _unique(values: list[str], without: tuple[str, ...]) -> list[str]:
    return [v for v in dict.fromkeys(values) if v not in without]


def _asked(draw: Draw, config: TimelineConfig, bank: Language, text: str) -> str:
    if draw.percent(config.preamble):
        return draw.pick(bank.wrappers["preambles"][0]) + " " + text
    return text


def _evidence(events: list[Event]) -> list[list[int]]:
    return sorted([s, t] for s, t in {(e.session, e.turn) for e in events if e.session is not None})


def current_evidence(world: World) -> list[Event]:
    """The told events that establish the present value: the last change, and what it leans on.

    A return without the value's name leans on the change that it undoes and on the tellings of the value before it.
    """
    own = [e for e in world.told() if e.slot == world.slot]
    effects = [e for e in own if e.kind in EFFECTS]
    last = effects[-1]
    if last.kind == "increment":
        return effects
    out = [last]
    if not last.named:
        for i, event in enumerate(effects):
            if event.value == last.value:
                out += [event] if event.named else [event, effects[i - 1]]
    return out


def previous_evidence(world: World, value: str) -> list[Event]:
    own = [e for e in world.told() if e.slot == world.slot]
    before = [e for e in own if e.value == value and e.kind in (*EFFECTS, "prior", "repeat")]
    return [*current_evidence(world), *before]


def ask(draw: Draw, config: TimelineConfig, bank: Language, world: World) -> Question:
    """The question that the world was built for."""
    makers = {
        "current": _current,
        "count": _current,
        "previous": _previous,
        "yesno": _yesno,
        "change": _change,
        "abstain": _abstain,
    }
    return makers[world.asks](draw, config, bank, world)


def _template(draw: Draw, config: TimelineConfig, bank: Language, slot: Slot, key: str, value: str = "") -> str:
    return _asked(draw, config, bank, sentence_case(fill(draw.pick(phrases(bank, slot, key, value)), slot, value)))


def _current(draw: Draw, config: TimelineConfig, bank: Language, world: World) -> Question:
    values = held(world.events, world.slot)
    gold = values[-1]
    text = _template(draw, config, bank, world.slot, "q")
    return Question(text, gold, _unique(values, (gold,)), f"{sentence_case(gold)}.", _evidence(current_evidence(world)))


def _previous(draw: Draw, config: TimelineConfig, bank: Language, world: World) -> Question:
    values = held(world.events, world.slot)
    gold = previous_of(values)
    assert gold is not None, "a previous-value world has at least two values"
    text = _template(draw, config, bank, world.slot, "qp")
    return Question(
        text, gold, _unique(values, (gold,)), f"{sentence_case(gold)}.", _evidence(previous_evidence(world, gold))
    )


def _yesno(draw: Draw, config: TimelineConfig, bank: Language, world: World) -> Question:
    """Asks whether a proposition holds now; superseded is the truth value that it once had."""
    values = held(world.events, world.slot)
    boolean = bank.attributes[world.slot.attribute].value_type == "boolean"
    others = [v for v in world.labels if v != values[-1]]
    named = "Yes" if boolean else values[-1] if draw.percent(50) or not others else draw.pick(others)
    truths = ["Yes" if v == named else "No" for v in values]
    gold = truths[-1]
    text = _template(draw, config, bank, world.slot, "qy", named)
    return Question(text, gold, _unique(truths, (gold,)), f"{gold}.", _evidence(current_evidence(world)), named)


def _change(draw: Draw, config: TimelineConfig, bank: Language, world: World) -> Question:
    values = held(world.events, world.slot)
    new, old = values[-1], previous_of(values)
    assert old is not None, "a change world has at least two values"
    evidence = _evidence(previous_evidence(world, old))
    about = topic(bank, world.slot)
    ordered = bank.attributes[world.slot.attribute].value_type in ORDERED
    if ordered and draw.percent(50):
        text = draw.pick(bank.wrappers["direction"][0]).replace("{topic}", about)
        sizes = universe(bank.split, world.slot.attribute)
        gold = bank.chatter["directions"][0 if sizes.index(new) > sizes.index(old) else 1]
        return Question(_asked(draw, config, bank, text), gold, [], f"{sentence_case(gold)}.", evidence)
    text = draw.pick(bank.wrappers["change"][0]).replace("{topic}", about)
    gold = f"from {old} to {new}"
    return Question(
        _asked(draw, config, bank, text), gold, _unique(values, (old, new)), f"{sentence_case(gold)}.", evidence
    )


def _abstain(draw: Draw, config: TimelineConfig, bank: Language, world: World) -> Question:
    """Asks something that was never mentioned: of a person known for other things, of a stranger, or of the user."""
    if draw.percent(30):
        return _abstain_unmentioned(draw, config, bank, world)
    known = {e.slot.person.name: e.slot.person for e in world.events}
    informed = {e.slot.person.name for e in world.events if e.slot.attribute == world.slot.attribute}
    others = [person for name, person in known.items() if name not in informed]
    person = draw.pick(others) if others and draw.percent(60) else make_person(draw, bank, set(known))
    slot = replace(world.slot, person=person)
    boolean = bank.attributes[slot.attribute].value_type == "boolean"
    text = _template(draw, config, bank, slot, "qy" if boolean else "q")
    names = [s.person.label("your") for s in (slot, world.slot)]
    gold = bank.wrappers["abstain_other"][0][0]
    gold = gold.replace("{topic}", topic(bank, slot, "second", names[0]))
    gold = gold.replace("{topic2}", topic(bank, world.slot, "second", names[1]))
    return Question(text, gold, [], gold.split(".")[0] + ".", [])


def _abstain_unmentioned(draw: Draw, config: TimelineConfig, bank: Language, world: World) -> Question:
    """Asks the user's value of an attribute that never came up."""
    mentioned = {e.slot.attribute for e in world.events}
    attribute = draw.pick([a for a in bank.attributes.values() if a.name not in mentioned])
    slot = make_slot(draw, bank, attribute, USER)
    text = _template(draw, config, bank, slot, "qy" if attribute.value_type == "boolean" else "q")
    gold = bank.wrappers["abstain"][0][0].replace("{topic}", topic(bank, slot, "second"))
    return Question(text, gold, [], gold, [])


def _listen(known: dict[Slot, list[str]], event: Event) -> None:
    """Take one telling into what a perfect listener knows: a slot's values in true order, misstatements taken out."""
    if event.kind == "prior":
        values = known[event.slot]
        values.insert(len(values) - 1, event.value)
    elif event.kind in EFFECTS:
        values = known.setdefault(event.slot, [])
        if event.kind == "correct":
            values.pop()
        if not values or values[-1] != event.value:
            values.append(event.value)


def _note(bank: Language, slot: Slot, values: list[str], with_previous: bool) -> str:
    name = sentence_case(slot.person.label("").strip()) if slot.person != USER else "User"
    clause = fill(phrases(bank, slot, "is", values[-1], third=True)[0], slot, values[-1], name)
    before = previous_of(values) if with_previous else None
    boolean = bank.attributes[slot.attribute].value_type == "boolean"
    return sentence_case(clause) + "." + (f" Before: {before}." if before and not boolean else "")


def oracle_notes(config: TimelineConfig, bank: Language, world: World) -> list[str]:
    """For each session the notes of an ideal note-taker, shortened until they fit.

    Previous values are kept only where a question or an unnamed return may need them. What gives way first: the
    previous values of side facts, then side facts about others, then all side facts.
    """
    known: dict[Slot, list[str]] = {}
    written: dict[tuple[Slot, bool], str] = {}
    told = world.told()
    at, notes, text = 0, [], ""
    for session in range(len(world.days)):
        news = at
        while at < len(told) and told[at].session == session:
            _listen(known, told[at])
            for with_previous in (True, False):
                written.pop((told[at].slot, with_previous), None)
            at += 1
        if at > news:
            text = _shortest(config, bank, world, known, written)
        notes.append(text or NOTHING_YET)
    return notes


def _shortest(
    config: TimelineConfig,
    bank: Language,
    world: World,
    known: dict[Slot, list[str]],
    written: dict[tuple[Slot, bool], str],
) -> str:
    text = ""
    wants_previous = bool(config.asks.previous or config.asks.change or config.styles.reversion)
    for level in range(4):
        parts = []
        for slot, values in known.items():
            if _kept(world, slot, level):
                key = (slot, wants_previous and (slot == world.slot or level == 0))
                if key not in written:
                    written[key] = _note(bank, slot, values, key[1])
                parts.append(written[key])
        text = " ".join(parts)
        if len(text) <= config.notes_chars:
            break
    return text


def _kept(world: World, slot: Slot, level: int) -> bool:
    if level < 2 or slot == world.slot:
        return True
    return level == 2 and slot.person == USER
