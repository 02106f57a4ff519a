"""Questions with a false premise: the same questions about something that only another world has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from generators.draw import Draw
from generators.webworld.bank import bank
from generators.webworld.drafts import DYNAMIC, PROCEDURE, STATIC, Draft
from generators.webworld.model import World, with_article


def holds(world: World, premise: dict[str, Any]) -> bool:
    """Whether what a premise takes for granted is so in a world."""
    what, number, name = premise["what"], premise.get("of", 0), premise["name"]
    if what == "group":
        return world.catalogue.group == name
    if what == "item":
        return any(item.name == name for item in world.catalogue.items)
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
        yield from _items(world, other, draw)
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
    about = {"name": premise["name"], "a_noun": with_article(slots.get("noun", "record"))}
    gold = bank("questions")["gold"][premise["what"]].format(**(about | slots))
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
    facts = tuple(f"item:{number}/option:{label}" for label, _ in item.options)
    for draft in _draft(world, other, "s_addon", STATIC, "number", premise, facts, real):
        draft.slots.update(group=premise["name"], option=option)
        yield draft


def _items(world: World, other: World, draw: Draw) -> Iterator[Draft]:
    shelf = world.catalogue
    names = [item.name for item in shelf.items]
    slots = {"catalogue": shelf.title, "item_word": world.item_word, "rest": _listed(names)}
    facts = tuple(f"item:{number}/price" for number in range(len(names)))
    for item in draw.sample(other.catalogue.items, 2):
        premise = {"what": "item", "name": item.name}
        about: dict[str, Any] = slots | {"item": item.name, "option": draw.pick(item.options)[0]}
        yield from _draft(world, other, "s_price", STATIC, "number", premise, facts, about)
        about |= {"quantity": draw.between((2, item.most)), "total": world.words.say("total")}
        yield from _draft(world, other, "d_total", DYNAMIC, "number", premise, facts, about)


def _fields(world: World, other: World, number: int) -> Iterator[Draft]:
    form, theirs = world.forms[number], other.forms[number]
    rest = _listed([field.label for field in form.fields])
    facts = (f"form:{number}", *(f"form:{number}/field:{field.label}" for field in form.fields))
    own = {field.label.split()[-1] for field in form.fields}
    for field in theirs.fields:
        if field.kind == "text" or field.label.split()[-1] in own:
            continue  # "Internal Region" where there is a "Region" would be a quibble
        premise = {"what": "field", "of": number, "name": field.label}
        slots = {"form": form.title, "field": field.label, "rest": rest}
        if field.kind == "number":
            slots |= {"thing": f"entry of the `{form.title}` form"}
            yield from _draft(world, other, "d_approver", DYNAMIC, "phrase", premise, facts, slots)
            yield from _draft(world, other, "d_threshold", DYNAMIC, "number", premise, facts, slots)
            continue
        yield from _draft(world, other, "s_default", STATIC, "phrase", premise, facts, slots)
        if field.label == theirs.when_field:
            slots |= {"value": theirs.when_value}
            yield from _draft(world, other, "d_condition", DYNAMIC, "phrase", premise, facts, slots)


def _columns(world: World, other: World, number: int, draw: Draw) -> Iterator[Draft]:
    listing, theirs = world.listings[number], other.listings[number]
    slots = {"list": listing.title, "noun": listing.noun, "sort": world.words.say("sort")}
    row = draw.below(len(listing.records))
    shown = tuple(f"record:{number}:{row}/{column}" for column in listing.columns[1:] if column != listing.state_column)
    for column in theirs.columns[1:]:
        premise = {"what": "column", "of": number, "name": column}
        about = slots | {"column": column, "record": listing.records[row][0], "rest": _listed(listing.columns)}
        yield from _draft(world, other, "s_value", STATIC, "phrase", premise, shown, about)
    for column in theirs.sorts:
        premise = {"what": "sort", "of": number, "name": column}
        about = slots | {"column": column, "rest": _listed(listing.sorts)}
        facts = (f"list:{number}", *(f"list:{number}/sort/option:{own}" for own in listing.sorts))
        yield from _draft(world, other, "d_sorted", DYNAMIC, "phrase", premise, facts, about)


def _actions(world: World, other: World, number: int) -> Iterator[Draft]:
    listing, theirs = world.listings[number], other.listings[number]
    facts = tuple(f"list:{number}/action:{place}/button" for place in range(len(listing.actions)))
    for action in theirs.actions:
        does = f"to {action.deed.format(a_noun=with_article(listing.noun))}"
        slots = {"noun": listing.noun, "button": action.button, "does": does, "column": listing.state_column}
        buttons = slots | {"rest": _listed([own.button for own in listing.actions])}
        premise = {"what": "button", "of": number, "name": action.button}
        yield from _draft(world, other, "d_result", DYNAMIC, "phrase", premise, facts, buttons)
        yield from _draft(world, other, "p_confirm", PROCEDURE, "phrase", premise, facts, buttons)
        premise = {"what": "deed", "of": number, "name": action.deed}
        deeds = slots | {"rest": "; ".join(f"to {own.does}" for own in listing.actions)}
        yield from _draft(world, other, "p_button", PROCEDURE, "phrase", premise, facts, deeds)
