"""Accessibility trees as BrowserGym flattens them, with what each element does and what each line tells.

A line is `[bid] role 'name', property=value`, indented by tabs; names are written as Python literals, so that one with
a single quote in it stands in double quotes. A bid begins with the letter of its frame when it is inside one.
"""

from __future__ import annotations

Act = tuple[str | int, ...]
"""What an element does, such as ("go", "list", 0) or ("field", "Region")."""


class Page:
    """A rendered page: lines, the act of every live element, and the line that each fact stands on."""

    __slots__ = ("_next", "acts", "bids", "facts", "frame", "lines", "title", "url")

    def __init__(self, first: int, title: str, url: str) -> None:
        self.lines: list[str] = [f"RootWebArea {title!r}, focused, url={url!r}"]
        self.acts: dict[str, Act] = {}
        self.bids: dict[Act, str] = {}
        self.facts: dict[str, int] = {}
        self.frame = ""
        self.title, self.url = title, url
        self._next = first

    def add(
        self, depth: int, role: str, name: str, rest: str = "", *, act: Act | None = None, fact: str | None = None
    ) -> None:
        """One element with an id. `rest` is what stands behind the name."""
        number = self._next
        self._next = number + 1 + (number * 40503 >> 5) % 4
        bid = f"{self.frame}{number}"
        if act is not None:
            self.acts[bid] = act
            self.bids.setdefault(act, bid)
        if fact is not None:
            self.facts[fact] = len(self.lines)
        self.lines.append(f"{TABS[depth]}[{bid}] {role} {name!r}{rest}")

    def text(self, depth: int, words: str, *, fact: str | None = None, role: str = "StaticText") -> None:
        """A line without an id, which nothing can be done to."""
        if fact is not None:
            self.facts[fact] = len(self.lines)
        self.lines.append(f"{TABS[depth]}{role} {words!r}")

    def tell(self, fact: str) -> None:
        """The line that was added last tells this, too."""
        self.facts[fact] = len(self.lines) - 1

    @property
    def tree(self) -> str:
        return "\n".join(self.lines)


TABS = tuple("\t" * depth for depth in range(16))
