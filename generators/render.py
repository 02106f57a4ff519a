"""Words for a finished history: each told event becomes a sentence of a user turn, amid talk about other things."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import Any

from generators.config import LONG_TIPS, LONG_TURNS, Range, TimelineConfig
from generators.draw import Draw
from generators.facts import USER, Event, Person, Slot, World
from generators.language import Language

DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# (event kind, style) -> wrapper; kinds that are always told one way come first.
BY_KIND = {
    "repeat": "repeat",
    "plan": "plan",
    "cancel": "cancel",
    "plan_failed": "plan_failed",
    "late": "late",
    "hypothetical": "hypothetical",
    "far": "far",
    "prior": "prior",
    "increment": "increment",
    "correct": "correction",
    "forget": "forget",
}
STAGED = ("status", "date")
"""Value types of one-off affairs, whose far past is an early stage and not "years ago"."""
SPELLED = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight")
CLAUSES = {"{is}": "is", "{was}": "was", "{did}": "did", "{do}": "do"}


@cache
def day_text(day: int) -> str:
    d = date.fromordinal(day)
    return f"{d.year}/{d.month:02d}/{d.day:02d} ({DAY_NAMES[d.weekday()]})"


def stamp(day: int, minute: int) -> str:
    """`YYYY/MM/DD (Ddd) HH:MM`, the form of the public data."""
    return f"{day_text(day)} {minute // 60:02d}:{minute % 60:02d}"


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


def _wrapper_key(event: Event, asked: Person, value_type: str) -> str | None:
    """Which wrapper tells the event; None for a remark that shows the value only in passing."""
    if event.style == "implicit":
        return None
    if event.kind == "far" and value_type in STAGED:
        return "early"
    if event.kind in BY_KIND:
        return BY_KIND[event.kind]
    if event.kind == "revert" and event.style == "reversion":
        return "reversion" if event.named else "reversion_unnamed"
    if event.kind == "set":
        stated = event.slot.person in (USER, asked) or event.style == "paraphrased"
        return "state" if stated else "gossip"
    return event.style


def tell(draw: Draw, bank: Language, event: Event, asked: Person) -> str:
    """The sentence for an event."""
    slot = event.slot
    key = _wrapper_key(event, asked, bank.attributes[slot.attribute].value_type)
    if key is None:
        return sentence_case(fill(draw.pick(phrases(bank, slot, "hint", event.value)), slot, event.value))
    text = draw.pick(bank.wrappers[key][slot.person != USER])
    for mark, clause in CLAUSES.items():
        if mark in text:
            text = text.replace(mark, fill(draw.pick(phrases(bank, slot, clause, event.value)), slot, event.value))
    if "{inc}" in text:
        key = "inc" if event.delta > 0 else "dec"
        size = abs(event.delta)
        said = SPELLED[size] if size < len(SPELLED) and draw.percent(60) else str(size)
        change = draw.pick(phrases(bank, slot, key, event.value)).replace("{d}", said)
        text = text.replace("{inc}", fill(change, slot))
    if "{topic}" in text:
        text = text.replace("{topic}", topic(bank, slot))
    return sentence_case(fill(text, slot, event.value))


def chatter(draw: Draw, template: str, taken: frozenset[str]) -> str:
    """Off-topic talk with values of its own, none of them a value of the history."""
    if "{" not in template:
        return template
    while True:
        number, money = str(draw.between((3, 12))), f"${draw.between((12, 149))}"
        if number not in taken and money not in taken:
            return template.replace("{num}", number).replace("{money}", money)


class Talk:
    """The off-topic course of one session: questions with their answers, and advice that does not repeat soon."""

    def __init__(self, draw: Draw, bank: Language, taken: frozenset[str]) -> None:
        self.draw, self.bank, self.taken = draw, bank, taken
        self.pairs: list[tuple[str, str]] = []
        self.advice: list[str] = []
        self.general: list[str] = []
        self.musings: list[str] = []

    def fill(self, template: str) -> str:
        return chatter(self.draw, template, self.taken)

    def pair(self) -> tuple[str, str]:
        """The next question and its answer; a new theme when the last one has nothing left to ask."""
        if not self.pairs:
            theme = self.draw.pick(self.bank.chatter["topics"])
            self.pairs = [*self.draw.deck(theme["more"]), self.draw.pick(theme["asks"])]
            self.advice = self.draw.deck(theme["tips"])
        question, answer = self.pairs.pop()
        return self.fill(question), self.fill(answer)

    def musing(self) -> str:
        if not self.musings:
            self.musings = self.draw.deck(self.bank.chatter["musings"])
        return self.fill(self.musings.pop())

    def tip(self) -> str:
        if self.advice:
            return self.fill(self.advice.pop())
        if not self.general:
            self.general = self.draw.deck(self.bank.chatter["general"])
        return self.fill(self.general.pop())

    def tips(self, count: int) -> str:
        """Advice in running text, or from four pieces on as a list with a heading to every two."""
        if count < 4:
            return " ".join([self.tip() for _ in range(count)])
        leads = self.draw.deck(self.bank.chatter["leads"])[: count // 2]
        lines = [f"* **{lead}:** {self.tip()} {self.tip()}" for lead in leads]
        return "\n" + "\n".join(lines) + "\n"


def assistant_turn(draw: Draw, config: TimelineConfig, talk: Talk, answer: str, facts: list[Event], tips: Range) -> str:
    chat = talk.bank.chatter
    parts = []
    if facts and facts[-1].named and facts[-1].value not in ("Yes", "No") and draw.percent(config.echo):
        parts.append(sentence_case(draw.pick(chat["echoes"]).replace("{v}", facts[-1].value)))
    else:
        parts.append(draw.pick(chat["acks" if facts else "replies"]))
    parts.append(answer)
    count = draw.between(tips)
    if count:
        parts.append(talk.tips(count))
    if draw.percent(50):
        parts.append(draw.pick(chat["closers"]))
    return " ".join(parts)


def render_session(
    draw: Draw,
    config: TimelineConfig,
    bank: Language,
    asked: Person,
    events: list[Event],
    day: int,
    taken: frozenset[str],
) -> dict[str, Any]:
    """One session; sets turn and text of its events. The facts come along before, amid or after a request."""
    long = config.long_sessions > 0 and draw.percent(config.long_sessions)
    tips = LONG_TIPS if long else config.tips
    pairs = max(1, draw.between(LONG_TURNS if long else config.turns) // 2)
    places = sorted([draw.below(pairs) for _ in events])
    for event, place in zip(events, places, strict=True):
        event.turn = 2 * place
        event.text = tell(draw, bank, event, asked)
    talk = Talk(draw, bank, taken)
    turns: list[dict[str, str]] = []
    for i in range(pairs):
        facts = [e for e in events if e.turn == 2 * i] if events else []
        question, answer = talk.pair()
        said = [question, *[talk.musing() for _ in range(draw.between(config.chat) - 1)]]
        at = draw.below(len(said) + 1)
        said[at:at] = [e.text for e in facts]
        turns.append({"role": "user", "content": " ".join(said)})
        turns.append({"role": "assistant", "content": assistant_turn(draw, config, talk, answer, facts, tips)})
    return {"date": stamp(day, 360 + draw.below(1000)), "turns": turns}


def render(draw: Draw, config: TimelineConfig, bank: Language, world: World) -> list[dict[str, Any]]:
    """All sessions of the world."""
    by_session: list[list[Event]] = [[] for _ in world.days]
    for event in world.events:
        if event.session is not None:
            by_session[event.session].append(event)
    person = world.slot.person
    taken = frozenset(e.value for e in world.events)
    return [
        render_session(draw, config, bank, person, events, day, taken)
        for events, day in zip(by_session, world.days, strict=True)
    ]
