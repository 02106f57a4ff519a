"""What the agents of a world are after: first whatever shows its rules, then more of the same, half of it in vain."""

from __future__ import annotations

from generators.draw import Draw
from generators.webworld.bank import bank
from generators.webworld.explorer import Goal
from generators.webworld.model import Form, World


def goals(world: World) -> list[Goal]:
    """As many goals as the world has trajectories, in random order."""
    draw = Draw(world.seed, "goals")
    half = world.config.trajectories // 2
    maker = _Maker(world, draw)
    good = maker.successes()
    bad = maker.failures()
    while len(good) < half:
        good += maker.successes()
    while len(bad) < half:
        bad += maker.failures()
    return draw.shuffled(good[:half] + bad[:half])


class _Maker:
    def __init__(self, world: World, draw: Draw) -> None:
        self.world, self.draw = world, draw

    def successes(self) -> list[Goal]:
        """One round: an order, a form with its rule, an action, then the rest in random order."""
        draw, world = self.draw, self.world
        lists = range(len(world.listings))
        first = [self.order(""), self.file(draw.below(len(world.forms)), ""), self.act(0, 0, "")]
        rest = [self.arrange(number, "") for number in lists] + [self.narrow(number, "") for number in lists]
        rest += [self.look(number, "") for number in lists] + [self.order("")]
        rest += [self.file(number, "") for number in range(len(world.forms))]
        rest += [
            self.act(number, place, "") for number in lists for place in range(len(world.listings[number].actions))
        ]
        rest += [goal for number in lists if (goal := self.second(number, ""))]
        return first + draw.shuffled(rest)

    def failures(self) -> list[Goal]:
        """One round: the closed page, too large an order, a form that is not filed, then the rest."""
        draw, world = self.draw, self.world
        lists = range(len(world.listings))
        first = [Goal("reach", {"page": "locked"}, "locked"), self.order("limit")]
        first += [self.file(number, "draft" if form.draft else "most") for number, form in enumerate(world.forms)]
        rest = [self.file(draw.below(len(world.forms)), way) for way in ("quit", "wrong", "most")]
        rest += [goal for number in lists if (goal := self.barred(number))]
        rest += [self.order("option"), self.order("stop"), self.look(draw.pick(lists), "search")]
        rest += [self.look(number, "search") for number in lists]
        rest += [self.act(number, 0, draw.pick(("cancel", "choice"))) for number in lists]
        rest += [self.arrange(draw.pick(lists), "column"), self.look(draw.pick(lists), "row")]
        rest += [goal for number in lists if (goal := self.second(number, "first"))]
        return first + draw.shuffled(rest)

    def order(self, fail: str) -> Goal:
        draw, shelf = self.draw, self.world.catalogue
        number = draw.below(len(shelf.items))
        item = shelf.items[number]
        quantity = item.most + draw.between((1, 20)) if fail == "limit" else draw.between((1, item.most))
        option = draw.pick(item.options[1:] if fail == "" else item.options)[0]
        return Goal("order", {"item": number, "option": option, "quantity": quantity}, fail)

    def file(self, number: int, fail: str) -> Goal:
        """Values for the required fields and some others; always the rule's field, and its value unless `most`."""
        draw, form = self.draw, self.world.forms[number]
        values: dict[str, str] = {}
        for field in form.fields:
            if field.label == form.when_field:
                values[field.label] = form.when_value
                values[form.then] = self.text(form.then)
            elif field.label == form.number:
                values[field.label] = str(self.amount(form, fail))
            elif field.required:
                values[field.label] = self.text(field.label)
            elif field.kind == "choice" and draw.percent(25):
                values[field.label] = draw.pick([option for option in field.options if option != field.default])
        return Goal("file", {"form": number, "values": values}, fail)

    def amount(self, form: Form, fail: str) -> int:
        if fail == "most":
            return form.most + self.draw.between((1, 30))
        if self.draw.percent(50):
            return self.draw.between((form.above + 1, form.most))
        return self.draw.between((2, form.above))

    def text(self, label: str) -> str:
        """Something to type."""
        words = bank("words")
        return f"{self.draw.pick(words['materials'])} {label.split()[-1].lower()} {self.draw.between((10, 99))}"

    def act(self, number: int, place: int, fail: str) -> Goal:
        listing = self.world.listings[number]
        action = listing.actions[place]
        rows = [n for n, record in enumerate(listing.records) if (record[2] == action.barred) == (fail == "barred")]
        row, choice = self.draw.pick(rows), self.draw.pick(action.options)
        return Goal("act", {"list": number, "row": row, "action": place, "choice": choice}, fail)

    def barred(self, number: int) -> Goal | None:
        places = [n for n, action in enumerate(self.world.listings[number].actions) if action.barred is not None]
        return self.act(number, self.draw.pick(places), "barred") if places else None

    def look(self, number: int, fail: str) -> Goal:
        listing = self.world.listings[number]
        row = self.draw.below(len(listing.records))
        # the choice column may say the same of all records; codes and counts never do
        column = self.draw.pick((listing.columns[1], listing.columns[4]) if fail else listing.columns[1:])
        return Goal("look", {"list": number, "row": row, "column": column}, fail)

    def arrange(self, number: int, fail: str) -> Goal:
        listing = self.world.listings[number]
        return Goal("arrange", {"list": number, "column": self.draw.pick(listing.sorts[1:])}, fail)

    def narrow(self, number: int, fail: str) -> Goal:
        listing = self.world.listings[number]
        return Goal("narrow", {"list": number, "value": self.draw.pick(listing.filter_options)}, fail)

    def second(self, number: int, fail: str) -> Goal | None:
        listing = self.world.listings[number]
        if len(listing.records) <= listing.page_size:
            return None
        return Goal("second", {"list": number}, fail)
