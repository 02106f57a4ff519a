"""The answerable questions of a world: every fact that its rules give, as drafts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from generators.draw import Draw
from generators.webworld.app import Session, shown_rows
from generators.webworld.bank import bank
from generators.webworld.drafts import DYNAMIC, GOTCHAS, PROCEDURE, STATIC, Draft
from generators.webworld.model import Catalogue, Form, World
from generators.webworld.seen import Seen

PLAIN = frozenset(
    (
        *("s_default", "s_price", "s_addon", "s_required", "s_value", "s_search", "s_sort", "s_help", "s_option"),
        *("d_condition", "d_stage", "d_waiting", "d_approver", "d_threshold", "d_total", "d_result", "d_dialog"),
        *("p_button", "p_confirm", "p_new"),
        *("g_limit", "g_form_limit", "g_role", "g_draft", "g_missing", "g_barred"),
    )
)
"""Templates whose answer stands on one line of one page."""

OPTIONS = 8
"""Options of a multiple-choice question, as many as the longest published ones have: a guess is right one time in 8."""


def drafts(world: World, seen: Seen, draw: Draw) -> Iterator[Draft]:
    """Every question that the runs of this world can answer."""
    yield from _site(world)
    yield from _catalogue(world, seen, draw)
    yield from _compared(world, draw)
    for number in range(len(world.forms)):
        yield from _form(world, number, draw)
        yield from _steps(world, number, draw)
    for number in range(len(world.listings)):
        yield from _list(world, number)
        yield from _actions(world, number, draw)


def _site(world: World) -> Iterator[Draft]:
    yield Draft("s_help", STATIC, "phrase", world.desk, ("home/help",), "desk", {})
    slots = {"page": world.locked.title}
    yield Draft("g_role", GOTCHAS, "phrase", world.locked.role, ("locked/role",), "role", slots)
    yield Draft("g_contact", GOTCHAS, "phrase", world.locked.contact, ("locked/contact",), "contact", slots)
    gold = bank("questions")["gold"]["g_role_free"].format(role=world.locked.role, contact=world.locked.contact)
    yield Draft("g_role_free", GOTCHAS, "free", gold, ("locked/role", "locked/contact"), "role", slots)
    for number, menu in enumerate(world.menus):
        if len(menu.pages) == 2:
            facts = (f"menu-open:{number}", *(f"menu:{page}" for page in menu.pages))
            for page, other in (menu.pages, menu.pages[::-1]):
                gold = f"{menu.label}, {world.title(other)}"
                yield Draft("p_reach", PROCEDURE, "ordered", gold, facts, page, {"page": world.title(page)})


def _catalogue(world: World, seen: Seen, draw: Draw) -> Iterator[Draft]:
    shelf, words = world.catalogue, world.words
    common = {"catalogue": shelf.title, "item_word": world.item_word, "group": shelf.group}
    for number, item in enumerate(shelf.items):
        slots: dict[str, Any] = {"item": item.name, **common}
        yield Draft("s_price", STATIC, "number", str(item.price), (f"item:{number}/price",), item.name, slots)
        for label, adds in item.options[1:]:
            fact = (f"item:{number}", f"item:{number}/option:{label}")
            yield Draft("s_addon", STATIC, "number", str(adds), fact, shelf.group, slots | {"option": label})
        # more than any item's limit, so that the number says nothing about this one's
        slots |= {"quantity": draw.between((61, 150)), "field": words.say("quantity")}
        fact = (f"item:{number}/limit",)
        yield Draft("g_limit", GOTCHAS, "number", str(item.most), fact, item.name, slots)
        gold = bank("questions")["gold"]["g_limit_free"].format(most=item.most)
        yield Draft("g_limit_free", GOTCHAS, "free", gold, fact, item.name, slots)
        yield from _totals(world, number, seen)
    yield from _approval(world, shelf, "order", words.say("total"), "order")


def _compared(world: World, draw: Draw) -> Iterator[Draft]:
    """What takes several pages, or several lines of one."""
    items = world.catalogue.items
    if len(items) >= OPTIONS:
        numbers = draw.sample(range(len(items)), OPTIONS)
        facts = tuple(f"item:{number}/price" for number in numbers)
        slots = {"catalogue": world.catalogue.title, "item_word": world.item_word}
        for template, best in (("s_dearest", max), ("s_cheapest", min)):
            gold = best(numbers, key=lambda number: items[number].price)
            wrong = tuple(items[number].name for number in numbers if number != gold)
            if [items[number].price for number in numbers].count(items[gold].price) == 1:
                yield Draft(template, STATIC, "choice", items[gold].name, facts, "price", slots, wrong)
    for one, two in combinations(range(len(world.forms)), 2):
        pair = world.forms[one], world.forms[two]
        shared = [field.label for field in pair[0].fields if pair[1].field(field.label) is not None]
        if len(shared) == 1:
            facts = (f"form:{one}/field:{shared[0]}", f"form:{two}/field:{shared[0]}")
            slots = {"form": pair[0].title, "other": pair[1].title}
            yield Draft("s_shared", STATIC, "phrase", shared[0], facts, "fields", slots)


def _totals(world: World, number: int, seen: Seen) -> Iterator[Draft]:
    """The sums that were shown for this item."""
    item, total = world.catalogue.items[number], world.words.say("total")
    for label, adds in item.options:
        for quantity in range(1, item.most + 1):
            fact = f"order:{number}:{label}:{quantity}/total"
            if fact in seen:
                slots = {"item": item.name, "option": label, "quantity": quantity, "total": total}
                gold = str(quantity * (item.price + adds))
                yield Draft("d_total", DYNAMIC, "number", gold, (fact,), item.name, slots)


def _approval(world: World, rules: Catalogue | Form, thing: str, field: str, key: str) -> Iterator[Draft]:
    slots = {"thing": thing, "field": field, "stage": world.words.say("stage")}
    yield Draft("d_stage", DYNAMIC, "phrase", rules.stage, (f"{key}/stage",), key, slots)
    yield Draft("d_waiting", DYNAMIC, "phrase", rules.waiting, (f"{key}/waiting",), key, slots)
    yield Draft("d_approver", DYNAMIC, "phrase", rules.approver, (f"{key}/approval",), key, slots)
    yield Draft("d_threshold", DYNAMIC, "number", str(rules.above), (f"{key}/approval",), field, slots)


def _form(world: World, number: int, draw: Draw) -> Iterator[Draft]:
    form, key = world.forms[number], f"form:{number}"
    slots = {"form": form.title}
    for field in form.fields:
        named = slots | {"field": field.label}
        if field.kind == "choice":
            fact = (key, f"{key}/default:{field.label}")
            yield Draft("s_default", STATIC, "phrase", field.default, fact, field.label, named)
            gold = draw.pick(field.options)
            fact = (key, f"{key}/option:{field.label}:{gold}")
            wrong = _wrong_options(world, form, field.options, draw)
            yield Draft("s_option", STATIC, "choice", gold, fact, field.label, named, wrong)
        if field.required:
            fact = (key, f"{key}/required:{field.label}")
            yield Draft("s_required", STATIC, "phrase", field.label, fact, "required", slots)
    rule = slots | {"field": form.when_field, "value": form.when_value, "submit": form.submit}
    yield Draft("d_condition", DYNAMIC, "phrase", form.then, (f"{key}/condition",), form.when_field, rule)
    yield Draft("g_missing", GOTCHAS, "phrase", form.then, (f"{key}/missing-then",), form.when_field, rule)
    yield from _approval(world, form, f"entry of the `{form.title}` form", form.number, key)
    limit = slots | {"field": form.number}
    yield Draft("g_form_limit", GOTCHAS, "number", str(form.most), (f"{key}/limit",), form.number, limit)
    if form.draft is not None:
        fact = (f"{key}/draft",)
        draft = slots | {"draft": form.draft, "submit": form.submit}
        yield Draft("g_draft", GOTCHAS, "phrase", form.submit, fact, form.title, draft)
        gold = bank("questions")["gold"]["g_draft_free"].format(**draft)
        yield Draft("g_draft_free", GOTCHAS, "free", gold, fact, form.title, draft)


def _wrong_options(world: World, form: Form, options: tuple[str, ...], draw: Draw) -> tuple[str, ...]:
    """Options that such fields have in other worlds and this one lacks: no other kind, which anybody could rule out.

    Those that a field of another form here has come first.
    """
    pool = next(pool for pool in bank("words")["choices"].values() if set(options) <= set(pool))
    elsewhere = {option for other in world.forms if other != form for field in other.fields for option in field.options}
    wrong = draw.shuffled([option for option in pool if option not in options])
    return tuple(sorted(wrong, key=lambda option: option not in elsewhere)[: OPTIONS - 1])


def _steps(world: World, number: int, draw: Draw) -> Iterator[Draft]:
    """How to reach and file a form."""
    form = world.forms[number]
    owner = next((n for n, listing in enumerate(world.listings) if listing.form == number), None)
    if owner is None:
        return
    listing = world.listings[owner]
    menu = world.menu_of(f"list:{owner}")
    place = world.menus.index(menu)
    facts = (f"menu-open:{place}", f"menu:list:{owner}", f"list:{owner}/new")
    path = (menu.label, listing.title, listing.new)
    slots = {"form": form.title}
    yield Draft("p_path", PROCEDURE, "ordered", ", ".join(path), facts, form.title, slots)
    # Two ways at each of three forks make eight: every part stands in four options, so that none gives itself away.
    # The other way is always of the same kind as the right one; a draft's button would show by its name.
    start, thing = listing.new.split(" ", 1)
    ends = [name for name in bank("words")["submits"] if name != form.submit]
    forks = (
        (menu.label, draw.pick([other.label for other in world.menus if other != menu])),
        (
            f"{listing.title} > {listing.new}",
            f"{listing.title} > {draw.pick([s for s in bank('words')['starts'] if s != start])} {thing}",
        ),
        (form.submit, draw.pick(ends)),
    )
    gold, *wrong = [" > ".join(way) for way in product(*forks)]
    facts = (*facts, f"form:{number}/submit")
    yield Draft("p_steps", PROCEDURE, "choice", gold, facts, form.title, slots, tuple(draw.shuffled(wrong)))


def _list(world: World, number: int) -> Iterator[Draft]:
    listing, key = world.listings[number], f"list:{number}"
    slots = {"list": listing.title, "noun": listing.noun, "sort": world.words.say("sort")}
    search = listing.search_column
    yield Draft("s_search", STATIC, "phrase", search, (key, f"{key}/search"), "search", slots)
    for row, record in enumerate(listing.records):
        facts = (f"record:{number}:{row}/row", f"{key}/nothing")
        yield Draft("g_search", GOTCHAS, "phrase", search, facts, "search", slots | {"record": record[0]})
    if listing.sorts[0] != "Name":  # one world in four: too easy to guess
        yield Draft("s_sort", STATIC, "phrase", listing.sorts[0], (key, f"{key}/sort"), "sort", slots)
    gold = ", ".join(listing.columns[1:])
    yield Draft("s_columns", STATIC, "ordered", gold, (key, f"{key}/columns"), "columns", slots)
    if listing.form is not None:
        yield Draft("p_new", PROCEDURE, "phrase", listing.new, (key, f"{key}/new"), listing.noun, slots)
    for row, record in enumerate(listing.records):
        for column, value in zip(listing.columns[1:], record[1:], strict=True):
            if column == listing.state_column:
                continue  # seven values only, and actions change it
            about = slots | {"record": record[0], "column": column}
            fact = (f"record:{number}:{row}", f"record:{number}:{row}/{column}")
            yield Draft("s_value", STATIC, "phrase", value, fact, column, about)
    session = Session(world)
    session.place = ("list", number)
    rows = shown_rows(session)
    if len(rows) > listing.page_size:
        gold = listing.records[rows[listing.page_size]][0]
        yield Draft("d_second", DYNAMIC, "phrase", gold, (f"{key}/second-page",), "second", slots)
    for column in listing.sorts[1:]:
        session.views = {}
        session.view().sort = column
        gold = listing.records[shown_rows(session)[0]][0]
        about = slots | {"column": column}
        yield Draft("d_sorted", DYNAMIC, "phrase", gold, (f"{key}/sorted:{column}",), column, about)
    for value in listing.filter_options:
        session.views = {}
        session.view().narrowed = value
        gold = listing.records[shown_rows(session)[0]][0]
        about = slots | {"column": listing.state_column, "value": value}
        yield Draft("d_narrowed", DYNAMIC, "phrase", gold, (f"{key}/narrowed:{value}",), value, about)


def _actions(world: World, number: int, draw: Draw) -> Iterator[Draft]:
    listing = world.listings[number]
    for place, action in enumerate(listing.actions):
        key = f"list:{number}/action:{place}"
        slots = {"noun": listing.noun, "does": f"to {action.does}", "button": action.button, "field": action.field}
        slots |= {"column": listing.state_column, "list": listing.title}
        if action.barred is not None:
            yield Draft("g_barred", GOTCHAS, "phrase", action.barred, (f"{key}/barred",), slots["column"], slots)
        yield Draft("p_button", PROCEDURE, "phrase", action.button, (f"{key}/button",), action.deed, slots)
        yield Draft("p_confirm", PROCEDURE, "phrase", action.confirm, (f"{key}/confirm",), action.deed, slots)
        gold = f"{action.button}, {action.confirm}"
        facts = (f"{key}/button", f"{key}/confirm")
        yield Draft("p_act", PROCEDURE, "ordered", gold, facts, action.deed, slots)
        yield Draft("d_result", DYNAMIC, "phrase", action.result, (f"{key}/result",), action.deed, slots)
        gold = draw.pick(action.options)
        pool = next(spec["options"] for spec in bank("actions") if spec["field"] == action.field)
        wrong = draw.shuffled([option for option in pool if option not in action.options])
        facts = (f"{key}/dialog", f"{key}/field/option:{gold}")
        yield Draft("d_dialog", DYNAMIC, "choice", gold, facts, action.field, slots, tuple(wrong[: OPTIONS - 1]))
