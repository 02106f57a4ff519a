"""The application while it is used: a state machine that takes BrowserGym's actions and shows pages.

`Session.do` takes an action as text, finds the element by its id on the page that was shown last, and moves. Nothing
else changes the state, so a trajectory can be replayed from its actions alone.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any

from generators.webworld.axtree import Act, Page
from generators.webworld.model import Form, Item, Listing, World

CALL = re.compile(r"^(\w+)\((.*)\)$", re.DOTALL)

Place = tuple[Any, ...]
"""Where the user is: ("home",), ("catalogue",), ("item", 3), ("list", 0), ("record", 0, 4), ("form", 1), ("locked",),
("done", "order" or "form", its number)."""


@dataclass
class View:
    """How a list is shown. `query` is what was searched for, `typed` what stands in the search box."""

    page: int = 0
    typed: str = ""
    query: str = ""
    narrowed: str = ""
    sort: str = ""


@dataclass
class Session:
    """A user of a world. Plain data; `page` is what the user sees."""

    world: World
    place: Place = ("home",)
    menu: int | None = None
    values: dict[str, str] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    dialog: int | None = None
    alerts: list[tuple[str, str | None]] = field(default_factory=list)
    """Messages on the page, each with the fact that it tells."""
    created: list[dict[str, Any]] = field(default_factory=list)
    changed: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)
    """(list, record) -> (action, choice) that was confirmed on it."""
    said: list[str] = field(default_factory=list)
    trail: list[Place] = field(default_factory=list)
    loads: int = 0
    page: Page = None  # ty: ignore[invalid-assignment]  (set by __post_init__)

    def __post_init__(self) -> None:
        self._show()

    def _show(self) -> None:
        from generators.webworld.pages import render

        self.page = render(self)

    def do(self, action: str) -> Page:
        """Carry out one action; an id that the page does not have, or a deed that does not fit it, changes nothing."""
        call = CALL.match(action)
        if call is None:
            raise ValueError(f"not an action: {action}")
        name = call[1]
        arguments: tuple[Any, ...] = ast.literal_eval(f"({call[2]},)") if call[2] else ()
        if name == "goto":
            self._goto(str(arguments[0]))
        elif name == "go_back":
            if self.trail:
                self._move(self.trail.pop(), back=True)
        elif name == "send_msg_to_user":
            self.said.append(str(arguments[0]))
        elif name in ("click", "fill", "select_option"):
            act = self.page.acts.get(arguments[0])
            if act is not None:
                _PERFORM[name](self, act, *arguments[1:])
        self._show()
        return self.page

    def view(self) -> View:
        return self.views.setdefault("/".join(map(str, self.place)), View())

    def _goto(self, url: str) -> None:
        for place, known in addresses(self.world).items():
            if known == url:
                self._move(place)

    def _move(self, place: Place, *, back: bool = False) -> None:
        if not back:
            self.trail.append(self.place)
        self.place = place
        self.alerts, self.dialog, self.values, self.menu = [], None, {}, None
        self.loads += 1
        if place[0] == "form":
            self.values = {field.label: field.default for field in self.world.forms[place[1]].fields}
        elif place[0] == "item":
            options = self.world.catalogue.items[place[1]].options
            self.values = {"option": options[0][0], "quantity": "1"}

    def _click(self, act: Act) -> None:
        kind = act[0]
        if kind == "go":
            self._move(act[1:])
        elif kind == "menu":
            self.menu = None if self.menu == act[1] else int(act[1])
        elif kind == "page":
            self.view().page = int(act[1])
        elif kind == "search":
            view = self.view()
            view.query, view.page = view.typed, 0
        elif kind == "clear":
            self.views["/".join(map(str, self.place))] = View()
        elif kind == "radio":
            self.values["option"] = str(act[1])
        elif kind in ("submit", "draft"):
            _submit(self, self.world.forms[self.place[1]], kind == "draft")
        elif kind == "order":
            _order(self, self.world.catalogue.items[self.place[1]])
        elif kind == "action":
            self.dialog, self.alerts = int(act[1]), []
            self.values = {"choice": self._listing().actions[self.dialog].options[0]}
        elif kind == "dismiss":
            self.dialog = None
        elif kind == "confirm" and self.dialog is not None:
            self.changed[(self.place[1], self.place[2])] = (self.dialog, self.values["choice"])
            self.alerts = [(self.world.words.say("acted", button=self._listing().actions[self.dialog].button), None)]
            self.dialog = None

    def _listing(self) -> Listing:
        return self.world.listings[self.place[1]]

    def _fill(self, act: Act, text: str) -> None:
        if act[0] == "field":
            self.values[str(act[1])] = text
        elif act[0] == "typed":
            self.view().typed = text

    def _select(self, act: Act, option: str) -> None:
        view = self.view()
        if act[0] == "choice" and option in act[2:]:
            self.values[str(act[1])] = option
        elif act[0] == "sort" and option in act[1:]:
            view.sort, view.page = option, 0
        elif act[0] == "narrow" and option in act[1:]:
            view.narrowed, view.page = ("" if option == act[1] else option), 0


_PERFORM = {"click": Session._click, "fill": Session._fill, "select_option": Session._select}


def addresses(world: World) -> dict[Place, str]:
    """The pages that can be reached by address, records aside."""
    found: dict[Place, str] = {("home",): f"{world.host}/", ("catalogue",): f"{world.host}/{world.catalogue.route}"}
    found |= {("list", i): f"{world.host}/{listing.route}" for i, listing in enumerate(world.listings)}
    found |= {("form", i): f"{world.host}/{form.route}" for i, form in enumerate(world.forms)}
    return found | {("locked",): f"{world.host}/{world.locked.route}"}


def condition_holds(form: Form, values: dict[str, str]) -> bool:
    """Whether the field that the form's rule brings up is there."""
    return values.get(form.when_field) == form.when_value


def whole(text: str) -> int:
    """The number that a box holds; nothing or nonsense counts as 1."""
    return int(text) if text.isdigit() else 1


def _submit(session: Session, form: Form, draft: bool) -> None:
    words, values, number = session.world.words, session.values, session.place[1]
    session.alerts = []
    if draft:
        session.alerts = [(words.say("draft", submit=form.submit), f"form:{number}/draft")]
        return
    empty = next((f.label for f in form.fields if f.required and not values[f.label].strip()), None)
    if empty is not None:
        session.alerts = [(words.say("missing", field=empty), f"form:{number}/missing")]
    elif condition_holds(form, values) and not values.get(form.then, "").strip():
        session.alerts = [(words.say("missing", field=form.then), f"form:{number}/missing-then")]
    elif whole(values[form.number]) > form.most:
        session.alerts = [(words.say("limit", field=form.number, most=form.most), f"form:{number}/limit")]
    else:
        waits = whole(values[form.number]) > form.above
        session.created.append({"what": "form", "number": number, "values": dict(values), "waits": waits})
        session._move(("done", "form", number))


def _order(session: Session, item: Item) -> None:
    world, values, number = session.world, session.values, session.place[1]
    quantity = whole(values["quantity"])
    if quantity > item.most:
        text = world.words.say("limit", field=world.words.say("quantity"), most=item.most)
        session.alerts = [(text, f"item:{number}/limit")]
        return
    total = quantity * (item.price + dict(item.options)[values["option"]])
    session.created.append(
        {
            "what": "order",
            "number": number,
            "option": values["option"],
            "quantity": quantity,
            "total": total,
            "waits": total > world.catalogue.above,
        }
    )
    session._move(("done", "order", number))


def shown_rows(session: Session) -> list[int]:
    """The records that the list shows over all its pages, in order."""
    view, listing = session.view(), session._listing()
    rows = list(range(len(listing.records)))
    if view.query:
        column = listing.columns.index(listing.search_column)
        rows = [row for row in rows if view.query.lower() in listing.records[row][column].lower()]
    if view.narrowed:
        rows = [row for row in rows if state_of(session, session.place[1], row) == view.narrowed]
    column = listing.columns.index(view.sort or listing.sorts[0])
    return sorted(rows, key=lambda row: _sort_key(listing.records[row][column]))


def state_of(session: Session, number: int, row: int) -> str:
    """What a record's state column says, which an action may have changed."""
    listing = session.world.listings[number]
    done = session.changed.get((number, row))
    return listing.records[row][2] if done is None else listing.actions[done[0]].result


def _sort_key(value: str) -> tuple[int, str]:
    return (int(value), "") if value.isdigit() else (0, value)
