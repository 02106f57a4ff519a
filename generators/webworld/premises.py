"""Questions with a false premise: the same questions about something that only another world has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from generators.draw import Draw
from generators.webworld.bank import bank
from generators.webworld.drafts import DYNAMIC, PROCEDURE, STATIC, Draft
from generators.webworld.model import World


def holds(world: World, premise: dict[str, Any]) -> bool:
    """Whether what a premise takes for granted is so in a world."""
    what, number, name = premise["what"], premise.get("of", 0), premise["name"]
    if what == "group":
        return world.catalogue.group == name
    if what == "field":
        return world.forms[number].field(name) is not None
    listing = world.listings[number]
    if what == "column":
        return name in listing.columns
    if what == "sort":
        return name in listing.sorts
    if what == "button":
        return any(action.button == name for action in listing.actions)
    assert what == "deed"
    return any(action.deed == name for action in listing.actions)


def premise_drafts(world: World, others: Sequence[World], draw: Draw) -> Iterator[Draft]:
    """What the other worlds have and this one lacks, asked about here."""
    for other in others:
        yield from _groups(world, other, draw)
        for number in range(min(len(world.forms), len(other.forms))):
            yield from _fields(world, other, number)
        for number in range(min(len(world.listings), len(other.listings))):
            yield from _columns(world, other, number, draw)
            yield from _actions(world, other, number)


def _draft(
    world: World,
    other: World,
    template: str,
    base_type: str,
    form: str,
    premise: dict[str, Any],
    facts: tuple[str, ...],
    slots: dict[str, Any],
) -> Iterator[Draft]:
    """The draft, unless the premise is true here."""
    if holds(world, premise):
        return
    assert holds(other, premise)
    gold = bank("questions")["gold"][premise["what"]].format(**({"name": premise["name"]} | slots))
    yield Draft(
        template,
        f"{base_type}-abs",
        form,
        gold,
        facts,
        premise["name"],
        slots,
        premise=premise | {"true_in": other.seed},
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _groups(world: World, other: World, draw: Draw) -> Iterator[Draft]:
    number = draw.below(len(world.catalogue.items))
    item = world.catalogue.items[number]
    premise = {"what": "group", "name": other.catalogue.group}
    option = draw.pick(other.catalogue.items[0].options)[0]
    rest = _listed([label for label, _ in item.options])
    real = {"item": item.name, "group": world.catalogue.group, "rest": rest}
    for draft in _draft(world, other, "s_addon", STATIC, "number", premise, (f"item:{number}",), real):
        draft.slots.update(group=premise["name"], option=option)
        yield draft


def _fields(world: World, other: World, number: int) -> Iterator[Draft]:
    form, theirs = world.forms[number], other.forms[number]
    rest = _listed([field.label for field in form.fields])
    key = f"form:{number}"
    for field in theirs.fields:
        if field.kind != "choice":
            continue
        premise = {"what": "field", "of": number, "name": field.label}
        slots = {"form": form.title, "field": field.label, "rest": rest}
        yield from _draft(world, other, "s_default", STATIC, "phrase", premise, (key,), slots)
        if field.label == theirs.when_field:
            slots |= {"value": theirs.when_value}
            yield from _draft(world, other, "d_condition", DYNAMIC, "phrase", premise, (key,), slots)


def _columns(world: World, other: World, number: int, draw: Draw) -> Iterator[Draft]:
    listing, theirs = world.listings[number], other.listings[number]
    slots = {"list": listing.title, "noun": listing.noun, "sort": world.words.say("sort")}
    row = draw.below(len(listing.records))
    for column in theirs.columns[1:]:
        premise = {"what": "column", "of": number, "name": column}
        about = slots | {"column": column, "record": listing.records[row][0], "rest": _listed(listing.columns)}
        yield from _draft(world, other, "s_value", STATIC, "phrase", premise, (f"record:{number}:{row}",), about)
    for column in theirs.sorts:
        premise = {"what": "sort", "of": number, "name": column}
        about = slots | {"column": column, "rest": _listed(listing.sorts)}
        facts = (f"list:{number}", f"list:{number}/sort")
        yield from _draft(world, other, "d_sorted", DYNAMIC, "phrase", premise, facts, about)


def _actions(world: World, other: World, number: int) -> Iterator[Draft]:
    listing, theirs = world.listings[number], other.listings[number]
    facts = (f"list:{number}/actions",)
    for action in theirs.actions:
        slots = {"noun": listing.noun, "button": action.button, "column": listing.state_column}
        buttons = slots | {"rest": _listed([own.button for own in listing.actions])}
        premise = {"what": "button", "of": number, "name": action.button}
        yield from _draft(world, other, "d_result", DYNAMIC, "phrase", premise, facts, buttons)
        yield from _draft(world, other, "p_confirm", PROCEDURE, "phrase", premise, facts, buttons)
        premise = {"what": "deed", "of": number, "name": action.deed}
        does = f"to {action.deed.format(noun=listing.noun)}"
        deeds = slots | {"does": does, "rest": "; ".join(f"to {own.does}" for own in listing.actions)}
        yield from _draft(world, other, "p_button", PROCEDURE, "phrase", premise, facts, deeds)
