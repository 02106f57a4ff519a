"""What a world consists of. Everything here is fixed by the seed; what changes while it is used is in `app`."""

from __future__ import annotations

from dataclasses import dataclass

from generators.webworld.config import WorldConfig


@dataclass(frozen=True)
class Field:
    """An input of a form. `kind` is text, choice or number; a text has no default, a number starts at 1."""

    label: str
    kind: str
    options: tuple[str, ...] = ()
    default: str = ""
    required: bool = False


@dataclass(frozen=True)
class Form:
    """A form that creates a record, with its rules.

    Choosing `when_value` in `when_field` brings up the field `then`, which must then be filled in. A `number` above
    `most` is refused; one above `above` goes through, but waits for `approver`. `draft`, when there is one, is a trap:
    it looks like the button that files the form and does not file anything.
    """

    title: str
    route: str
    fields: tuple[Field, ...]
    submit: str
    draft: str | None
    cancel: str
    when_field: str
    when_value: str
    then: str
    number: str
    above: int
    most: int
    approver: str
    stage: str
    waiting: str
    done: str

    def field(self, label: str) -> Field | None:
        return next((field for field in self.fields if field.label == label), None)


@dataclass(frozen=True)
class Action:
    """A button of every record of a list. It opens a dialog with one choice; confirming sets the record's `column`."""

    button: str
    deed: str
    """What it does, whatever the records are called: "put {a_noun} on hold"."""
    does: str
    title: str
    field: str
    options: tuple[str, ...]
    confirm: str
    cancel: str
    result: str
    barred: str | None
    """Records whose state column has this value have the button switched off."""


@dataclass(frozen=True)
class Listing:
    """A list of records. Columns: name, code, choice, person, count; the search looks at one of them only."""

    title: str
    route: str
    noun: str
    columns: tuple[str, ...]
    records: tuple[tuple[str, ...], ...]
    page_size: int
    sorts: tuple[str, ...]
    filter_options: tuple[str, ...]
    search_column: str
    form: int | None
    new: str
    actions: tuple[Action, ...]

    @property
    def state_column(self) -> str:
        """The column that actions change and that the list can be narrowed by."""
        return self.columns[2]


@dataclass(frozen=True)
class Item:
    """Something that can be ordered: at most `most` at once, with one of `options` (label, what it adds)."""

    name: str
    price: int
    options: tuple[tuple[str, int], ...]
    most: int


@dataclass(frozen=True)
class Catalogue:
    """Items with prices in whole dollars. Orders whose total is above `above` wait for `approver`."""

    title: str
    route: str
    items: tuple[Item, ...]
    page_size: int
    group: str
    order: str
    above: int
    approver: str
    stage: str
    waiting: str
    done: str


@dataclass(frozen=True)
class Locked:
    """A page that the signed-in user may not see."""

    title: str
    route: str
    role: str
    contact: str


@dataclass(frozen=True)
class Menu:
    """A menu of the navigation; `pages` are keys: catalogue, list:0, form:1, locked."""

    label: str
    pages: tuple[str, ...]


@dataclass(frozen=True)
class Wording:
    """Which of several wordings the application uses for a message, by name of the message."""

    texts: tuple[tuple[str, str], ...]

    def say(self, name: str, **slots: object) -> str:
        return dict(self.texts)[name].format(**slots)


@dataclass(frozen=True)
class World:
    """One customised application."""

    seed: int
    config: WorldConfig
    kind: str
    domain: str
    what: str
    """How its users call it: "our service desk portal"."""
    site: str
    host: str
    frame: str
    """Prefix letter of the element ids of the main content."""
    user: str
    role: str
    desk: str
    """The team that answers questions, named on the start page."""
    menus: tuple[Menu, ...]
    catalogue: Catalogue
    item_word: str
    listings: tuple[Listing, ...]
    forms: tuple[Form, ...]
    locked: Locked
    rows_as: str
    """How lists are laid out: row, listitem or article."""
    words: Wording

    def title(self, page: str) -> str:
        """The title of a page, by its key."""
        name, _, number = page.partition(":")
        if name == "home":
            return self.site
        if name == "catalogue":
            return self.catalogue.title
        if name == "locked":
            return self.locked.title
        return (self.listings if name == "list" else self.forms)[int(number)].title

    def menu_of(self, page: str) -> Menu:
        """The menu that holds a page."""
        return next(menu for menu in self.menus if page in menu.pages)

    @property
    def environment(self) -> str:
        return f"webworld-{self.kind}"


def with_article(noun: str) -> str:
    """ "an order", "a case"."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
