"""A world from a seed: which pages there are, what they are called, and what rules they follow."""

from __future__ import annotations

from collections.abc import Sequence

from generators.draw import Draw
from generators.webworld.bank import bank
from generators.webworld.config import SPLITS, WorldConfig, config_from, split_of
from generators.webworld.model import (
    Action,
    Catalogue,
    Field,
    Form,
    Item,
    Listing,
    Locked,
    Menu,
    Wording,
    World,
    with_article,
)


def generate_world(seed: int, config: str | WorldConfig = "standard") -> World:
    """The application of a seed. Kinds take turns, so that consecutive seeds cover all of them."""
    return _Builder(seed, config_from(config)).world()


def foils(seed: int, config: str | WorldConfig, count: int = 3) -> tuple[World, ...]:
    """The worlds whose facts are this one's false premises: the next seeds of the same kind.

    They stay inside the split; which they are depends on the seed alone and not on the data set that is written.
    """
    made = config_from(config)
    seeds = _split_range(seed)
    step = len(made.kinds)
    size = len(seeds) // step * step
    return tuple(generate_world(seeds.start + (seed - seeds.start + step * (k + 1)) % size, made) for k in range(count))


def _split_range(seed: int) -> range:
    return SPLITS[split_of(seed)]


class _Builder:
    """Draws names so that no two things of a world share one."""

    def __init__(self, seed: int, config: WorldConfig) -> None:
        split_of(seed)
        self.seed, self.config = seed, config
        self.kind = config.kinds[seed % len(config.kinds)]
        self.bank = bank("kinds")[self.kind]
        self.words = bank("words")
        self.draw = Draw(seed, f"world {self.kind}")
        self.used: set[str] = set()

    def fresh(self, items: Sequence[str]) -> str:
        """An unused one of `items`."""
        for name in self.draw.shuffled(items):
            if name.lower() not in self.used:
                self.used.add(name.lower())
                return name
        raise AssertionError(f"bank too small: {items[:3]}")

    def pair(self, firsts: Sequence[str], seconds: Sequence[str]) -> str:
        """An unused name of two parts."""
        while True:
            name = f"{self.draw.pick(firsts)} {self.draw.pick(seconds)}"
            if name.lower() not in self.used:
                self.used.add(name.lower())
                return name

    def team(self) -> str:
        return self.pair(self.words["modifiers"], self.words["teams"])

    def person(self) -> str:
        return f"{self.draw.pick(self.words['first_names'])} {self.draw.pick(self.words['last_names'])}"

    def wording(self) -> Wording:
        texts = {name: self.draw.pick(ways) for name, ways in bank("messages").items()}
        self.used |= {text.lower() for text in texts.values()}
        return Wording(tuple(texts.items()))

    def world(self) -> World:
        draw, words = self.draw, self.words
        wording = self.wording()
        self.used |= {"name", "next", "home"}
        site = f"{draw.pick(words['modifiers'])} {draw.pick(self.bank['names'])}"
        forms = tuple(self.form() for _ in range(draw.between(self.config.forms)))
        listings = tuple(self.listing(number, forms) for number in range(draw.between(self.config.lists)))
        catalogue = self.catalogue()
        locked = Locked(
            self.fresh(self.bank["locked"]),
            self.route("closed"),
            self.pair(words["modifiers"], words["roles"]),
            self.team(),
        )
        return World(
            seed=self.seed,
            config=self.config,
            kind=self.kind,
            domain=self.bank["domain"],
            what=draw.pick(self.bank["what"]),
            site=site,
            host=f"http://{site.lower().replace(' ', '-')}.test",
            frame=self.bank["frame"] if self.config.chrome or not self.bank["frame"] else "a",
            user=self.person(),
            role=self.pair(words["modifiers"], words["roles"]),
            desk=self.team(),
            menus=self.menus(listings, forms),
            catalogue=catalogue,
            item_word=self.bank["item_word"],
            listings=listings,
            forms=forms,
            locked=locked,
            rows_as=draw.pick(("row", "listitem", "article")),
            words=wording,
        )

    def route(self, name: str) -> str:
        return f"{name.lower().replace(' ', '-')}-{self.draw.between((10, 99))}"

    def menus(self, listings: Sequence[Listing], forms: Sequence[Form]) -> tuple[Menu, ...]:
        """Every page in one menu; the pages are dealt out at random, one at least to each."""
        pages = ["catalogue", *(f"list:{i}" for i in range(len(listings))), "locked"]
        attached = {listing.form for listing in listings}
        pages += [f"form:{i}" for i in range(len(forms)) if i not in attached]
        pages = self.draw.shuffled(pages)
        count = 2 if len(pages) < 5 else 3
        groups: list[list[str]] = [[page] for page in pages[:count]]
        for page in pages[count:]:
            groups[self.draw.below(count)].append(page)
        return tuple(Menu(self.fresh(self.bank["menus"]), tuple(group)) for group in groups)

    def choice_field(self, base: str, required: bool) -> Field:
        draw = self.draw
        label = base if draw.percent(40) else f"{draw.pick(self.words['angles'])} {base}"
        options = tuple(draw.sample(self.words["choices"][base], draw.between(self.config.options)))
        self.used.add(label.lower())
        return Field(label, "choice", options, draw.pick(options), required)

    def form(self) -> Form:
        draw, words = self.draw, self.words
        count = draw.between(self.config.fields)
        choices = draw.sample(self.bank["choices"], max(1, min(6, count // 2)))
        fields = [self.choice_field(base, False) for base in choices]
        number = self.text_label(self.bank["numbers"])
        fields.append(Field(number, "number", (), "1", False))
        texts = [Field(self.text_label(words["texts"]), "text") for _ in range(max(1, count - len(fields)))]
        must = draw.below(len(texts))
        fields += [Field(f.label, "text", (), "", i == must) for i, f in enumerate(texts)]
        fields = draw.shuffled(fields)
        trigger = draw.pick([field for field in fields if field.kind == "choice"])
        value = draw.pick([option for option in trigger.options if option != trigger.default])
        most = draw.between((12, 95))
        noun = self.fresh(self.bank["forms"])
        return Form(
            title=f"{draw.pick(self.bank['form_verbs'])} {noun}",
            route=self.route(noun),
            fields=tuple(fields),
            submit=self.fresh(words["submits"]),
            draft=self.fresh(words["drafts"]) if draw.percent(70) else None,
            cancel=draw.pick(words["cancels"]),
            when_field=trigger.label,
            when_value=value,
            then=self.text_label(words["texts"]),
            number=number,
            above=draw.between((3, most - 4)),
            most=most,
            approver=self.team(),
            stage=self.fresh(words["stages"]),
            waiting=self.fresh(words["stages"]),
            done=self.draw.pick(bank("messages")["filed"]),
        )

    def text_label(self, bases: Sequence[str]) -> str:
        if self.draw.percent(35):
            return self.fresh(bases)
        return self.pair(self.words["angles"], bases)

    def listing(self, number: int, forms: Sequence[Form]) -> Listing:
        draw, words = self.draw, self.words
        place = draw.pick(
            [i for i, name in enumerate(self.bank["lists"]) if not any(name.lower() in used for used in self.used)]
        )
        title = self.bank["lists"][place]
        self.used.add(title.lower())
        if draw.percent(50):
            title = f"{draw.pick(words['modifiers'])} {title}"
        code, choice, person, count = (
            self.fresh(words["columns"][kind]) for kind in ("code", "choice", "person", "count")
        )
        values = words["column_values"][choice]
        prefix = "".join(chr(65 + draw.below(26)) for _ in range(2))
        counts = draw.sample(range(3, 400), 24)
        codes = draw.sample(range(100, 999), 24)
        records = tuple(
            (name, f"{prefix}{codes[i]}", draw.pick(values), self.person(), str(counts[i]))
            for i, name in enumerate(self.names(draw.between(self.config.rows), self.bank["records"]))
        )
        noun = self.bank["record_nouns"][place]
        has_form = number < len(forms) and (number == 0 or draw.percent(60))
        sorts = draw.shuffled(["Name", code, person, count])[: 3 if self.config.chrome else 2]
        return Listing(
            title=title,
            route=self.route(title),
            noun=noun,
            columns=("Name", code, choice, person, count),
            records=records,
            page_size=draw.between(self.config.page_size),
            sorts=tuple(sorts),
            filter_options=tuple(dict.fromkeys(record[2] for record in records)),
            search_column=draw.pick((code, person)),
            form=number if has_form else None,
            new=self.pair(words["starts"], (noun.title(), "Entry", "One")),
            actions=self.actions(noun, [record[2] for record in records]),
        )

    def names(self, count: int, bases: Sequence[str]) -> list[str]:
        found = []
        for base in self.draw.sample(bases, min(count, len(bases))):
            name = base if self.draw.percent(50) else f"{self.draw.pick(self.words['modifiers'])} {base}"
            found.append(name)
            self.used.add(name.lower())
        return found

    def actions(self, noun: str, states: Sequence[str]) -> tuple[Action, ...]:
        draw, words = self.draw, self.words
        made = []
        rare = [state for state in dict.fromkeys(states) if 2 * states.count(state) <= len(states)]
        for spec in draw.sample(bank("actions"), 2 if self.config.chrome else 1):
            button = self.fresh(spec["buttons"])
            made.append(
                Action(
                    button=button,
                    deed=spec["does"],
                    does=spec["does"].format(a_noun=with_article(noun)),
                    title=button,
                    field=spec["field"],
                    options=tuple(draw.sample(spec["options"], draw.between(self.config.options))),
                    confirm=self.fresh(words["confirms"]),
                    cancel=draw.pick(words["cancels"]),
                    result=self.fresh(words["results"]),
                    barred=draw.pick(rare) if rare and draw.percent(60) else None,
                )
            )
        return tuple(made)

    def catalogue(self) -> Catalogue:
        draw, words = self.draw, self.words
        group = self.fresh(self.bank["option_groups"])
        title = self.fresh(self.bank["catalogue"])
        items = []
        count = draw.between(self.config.rows)
        things = draw.sample(self.bank["things"], count if self.config.plain else count * 2 // 3)
        for number in range(count):  # large catalogues hold things that differ in material only
            name = self.pair(words["materials"], [things[number % len(things)]])
            colours = draw.sample(words["colours"], 3)
            adds = [0, *draw.sample(range(4, 90), 2)]
            items.append(
                Item(name, draw.between((21, 940)), tuple(zip(colours, adds, strict=True)), draw.between((4, 60)))
            )
        return Catalogue(
            title=title,
            route=self.route(title),
            items=tuple(items),
            page_size=draw.between(self.config.page_size) + 1,
            group=group,
            order=self.fresh(words["orders"]),
            above=draw.between((30, 290)) * 10,
            approver=self.team(),
            stage=self.fresh(words["stages"]),
            waiting=self.fresh(words["stages"]),
            done=draw.pick(bank("messages")["placed"]),
        )
