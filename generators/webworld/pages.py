"""Every page of a world as an accessibility tree. Facts are tagged here, where the line that tells them is made.

Fact keys: `home/help`, `menu:<page>`, `item:<n>/price`, `item:<n>/option:<label>`, `list:<n>/sorted:<column>`,
`list:<n>/narrowed:<value>`, `record:<n>:<r>/<column>`, `form:<n>/default:<field>`, `form:<n>/condition`, and so on.
"""

from __future__ import annotations

from generators.webworld.app import Session, addresses, condition_holds, shown_rows, state_of
from generators.webworld.axtree import Page
from generators.webworld.model import Field, World, with_article


def render(session: Session) -> Page:
    """What the user sees now."""
    world, place = session.world, session.place
    title = _title(world, place)
    first = 12 + (session.loads * 37 + world.seed * 11 + len(title) * 5) % 160
    page = Page(
        first, f"{title} | {world.site}" if world.config.chrome and place[0] != "home" else title, _url(session)
    )
    depth = _chrome(session, page)
    _BODIES[place[0]](session, page, depth)
    if world.config.chrome:
        page.frame = ""
        page.add(1, "contentinfo", "")
        page.text(2, f"{world.site} {2}.{world.seed % 9}")
        page.add(2, "link", "Privacy", f", url='{world.host}/privacy'")
    return page


def _title(world: World, place: tuple) -> str:
    if place[0] == "item":
        return world.catalogue.items[place[1]].name
    if place[0] == "record":
        return world.listings[place[1]].records[place[2]][0]
    if place[0] == "done":
        return world.catalogue.done if place[1] == "order" else world.forms[place[2]].done
    return world.title(":".join(map(str, place)))


def _url(session: Session) -> str:
    world, place = session.world, session.place
    known = addresses(world).get(place)
    if known is None:
        if place[0] == "item":
            return f"{world.host}/{world.catalogue.route}/{place[1] + 1}"
        if place[0] == "record":
            return f"{world.host}/{world.listings[place[1]].route}/{place[2] + 1}"
        return f"{world.host}/done/{len(session.created)}"
    view = session.views.get("/".join(map(str, place)))
    if view is None:
        return known
    parts = [("q", view.query), ("f", view.narrowed), ("s", view.sort), ("p", str(view.page + 1) if view.page else "")]
    query = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in parts if value)
    return f"{known}?{query}" if query else known


def _chrome(session: Session, page: Page) -> int:
    """The navigation, and on full pages what surrounds it. Returns the depth of the main content."""
    world = session.world
    if world.config.chrome:
        page.text(1, "", role="generic")
        page.add(1, "navigation", "Skip links")
        page.add(2, "link", "Skip to main content", ", url='#main'")
        page.add(1, "banner", "")
        page.add(2, "link", world.site, f", url='{world.host}/'", act=("go", "home"))
        page.add(2, "button", f"Account of {world.user}", ", expanded=False")
    page.add(1, "navigation", "Main")
    for number, menu in enumerate(world.menus):
        opened = session.menu == number
        page.add(2, "button", menu.label, f", expanded={opened}", act=("menu", number))
        if not opened:
            continue
        page.tell(f"menu-open:{number}")
        inside = 3
        if world.config.chrome:
            page.add(3, "list", "")
            inside = 4
        for key in menu.pages:
            target: tuple = tuple(int(part) if part.isdigit() else part for part in key.split(":"))
            address = addresses(world)[target]
            page.add(inside, "link", world.title(key), f", url='{address}'", act=("go", *target), fact=f"menu:{key}")
    depth = 1
    page.add(depth, "main", "")
    depth += 1
    if world.frame:
        page.frame = world.frame
        if world.config.chrome:
            page.add(depth, "Iframe", "Main Content")
            depth += 1
    for text, fact in session.alerts:
        page.add(depth, "alert", text, fact=fact)
    return depth


def _home(session: Session, page: Page, depth: int) -> None:
    world = session.world
    page.add(depth, "heading", world.site)
    page.text(depth, world.words.say("help", desk=world.desk), fact="home/help")
    if world.config.chrome:
        page.text(depth, f"Signed in as {world.user} with the role {world.role}")
        page.add(depth, "region", "Recently visited")
        for number, listing in enumerate(world.listings[:2]):
            page.text(depth + 1, f"{listing.title}: {listing.records[number][0]}")


def _catalogue(session: Session, page: Page, depth: int) -> None:
    world, view = session.world, session.view()
    shelf = world.catalogue
    page.add(depth, "heading", shelf.title)
    page.add(depth, "textbox", "Name", f" value={view.typed!r}", act=("typed",))
    page.add(depth, "button", world.words.say("search_button"), act=("search",))
    found = [n for n, item in enumerate(shelf.items) if view.query.lower() in item.name.lower()]
    if not found:
        page.text(depth, world.words.say("nothing"))
    for number in _window(found, view.page, shelf.page_size):
        item = shelf.items[number]
        page.add(depth, "row", f"{item.name} ${item.price}.00", fact=f"item:{number}/price")
        page.add(depth + 1, "link", item.name, act=("go", "item", number))
    _pager(session, page, depth, len(found), shelf.page_size)


def _window(rows: list[int], number: int, size: int) -> list[int]:
    return rows[number * size : (number + 1) * size]


def _pager(session: Session, page: Page, depth: int, count: int, size: int) -> None:
    view, pages = session.view(), max(1, -(-count // size))
    if pages == 1:
        return
    page.text(depth, f"Page {view.page + 1} of {pages}")
    if view.page + 1 < pages:
        page.add(depth, "link", session.world.words.say("next"), act=("page", view.page + 1))


def _item(session: Session, page: Page, depth: int) -> None:
    world, number = session.world, session.place[1]
    shelf, item, words = world.catalogue, world.catalogue.items[session.place[1]], world.words
    page.add(depth, "heading", item.name, fact=f"item:{number}")
    page.text(depth, f"Price ${item.price}.00", fact=f"item:{number}/page-price")
    page.add(depth, "radiogroup", shelf.group)
    for label, adds in item.options:
        text = f"{label} [add ${adds}.00]" if adds else label
        checked = f", checked='{str(session.values['option'] == label).lower()}'"
        page.add(depth + 1, "radio", text, checked, act=("radio", label), fact=f"item:{number}/option:{label}")
    value = session.values["quantity"]
    page.add(depth, "spinbutton", words.say("quantity"), f" value={value!r}", act=("field", "quantity"))
    page.add(depth, "button", shelf.order, act=("order",), fact=f"item:{number}/order")
    if world.config.chrome:
        page.add(depth, "link", f"Back to {shelf.title}", act=("go", "catalogue"))


def _list(session: Session, page: Page, depth: int) -> None:
    world, number, view = session.world, session.place[1], session.view()
    listing, words = world.listings[session.place[1]], world.words
    key = f"list:{number}"
    page.add(depth, "heading", listing.title, fact=key)
    if listing.form is not None:
        new = ("go", "form", listing.form)
        page.add(
            depth,
            "button",
            listing.new,
            f", description='starts {with_article(listing.noun)}'",
            act=new,
            fact=f"{key}/new",
        )
    hint = words.say("search", column=listing.search_column)
    rows = shown_rows(session)
    page.add(depth, "textbox", "Search", f" value={view.typed!r}", act=("typed",))
    page.text(depth, hint, fact=f"{key}/search")
    if not rows:
        page.tell(f"{key}/nothing")
    page.add(depth, "button", words.say("search_button"), act=("search",))
    everything = words.say("everything")
    narrow = f"{words.say('filter')} {listing.state_column}"
    options = (everything, *listing.filter_options)
    _combobox(page, depth, narrow, view.narrowed or everything, options, ("narrow", *options), f"{key}/narrow")
    first = listing.sorts[0]
    _combobox(
        page, depth, words.say("sort"), view.sort or first, listing.sorts, ("sort", *listing.sorts), f"{key}/sort"
    )
    _rows(session, page, depth, rows)


def _rows(session: Session, page: Page, depth: int, rows: list[int]) -> None:
    world, number, view = session.world, session.place[1], session.view()
    listing, key = world.listings[number], f"list:{number}"
    if world.config.chrome:
        page.add(depth, world.rows_as, " ".join(listing.columns), fact=f"{key}/columns")
        for column in listing.columns:
            page.add(depth + 1, "columnheader", column)
    if not rows:
        page.text(depth, world.words.say("nothing"))
    for place, row in enumerate(_window(rows, view.page, listing.page_size)):
        record = listing.records[row]
        values = (*record[:2], state_of(session, number, row), *record[3:])
        page.add(depth, world.rows_as, " ".join(values))
        page.add(depth + 1, "link", record[0], act=("go", "record", number, row))
        page.tell(f"record:{number}:{row}/row")
        if place == 0 and not view.query:
            for fact in _first_row_facts(session, key):
                page.tell(fact)
        if world.config.chrome:
            for column, value in zip(listing.columns[1:], values[1:], strict=True):
                page.add(depth + 1, "gridcell", value, fact=f"record:{number}:{row}/cell:{column}")
    _pager(session, page, depth, len(rows), listing.page_size)


def _first_row_facts(session: Session, key: str) -> list[str]:
    """What the first row tells, depending on how the list is shown."""
    view = session.view()
    if session.changed:
        return []
    if view.page == 1 and not view.sort and not view.narrowed:
        return [f"{key}/second-page"]
    if view.page or (view.sort and view.narrowed):
        return []
    if view.sort:
        return [f"{key}/sorted:{view.sort}"]
    return [f"{key}/narrowed:{view.narrowed}"] if view.narrowed else []


def _combobox(page: Page, depth: int, label: str, value: str, options: tuple, act: tuple, fact: str) -> None:
    page.add(depth, "combobox", label, f" value={value!r}, expanded=False", act=act, fact=fact)
    for option in options:
        page.add(depth + 1, "option", option, f", selected={option == value}", fact=f"{fact}/option:{option}")


def _record(session: Session, page: Page, depth: int) -> None:
    world, (_, number, row) = session.world, session.place
    listing = world.listings[number]
    record, key = listing.records[row], f"record:{number}:{row}"
    page.add(depth, "heading", record[0], fact=key)
    for column, value in zip(listing.columns[1:], record[1:], strict=True):
        fact = f"{key}/{column}"
        if column == listing.state_column:
            done = session.changed.get((number, row))
            value = state_of(session, number, row)
            fact = fact if done is None else f"list:{number}/action:{done[0]}/result"
        page.add(depth, "textbox", column, f" value={value!r}, readonly", fact=fact)
    for place, action in enumerate(listing.actions):
        fact, hint = f"list:{number}/action:{place}", f", description='to {action.does}'"
        if action.barred != state_of(session, number, row):
            page.add(depth, "button", action.button, hint, act=("action", place), fact=f"{fact}/button")
            continue
        page.add(depth, "button", action.button, f"{hint}, disabled=True", fact=f"{fact}/button")
        why = {"button": action.button, "column": listing.state_column, "value": action.barred}
        page.text(depth, world.words.say("barred", **why), fact=f"{fact}/barred")
    if session.dialog is not None:
        _dialog(session, page, depth)


def _dialog(session: Session, page: Page, depth: int) -> None:
    number, place = session.place[1], session.dialog
    action = session.world.listings[number].actions[place or 0]
    key = f"list:{number}/action:{place}"
    page.add(depth, "dialog", action.title, ", modal=True", fact=f"{key}/dialog")
    act = ("choice", "choice", *action.options)
    _combobox(page, depth + 1, action.field, session.values["choice"], action.options, act, f"{key}/field")
    rest = f", description='completes {action.button}'"
    page.add(depth + 1, "button", action.confirm, rest, act=("confirm",), fact=f"{key}/confirm")
    page.add(depth + 1, "button", action.cancel, act=("dismiss",))


def _form(session: Session, page: Page, depth: int) -> None:
    number, values = session.place[1], session.values
    form, key = session.world.forms[session.place[1]], f"form:{session.place[1]}"
    page.add(depth, "heading", form.title, fact=key)
    holds = condition_holds(form, values)
    for field in form.fields:
        _field(page, depth, field, values[field.label], key)
        if field.label == form.when_field and holds:
            hint = session.world.words.say("condition", then=form.then, field=form.when_field, value=form.when_value)
            page.text(depth, hint, fact=f"{key}/condition")
            then = Field(form.then, "text", required=True)
            _field(page, depth, then, values.get(form.then, ""), f"form:{number}/then")
    page.add(depth, "button", form.submit, act=("submit",), fact=f"{key}/submit")
    if form.draft is not None:
        page.add(depth, "button", form.draft, act=("draft",), fact=f"{key}/draft-button")
    page.add(depth, "button", form.cancel, act=("go", "home"))
    page.tell(f"{key}/buttons")


def _field(page: Page, depth: int, field: Field, value: str, key: str) -> None:
    role = {"text": "textbox", "choice": "combobox", "number": "spinbutton"}[field.kind]
    act = ("choice", field.label, *field.options) if field.options else ("field", field.label)
    rest = f" value={value!r}"
    rest += ", required" if field.required else ""
    rest += ", expanded=False" if field.options else ""
    page.add(depth, role, field.label, rest, act=act, fact=f"{key}/field:{field.label}")
    if field.required:
        page.tell(f"{key}/required:{field.label}")
    if field.default and value == field.default:
        page.tell(f"{key}/default:{field.label}")
    for option in field.options:
        chosen = f", selected={option == value}"
        page.add(depth + 1, "option", option, chosen, fact=f"{key}/option:{field.label}:{option}")


def _done(session: Session, page: Page, depth: int) -> None:
    world, (_, what, number) = session.world, session.place
    made, words = session.created[-1], world.words
    page.add(depth, "heading", world.catalogue.done if what == "order" else world.forms[number].done)
    page.text(depth, f"Reference R{world.seed % 90 + 10}{len(session.created):03d}")
    if what == "order":
        item = world.catalogue.items[number]
        fact = f"order:{number}:{made['option']}:{made['quantity']}/total"
        page.text(depth, f"{made['quantity']} x {item.name} with {made['option']}")
        page.text(depth, f"{words.say('total')} ${made['total']}.00", fact=fact)
        rules, field = world.catalogue, words.say("total")
        key = "order"
    else:
        page.text(depth, world.forms[number].title)
        rules, field, key = world.forms[number], world.forms[number].number, f"form:{number}"
    stage = rules.waiting if made["waits"] else rules.stage
    fact = f"{key}/{'waiting' if made['waits'] else 'stage'}"
    page.add(depth, "textbox", words.say("stage"), f" value={stage!r}, readonly", fact=fact)
    if made["waits"]:
        page.text(
            depth,
            words.say("approval", team=rules.approver, field=field, above=rules.above),
            fact=f"{key}/approval",
        )


def _locked(session: Session, page: Page, depth: int) -> None:
    world = session.world
    page.add(depth, "heading", world.locked.title)
    page.add(
        depth,
        "alert",
        world.words.say("denied", title=world.locked.title, role=world.locked.role),
        fact="locked/role",
    )
    page.text(depth, world.words.say("contact", contact=world.locked.contact), fact="locked/contact")


_BODIES = {
    "home": _home,
    "catalogue": _catalogue,
    "item": _item,
    "list": _list,
    "record": _record,
    "form": _form,
    "done": _done,
    "locked": _locked,
}
