"""The history of the asked fact, built so that neither place nor number of a value's mentions says whether it is true.

First comes a skeleton: the order in which K values are told, with repeats. Then one of the K is drawn as the answer,
independently of its place. Only then is every telling given a kind (a change, a late mention of an old value, a plan
that fell through, somebody else's value ...) that makes the drawn value the true answer.
"""

from __future__ import annotations

from dataclasses import replace

from generators.config import TimelineConfig
from generators.draw import Draw
from generators.facts import EFFECTS, USER, Event, Slot, World, make_person
from generators.language import Language
from generators.values import universe

MOST_COUNT = 100
"""Totals stay below this: bare counts up to here are a closed class (see `values`)."""
PLAIN_SHARE = 75
"""Percent of episodes with fewer than three values in which the old one is told before the new one."""
REALISED_SHARE = 35
"""Percent of early mentions of the later answer that are a plan, so that not every plan comes to nothing."""


def _distractor_role(draw: Draw, config: TimelineConfig) -> str:
    return draw.weighted([(k, getattr(config.styles, k)) for k in ("plan", "hypothetical", "other")])


def _update_style(draw: Draw, config: TimelineConfig, correction: bool) -> str:
    kinds = (
        ("explicit", "implicit", "paraphrased", "correction") if correction else ("explicit", "implicit", "paraphrased")
    )
    return draw.weighted([(k, getattr(config.styles, k)) for k in kinds])


def _set_style(draw: Draw, config: TimelineConfig) -> str:
    """The first telling of a fact: stated, or shown in passing."""
    styles = config.styles
    return draw.weighted([("explicit", styles.explicit + styles.paraphrased), ("implicit", styles.implicit)])


class Walk:
    """Gives each place of the skeleton a kind, keeping the state that the listener would have."""

    def __init__(self, draw: Draw, config: TimelineConfig, slot: Slot, asks: str) -> None:
        self.draw, self.config, self.slot, self.asks = draw, config, slot, asks
        self.events: list[Event] = []
        self.now: str | None = None
        self.held: set[str] = set()
        self.returns = draw.percent(config.styles.reversion)
        """Whether an earlier value may become true again."""
        self.gap = False
        """Whether an untold value will turn out to lie just before the present one: then no telling of it may say
        that it undoes the change told before."""

        self.to_come: list[str] = []
        """The values told after the present place of the skeleton."""

    def add(self, kind: str, style: str, value: str, slot: Slot | None = None, named: bool = True) -> Event:
        event = Event(slot or self.slot, kind, style, value, named=named)
        self.events.append(event)
        return event

    def repeat_style(self) -> str:
        """A repetition is said as such, or the value shows again in another remark."""
        return "implicit" if self.config.styles.implicit and self.draw.percent(40) else "repeat"

    def _may_correct(self) -> bool:
        """A correction says that the value told just before was never true, so that one may not come up again."""
        return (
            self.asks not in ("previous", "change")
            and self.events[-1].kind in ("set", "change")
            and self.now not in self.to_come
        )

    def state(self, value: str, correction: bool = True) -> None:
        """The value is true from here on, told in whatever way fits what came before."""
        if self.now == value:
            self.add("repeat", self.repeat_style(), value)
            return
        if self.now is None:
            self.add("set", _set_style(self.draw, self.config), value)
        elif value in self.held:
            style = _update_style(self.draw, self.config, False) if self.gap else "reversion"
            self.add("revert", style, value)
        else:
            style = _update_style(self.draw, self.config, correction and self._may_correct())
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


def fact_history(
    draw: Draw,
    config: TimelineConfig,
    bank: Language,
    world: World,
    updates: int,
    distractors: int,
    repeats: int,
    taken: set[str],
) -> list[Event]:
    attribute = bank.attributes[world.slot.attribute]
    values = universe(bank.split, attribute.name)
    if attribute.value_type == "boolean":
        weighed = config.styles.plan + config.styles.hypothetical + config.styles.other
        updates, distractors = min(1, updates), 0 if updates or not weighed else 1
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
    # With two values only there is little to tell apart: mostly the plain old-then-new.
    if not draw.percent(config.styles.late) or (k < 3 and draw.percent(PLAIN_SHARE)):
        # Old values first, the one right before the present last, so that none is left to be recalled.
        past = sorted([v for v in order if v in olds], key=lambda v: (v == prior, olds.index(v)))
        order = past + [v for v in order if v not in olds]
        if not config.balanced:
            order = [v for v in order if v != answer] + [answer]
    roles = {v: _distractor_role(draw, config) for v in others}
    return _tell(draw, config, bank, world, order, answer, olds, prior, roles, taken)


def _tell(
    draw: Draw,
    config: TimelineConfig,
    bank: Language,
    world: World,
    order: list[str],
    answer: str,
    olds: list[str],
    prior: str | None,
    roles: dict[str, str],
    taken: set[str],
) -> list[Event]:
    walk = Walk(draw, config, world.slot, world.asks)
    wants_previous = world.asks in ("previous", "change")
    tellings = [i for i, v in enumerate(order) if v == answer]
    decisive = draw.pick(tellings) if walk.returns else tellings[0]
    before = [i for i, v in enumerate(order) if v == prior and i < decisive] if wants_previous else []
    prior_told = before[-1 if walk.returns else 0] if before else None
    walk.gap = prior is not None and prior in order and order.index(prior) > decisive
    owners: dict[str, Slot] = {}
    for i, value in enumerate(order):
        walk.to_come = order[i + 1 :]
        if value == answer:
            planned = i < decisive and value not in walk.held and draw.percent(REALISED_SHARE)
            if planned and config.styles.plan:
                walk.add("plan", "plan", value)
            elif i >= decisive or value not in walk.held or walk.now == value:
                walk.state(value)
            else:
                walk.old(value, False)
        elif value in olds:
            _tell_old(walk, i, value, answer, decisive, prior, prior_told)
        else:
            _tell_distractor(
                walk,
                bank,
                world,
                roles[value],
                value,
                i == order.index(value),
                value not in order[i + 1 :],
                owners,
                taken,
            )
    return walk.events


def _tell_old(
    walk: Walk, i: int, value: str, answer: str, decisive: int, prior: str | None, prior_told: int | None
) -> None:
    wants_previous = walk.asks in ("previous", "change")
    if i > decisive:
        unseen = value not in walk.held
        may_undo = unseen and not wants_previous and not walk.gap
        if may_undo and walk.returns and walk.draw.percent(75):
            # The change is told, and later undone without naming the value that holds again.
            walk.state(value, correction=False)
            walk.add("revert", "reversion", answer, named=False)
            walk.now = answer
        else:
            walk.old(value, value == prior and unseen)
        return
    too_late = prior_told is not None and value != prior and i > prior_told
    superseded = value in walk.held and walk.now != value and i != prior_told
    if too_late or (superseded and not (walk.returns and walk.draw.percent(50))):
        walk.old(value, False)
    else:
        walk.state(value)


def _tell_distractor(
    walk: Walk,
    bank: Language,
    world: World,
    role: str,
    value: str,
    first: bool,
    last: bool,
    owners: dict[str, Slot],
    taken: set[str],
) -> None:
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
        style = _update_style(walk.draw, walk.config, False) if first else walk.repeat_style()
        walk.add(kind, style, value, owners[value])


def count_history(
    draw: Draw, config: TimelineConfig, bank: Language, world: World, updates: int, distractors: int, taken: set[str]
) -> list[Event]:
    """A stated number, then differences; the total is nowhere in the text."""
    attribute = bank.attributes[world.slot.attribute]
    form, step = attribute.spec["format"], attribute.spec["grid"][2]
    numbers = [int(v.replace(",", "")) for v in map(digits, universe(bank.split, attribute.name))]
    total = draw.pick(numbers)
    walk = Walk(draw, config, world.slot, "count")
    totals = [total]
    walk.state(form.replace("{n}", f"{total:,}"))
    increments: list[Event] = []
    for _ in range(max(1, updates)):
        sizes = (2, 3, 4, 5, 6, -2, -3) if "dec" in attribute.phrases else (2, 3, 4, 5, 6)
        deltas = [d * step for d in sizes if total + d * step not in totals and 1 < total + d * step < MOST_COUNT]
        if not deltas:  # no total is left below the limit
            break
        delta = draw.pick(deltas)
        total += delta
        totals.append(total)
        event = Event(world.slot, "increment", "increment", form.replace("{n}", f"{total:,}"), delta, named=False)
        increments.append(event)
    texts = {form.replace("{n}", f"{t:,}") for t in totals}
    spare = [
        v
        for v in draw.sample(universe(bank.split, attribute.name), min(len(numbers), distractors + len(texts)))
        if v not in texts
    ][:distractors]
    world.labels = [walk.events[0].value, *spare]
    owners: dict[str, Slot] = {}
    for value in spare:
        _tell_distractor(walk, bank, world, _distractor_role(draw, config), value, True, True, owners, taken)
    first, talk = walk.events[0], walk.events[1:]
    events: list[Event] = [first, *increments]
    for event in talk:
        events.insert(draw.below(len(events) + 1), event)
    return events


def digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())
