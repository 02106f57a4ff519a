"""Agents that use a world and leave trajectories: they click through the application, and so every page is its own.

An agent follows a plan towards a goal, takes needless steps on the way, and half of them fail: they press the button
that files nothing, want more than is allowed, pick the wrong row or option, give up at a message. Whether a run
succeeded is read off the application's state at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from generators.draw import Draw
from generators.webworld.app import Session, shown_rows
from generators.webworld.axtree import Act
from generators.webworld.bank import bank
from generators.webworld.ids import TRAJECTORY, row_id
from generators.webworld.model import World

MAX_STATES = 40
"""No plan comes near it; a run that does has lost its way, which is a defect."""


@dataclass(frozen=True)
class Goal:
    """What a run is after. `fail` names the way in which it will miss it, or is empty."""

    kind: str
    target: dict[str, Any]
    fail: str = ""


@dataclass(frozen=True)
class Run:
    """A trajectory in the published schema, and what each of its states tells: fact -> line of the tree."""

    record: dict[str, Any]
    facts: tuple[dict[str, int], ...]
    touched: frozenset[str]
    """Names of the elements that its actions used."""


class Walker:
    """One agent in one session; every method takes one or more steps."""

    def __init__(self, world: World, draw: Draw) -> None:
        self.world, self.draw = world, draw
        self.session = Session(world)
        self.states: list[dict[str, Any]] = []
        self.facts: list[dict[str, int]] = []
        self.touched: set[str] = set()
        self._see(None)

    def _see(self, action: str | None) -> None:
        page = self.session.page
        step = len(self.states)
        assert step < MAX_STATES
        self.states.append(
            {"state_index": step, "step": step, "url": page.url, "action": action, "thought": None}
            | {"accessibility_tree": page.tree}
        )
        self.facts.append(page.facts)

    def think(self, kind: str, **slots: Any) -> None:
        """What the agent says about the action to come."""
        self.states[-1]["thought"] = self.draw.pick(bank("runs")["thoughts"][kind]).format(**slots)

    def do(self, action: str, kind: str, **slots: Any) -> None:
        self.think(kind, **slots)
        self.touched.add(slots.get("name", ""))
        self.session.do(action)
        self._see(action)

    def bid(self, act: Act) -> str:
        return self.session.page.bids[act]

    def click(self, act: Act, name: str, kind: str = "link") -> None:
        self.do(f"click('{self.bid(act)}')", kind, name=name)

    def fill(self, act: Act, name: str, value: str) -> None:
        """Type a value; a slip of the finger comes first now and then."""
        if len(value) > 1 and self.draw.percent(self.world.config.noise // 3):
            self.do(f"fill('{self.bid(act)}', {value[:-1]!r})", "fill", name=name, value=value)
            self.do(f"fill('{self.bid(act)}', {value!r})", "slip", name=name, value=value)
            return
        self.do(f"fill('{self.bid(act)}', {value!r})", "fill", name=name, value=value)

    def select(self, act: Act, name: str, value: str) -> None:
        self.do(f"select_option('{self.bid(act)}', {value!r})", "select", name=name, value=value)

    def named(self, kind: str, name: str) -> Act:
        """The element of the page with this kind and name: ("choice", "Region", ...)."""
        return next(act for act in self.session.page.bids if act[0] == kind and name in act[1:2])

    def tell(self, text: str) -> None:
        self.do(f"send_msg_to_user({text!r})", "tell")

    def stray(self) -> None:
        """Perhaps a needless step, from which the agent returns."""
        if not self.draw.percent(self.world.config.noise):
            return
        page = self.session.page
        kind = self.draw.below(4)
        if kind == 0:
            self.do(f"scroll(0, {self.draw.pick((100, 200, 300, 500))})", "scroll")
        elif kind == 1:
            dead = [line for line in page.lines[1:] if "] heading " in line or "] navigation " in line]
            line = self.draw.pick(dead).strip()
            self.do(f"click('{line[1 : line.index(']')]}')", "dead", name=line.split("'")[1])
        else:
            links = [act for act in page.bids if act[0] == "go"]
            if links:
                act = self.draw.pick(links)
                self.click(act, _name(self.world, act), "wander")
                self.do("go_back()", "back")

    def visit(self, key: str) -> None:
        """From anywhere to a page of the navigation; to a form, by the button of its list where there is one."""
        self.stray()
        owner = next((i for i, listing in enumerate(self.world.listings) if key == f"form:{listing.form}"), None)
        if owner is not None:
            self.visit(f"list:{owner}")
            self.click(_go(key), self.world.listings[owner].new, "press")
            return
        target = _go(key)
        number = next(i for i, menu in enumerate(self.world.menus) if key in menu.pages)
        if target not in self.session.page.bids:
            self.click(("menu", number), self.world.menus[number].label, "menu")
        self.click(target, self.world.title(key))

    def open_row(self, act: Act, name: str) -> None:
        """Page forward until the row is there, and open it."""
        self.stray()
        while act not in self.session.page.bids:
            self.click(self._pager(), self.world.words.say("next"), "page")
        self.click(act, name)

    def _pager(self) -> Act:
        return next(act for act in self.session.page.bids if act[0] == "page")

    def end(self, reached: bool) -> None:
        """The last thought; an agent that is stuck may say so first."""
        stuck = not reached and bool(self.session.alerts)
        if stuck and self.draw.percent(50):
            text = self.draw.pick(bank("runs")["replies"]["stuck"])
            self.do(f"send_msg_to_user({text!r})", "mishap", message=self.session.alerts[0][0])
        self.think("stuck" if stuck or (not reached and self.draw.percent(60)) else "done")


def _go(key: str) -> Act:
    return ("go", *(int(part) if part.isdigit() else part for part in key.split(":")))


def _name(world: World, act: Act) -> str:
    """What a link that leads somewhere is called."""
    place = act[1:]
    if place[0] == "item":
        return world.catalogue.items[int(place[1])].name
    if place[0] == "record":
        return world.listings[int(place[1])].records[int(place[2])][0]
    return world.title(":".join(map(str, place)))


def _order(walker: Walker, goal: Goal) -> None:
    world, target = walker.world, goal.target
    number, option, quantity = target["item"], target["option"], target["quantity"]
    item = world.catalogue.items[number]
    if goal.fail == "option":
        option = walker.draw.pick([label for label, _ in item.options if label != option])
    walker.visit("catalogue")
    walker.open_row(("go", "item", number), item.name)
    if option != item.options[0][0]:
        walker.click(("radio", option), option)
    if quantity != 1:
        walker.fill(("field", "quantity"), world.words.say("quantity"), str(quantity))
    if goal.fail == "stop":
        return
    walker.click(("order",), world.catalogue.order, "press")
    if goal.fail == "limit" and walker.draw.percent(40):
        walker.fill(("field", "quantity"), world.words.say("quantity"), str(item.most))
        walker.click(("order",), world.catalogue.order, "press")


def _file(walker: Walker, goal: Goal) -> None:
    number, wanted = goal.target["form"], goal.target["values"]
    form = walker.world.forms[number]
    walker.visit(f"form:{number}")
    later = not goal.fail and walker.draw.percent(50)
    for label, value in wanted.items():
        if label == form.then and (later or goal.fail in ("quit", "wrong")):
            continue  # runs into the message first, or does not see the field
        field = form.field(label)
        if field is not None and field.kind == "choice":
            if goal.fail == "wrong" and label == form.when_field:
                value = walker.draw.pick([option for option in field.options if option != value])
            walker.select(walker.named("choice", label), label, value)
        else:
            walker.fill(("field", label), label, value)
    if goal.fail == "draft":
        walker.click(("draft",), form.draft or "", "press")
        return
    walker.click(("submit",), form.submit, "press")
    if later:
        walker.fill(("field", form.then), form.then, wanted[form.then])
        walker.click(("submit",), form.submit, "press")


def _act(walker: Walker, goal: Goal) -> None:
    target = goal.target
    listing = walker.world.listings[target["list"]]
    action = listing.actions[target["action"]]
    walker.visit(f"list:{target['list']}")
    walker.open_row(("go", "record", target["list"], target["row"]), listing.records[target["row"]][0])
    if goal.fail == "barred":
        dead = next(line for line in walker.session.page.lines if f"button {action.button!r}" in line).strip()
        walker.do(f"click('{dead[1 : dead.index(']')]}')", "press", name=action.button)
        return
    walker.click(("action", target["action"]), action.button, "press")
    choice = target["choice"]
    if goal.fail == "choice":
        choice = walker.draw.pick([option for option in action.options if option != choice])
    if choice != action.options[0]:
        walker.select(walker.named("choice", "choice"), action.field, choice)
    if goal.fail == "cancel":
        walker.click(("dismiss",), action.cancel, "press")
    else:
        walker.click(("confirm",), action.confirm, "press")


def _look(walker: Walker, goal: Goal) -> None:
    target = goal.target
    listing = walker.world.listings[target["list"]]
    row = target["row"]
    if goal.fail == "row":
        column = listing.columns.index(target["column"])
        wanted = listing.records[row][column]
        row = walker.draw.pick([n for n, other in enumerate(listing.records) if other[column] != wanted])
    walker.visit(f"list:{target['list']}")
    value = listing.records[row][listing.columns.index(listing.search_column)]
    if goal.fail == "search" or walker.draw.percent(35):
        # a name is no code and no person's, so that a search for it finds nothing
        walker.fill(("typed",), "Search", listing.records[row][0] if goal.fail == "search" else value)
        walker.click(("search",), walker.world.words.say("search_button"), "press")
    if goal.fail == "search":
        return
    walker.open_row(("go", "record", target["list"], row), listing.records[row][0])
    walker.tell(listing.records[row][listing.columns.index(target["column"])])


def _arrange(walker: Walker, goal: Goal) -> None:
    listing = walker.world.listings[goal.target["list"]]
    walker.visit(f"list:{goal.target['list']}")
    column = goal.target["column"]
    if goal.fail:
        column = walker.draw.pick([other for other in listing.sorts if other != column])
    act = next(act for act in walker.session.page.bids if act[0] == "sort")
    walker.select(act, walker.world.words.say("sort"), column)


def _narrow(walker: Walker, goal: Goal) -> None:
    listing = walker.world.listings[goal.target["list"]]
    walker.visit(f"list:{goal.target['list']}")
    value = goal.target["value"]
    if goal.fail:
        value = walker.draw.pick([other for other in listing.filter_options if other != value])
    act = next(act for act in walker.session.page.bids if act[0] == "narrow")
    walker.select(act, f"{walker.world.words.say('filter')} {listing.state_column}", value)


def _second(walker: Walker, goal: Goal) -> None:
    listing = walker.world.listings[goal.target["list"]]
    walker.visit(f"list:{goal.target['list']}")
    rows = shown_rows(walker.session)
    if goal.fail:
        walker.tell(listing.records[rows[0]][0])
        return
    walker.click(walker._pager(), walker.world.words.say("next"), "page")
    walker.tell(listing.records[rows[listing.page_size]][0])


def _reach(walker: Walker, goal: Goal) -> None:
    walker.visit(goal.target["page"])


PLANS: dict[str, Callable[[Walker, Goal], None]] = {
    "order": _order,
    "file": _file,
    "act": _act,
    "look": _look,
    "arrange": _arrange,
    "narrow": _narrow,
    "second": _second,
    "reach": _reach,
}


def reached(session: Session, goal: Goal) -> bool:
    """Whether the application, as it is now, is as the goal wants it."""
    world, target = session.world, goal.target
    if goal.kind == "order":
        wanted = (target["item"], target["option"], target["quantity"])
        return any((c["number"], c.get("option"), c.get("quantity")) == wanted for c in session.created)
    if goal.kind == "file":
        form = world.forms[target["form"]]
        full = {field.label: field.default for field in form.fields} | target["values"]
        return any(c["what"] == "form" and _same(c["values"], full) for c in session.created)
    if goal.kind == "act":
        wanted = (target["action"], target["choice"])
        return session.changed.get((target["list"], target["row"])) == wanted
    if goal.kind == "look":
        listing = world.listings[target["list"]]
        return session.said == [listing.records[target["row"]][listing.columns.index(target["column"])]]
    if goal.kind == "second":
        listing = world.listings[target["list"]]
        rows = sorted_rows(world, target["list"])
        return session.said == [listing.records[rows[listing.page_size]][0]]
    if goal.kind == "reach":
        return session.place[0] != "locked"
    view = session.views.get(f"list/{target['list']}")
    if view is None:
        return False
    return view.sort == target["column"] if goal.kind == "arrange" else view.narrowed == target["value"]


def _same(values: dict[str, str], wanted: dict[str, str]) -> bool:
    return all(values.get(label) == value for label, value in wanted.items())


def sorted_rows(world: World, number: int) -> list[int]:
    """The records of a list as it is shown at first."""
    session = Session(world)
    session.place = ("list", number)
    return shown_rows(session)


def walk(world: World, goal: Goal, number: int) -> Run:
    """One run with its trajectory."""
    draw = Draw(world.seed, f"run {number}")
    walker = Walker(world, draw)
    PLANS[goal.kind](walker, goal)
    success = reached(walker.session, goal)
    walker.end(success)
    name = row_id(world.seed, number, TRAJECTORY)
    for state in walker.states:
        state["screenshot"] = f"screenshots/{name}/{state['step']}.png"
    record = {
        "id": name,
        "domain": world.domain,
        "environment": world.environment,
        "goal": goal_text(world, goal, draw),
        "outcome": "success" if success else "failure",
        "start_url": walker.states[0]["url"],
        "states": walker.states,
    }
    return Run(record, tuple(walker.facts), frozenset(walker.touched - {""}))


def goal_text(world: World, goal: Goal, draw: Draw) -> str:
    target = goal.target
    slots: dict[str, Any] = dict(target)
    if "list" in target:
        listing = world.listings[target["list"]]
        slots |= {"list": listing.title, "noun": listing.noun}
        if "row" in target:
            slots["record"] = listing.records[target["row"]][0]
        if goal.kind == "act":
            action = listing.actions[target["action"]]
            slots |= {"does": action.does, "field": action.field}
        if goal.kind == "narrow":
            slots["column"] = listing.state_column
    if goal.kind == "order":
        shelf = world.catalogue
        slots |= {"item": shelf.items[target["item"]].name, "catalogue": shelf.title, "group": shelf.group}
    elif goal.kind == "file":
        pairs = [bank("runs")["values"].format(field=k, value=v) for k, v in target["values"].items()]
        slots |= {"form": world.forms[target["form"]].title, "values": ", ".join(pairs)}
    elif goal.kind == "reach":
        slots["page"] = world.title(target["page"])
    return draw.pick(bank("runs")["goals"][goal.kind]).format(**slots)


def runs(world: World) -> tuple[Run, ...]:
    """All trajectories of a world, half of them successful, in an order that tells nothing."""
    from generators.webworld.goals import goals

    made = [walk(world, goal, number) for number, goal in enumerate(goals(world))]
    return tuple(made)
