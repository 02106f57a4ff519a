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
    if "{" not in template:
        return template
    template = template.replace("{num}", str(draw.between((3, 9))))
    return template.replace("{money}", f"${draw.between((12, 89))}")


class Talk:
    """The off-topic course of one session: questions with their answers, and advice that does not repeat soon."""

    def __init__(self, draw: Draw, bank: Language) -> None:
        self.draw, self.bank = draw, bank
        self.pairs: list[tuple[str, str]] = []
        self.advice: list[str] = []
        self.general: list[str] = []
        self.musings: list[str] = []

    def pair(self) -> tuple[str, str]:
        """The next question and its answer; a new theme when the last one has nothing left to ask."""
        if not self.pairs:
            theme = self.draw.pick(self.bank.chatter["topics"])
            self.pairs = [*self.draw.shuffled(theme["more"]), self.draw.pick(theme["asks"])]
            self.advice = self.draw.shuffled(theme["tips"])
        question, answer = self.pairs.pop()
        return chatter(self.draw, question), chatter(self.draw, answer)

    def musing(self) -> str:
        if not self.musings:
            self.musings = self.draw.shuffled(self.bank.chatter["musings"])
        return chatter(self.draw, self.musings.pop())

    def tip(self) -> str:
        if self.advice:
            return chatter(self.draw, self.advice.pop())
        if not self.general:
            self.general = self.draw.shuffled(self.bank.chatter["general"])
        return chatter(self.draw, self.general.pop())

    def tips(self, count: int) -> str:
        """Advice in running text, or from four pieces on as a list with a heading to every two."""
        if count < 4:
            return " ".join([self.tip() for _ in range(count)])
        leads = self.draw.sample(self.bank.chatter["leads"], min(count // 2, len(self.bank.chatter["leads"])))
        lines = [f"* **{lead}:** {self.tip()} {self.tip()}" for lead in leads]
        return "\n" + "\n".join(lines) + "\n"


def assistant_turn(draw: Draw, config: TimelineConfig, talk: Talk, answer: str, facts: list[Event]) -> str:
    chat = talk.bank.chatter
    parts = []
    if facts and facts[-1].named and facts[-1].value not in ("Yes", "No") and draw.percent(config.echo):
        parts.append(sentence_case(draw.pick(chat["echoes"]).replace("{v}", facts[-1].value)))
    else:
        parts.append(draw.pick(chat["acks" if facts else "replies"]))
    parts.append(answer)
    count = draw.between(config.tips)
    if count:
        parts.append(talk.tips(count))
    if draw.percent(50):
        parts.append(draw.pick(chat["closers"]))
    return " ".join(parts)


def render_session(draw: Draw, config: TimelineConfig, bank: Language, asked: Person, events: list[Event],
                   day: int) -> dict[str, Any]:
    """One session; sets turn and text of its events. The facts come along before, amid or after a request."""
    pairs = max(1, draw.between(config.turns) // 2)
    places = sorted([draw.below(pairs) for _ in events])
    for event, place in zip(events, places, strict=True):
        event.turn = 2 * place
        event.text = tell(draw, bank, event, asked)
    talk = Talk(draw, bank)
    turns: list[dict[str, str]] = []
    for i in range(pairs):
        facts = [e for e in events if e.turn == 2 * i] if events else []
        question, answer = talk.pair()
        said = [question, *[talk.musing() for _ in range(draw.between(config.chat) - 1)]]
        at = draw.below(len(said) + 1)
        said[at:at] = [e.text for e in facts]
        turns.append({"role": "user", "content": " ".join(said)})
        turns.append({"role": "assistant", "content": assistant_turn(draw, config, talk, answer, facts)})
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
