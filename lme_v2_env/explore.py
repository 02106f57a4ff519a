"""What a policy can look up in a memory: searches, pages, matching lines; and the context made of the states it kept.

Everything here is a function of the trajectories and what was asked. Trajectories are called t1, t2... in haystack
order: a small model copies `t12:4` without a slip, and no id of the data set reaches it.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby

from lme_v2_env.actions import Span
from lme_v2_env.memory.api import ContextItem, Inserted, RetrievalMemory
from lme_v2_env.memory.events import Event
from lme_v2_env.memory.index import STOP_WORDS
from lme_v2_env.memory.library import EVENTS, HINTS, PROCEDURES, SLICES
from lme_v2_env.memory.notes import Note
from lme_v2_env.memory.slices import NOISE, plain_line, words
from lme_v2_env.pattern import BadPattern, compiled, matching
from lme_v2_env.trajectory import Trajectory

HITS = 5
"""Results that a search shows."""

SNIPPET_LINES = 3
LINE_CHARS = 200
"""Longer lines of a page are cut in snippets and pages; `match` shows them whole."""

PATH_CHARS = 80
SUMMARY_GOALS = 6
SUMMARY_TITLES = 8

State = tuple[str, int]
"""A state by trajectory id and index."""


class NoSuch(ValueError):
    """Something that the agent named is not there; the message tells it."""


@dataclass(frozen=True, slots=True)
class Page:
    """A state as lines that carry text, each with its words."""

    title: str
    path: str
    lines: tuple[str, ...]
    words: tuple[frozenset[str], ...]


class Explorer:
    """One memory, shared by all rollouts that ask about it: nothing here changes after it was made.

    `memory` holds all four pools. `notes` of the agent never touch it.
    """

    def __init__(self, memory: RetrievalMemory) -> None:
        memory.prepare()
        self.memory = memory
        self.runs = tuple(memory.inserted.values())
        self._numbers = {kept.id: number for number, kept in enumerate(self.runs, 1)}
        self.page = lru_cache(4096)(self._read)

    @property
    def states(self) -> int:
        return sum(kept.states for kept in self.runs)

    @cached_property
    def summary(self) -> str:
        """What the memory holds: sizes, some goals, the titles seen most."""
        done = sum(kept.outcome == "success" for kept in self.runs)
        titles: Counter[str] = Counter()
        for kept in self.runs:
            titles.update({self.page(kept.id, index).title for index in range(kept.states)} - {""})
        common = [f"'{title[:60]}'" for title, _ in sorted(titles.items(), key=lambda pair: (-pair[1], pair[0]))]
        count = len(self.runs)
        picks = sorted({round(i * (count - 1) / max(1, min(SUMMARY_GOALS, count) - 1)) for i in range(SUMMARY_GOALS)})
        goals = [f"- {self.handle(self.runs[i])}: {_one_line(self.runs[i].goal, 100)}" for i in picks if i < count]
        return "\n".join(
            [
                f"{count} runs (t1 to t{count}), {self.states} states; {done} runs reached their goal.",
                f"Pages seen by most runs: {', '.join(common[:SUMMARY_TITLES])}.",
                "Goals of some runs:",
                *goals,
            ]
        )

    def handle(self, kept: Inserted) -> str:
        return f"t{self._numbers[kept.id]}"

    def run(self, handle: str) -> Inserted:
        """Raises `NoSuch`."""
        number = int(handle.removeprefix("t"))
        if not 1 <= number <= len(self.runs):
            raise NoSuch(f"there is no trajectory {handle}: they are t1 to t{len(self.runs)}.")
        return self.runs[number - 1]

    def named(self, spans: Iterable[Span]) -> list[State]:
        """The states of spans, each once. Raises `NoSuch`."""
        found: dict[State, None] = {}
        for span in spans:
            kept = self.run(span.trajectory)
            first, last = (0, kept.states - 1) if span.first is None else (span.first, span.last or span.first)
            if last >= kept.states:
                raise NoSuch(f"{span.trajectory} has no state {last}: its states are 0 to {kept.states - 1}.")
            found |= dict.fromkeys((kept.id, index) for index in range(first, last + 1))
        return list(found)

    def refs(self, states: Sequence[State]) -> str:
        """`t3:2-4, t5:1`."""
        parts = []
        for kept, span in self.spans(states):
            parts.append(f"{self.handle(kept)}:{span[0]}" + (f"-{span[-1]}" if len(span) > 1 else ""))
        return ", ".join(parts)

    def spans(self, states: Sequence[State]) -> list[tuple[Inserted, range]]:
        """Neighbouring states as ranges; trajectories in the order of their first mention, states in page order."""
        order = list(dict.fromkeys(name for name, _ in states))
        found = []
        for name in order:
            indices = sorted({index for other, index in states if other == name})
            for _, group in groupby(enumerate(indices), lambda pair: pair[1] - pair[0]):
                part = [index for _, index in group]
                found.append((self.memory.inserted[name], range(part[0], part[-1] + 1)))
        return found

    def context(self, states: Sequence[State]) -> list[ContextItem]:
        """The kept states as the reader gets them, trajectories by the names that notes call them, too."""
        items: list[ContextItem] = []
        for rank, (kept, span) in enumerate(self.spans(states), 1):
            items += self.memory.slice_items(kept, span, None, rank, self.handle(kept))
        return items

    def search_states(self, query: str) -> str:
        """The states most like the query; states that would look the same are one result."""
        asked = _asked(query)
        shown: dict[str, list[State]] = {}
        for kept, hit in self._search(SLICES, query, 4 * HITS):
            look = self._snippet(self.page(kept.id, hit.entry), asked)
            shown.setdefault(look, []).append((kept.id, hit.entry))
        results = []
        for number, (look, states) in enumerate(list(shown.items())[:HITS], 1):
            others = f" (the same: {self._refs_flat(states[1:4])})" if len(states) > 1 else ""
            kept = self.memory.inserted[states[0][0]]
            results.append(f"{number}. {self.handle(kept)}:{states[0][1]}{others} {look}")
        return "\n".join(results) or "Nothing was found."

    def search_events(self, query: str) -> str:
        """What actions did, as written at insertion."""
        asked = _asked(query)
        results = []
        for number, (kept, hit) in enumerate(self._search(EVENTS, query, HITS), 1):
            event = Event(**kept.records[EVENTS][hit.entry])
            lines = event.change.split("\n")
            best = _best(lines, [frozenset(words(line)) for line in lines], asked, SNIPPET_LINES)
            head = f"{self.handle(kept)}:{event.before}-{event.before + 1} {_action(event.action)}"
            results.append("\n".join([f"{number}. {head}", *(f"   {line}" for line in best)]))
        return "\n".join(results) or "Nothing was found."

    def search_notes(self, query: str) -> str:
        """Procedures and hints."""
        results = []
        for pool in (PROCEDURES, HINTS):
            for kept, _ in self._search(pool, query, 2):
                note = Note(**kept.records[pool][0])
                head = f"{self.handle(kept)} {pool} ({kept.outcome}): {_one_line(note.title, 120)}"
                lines = [_one_line(_without_ids(line), LINE_CHARS) for line in note.content.split("\n")[:8]]
                results.append("\n".join([head, *(f"   {line}" for line in lines)]))
        return "\n".join(results) or "Nothing was found."

    def overview(self, handle: str) -> str:
        """One run: its goal, how it ended, what led to which page."""
        kept = self.run(handle)
        lines = [f"{handle}: {_one_line(kept.goal, 300)} ({kept.outcome}, {kept.states} states)"]
        for index in range(kept.states):
            page = self.page(kept.id, index)
            by = f" after {_action(kept.actions[index - 1])}" if index and kept.actions[index - 1] else ""
            lines.append(f"{handle}:{index} '{page.title[:60]}' {page.path}{by}")
        return "\n".join(lines)

    def pages(self, span: Span, line: int, limit: int) -> str:
        """The lines of some states from `line` of the first on, at most `limit` characters; how to go on when cut."""
        text: list[str] = []
        room = limit - 80  # for the line on how to go on
        for name, index in self.named([span]):
            handle = self.handle(self.memory.inserted[name])
            page = self.page(name, index)
            head = f"{handle}:{index} '{page.title}' {page.path} ({len(page.lines)} lines)"
            text.append(head)
            room -= len(head) + 1
            for number, content in enumerate(page.lines[line - 1 :], line):
                shown = content[:LINE_CHARS]
                if room < len(shown) + 1:
                    text.append(f"... cut; open({handle}:{index}, line={number}) goes on")
                    return "\n".join(text)
                text.append(shown)
                room -= len(shown) + 1
            line = 1
        return "\n".join(text)

    def match(self, handle: str, pattern: str) -> str:
        """Lines of a run that match, each once with all its states. Raises `BadPattern` and `NoSuch`."""
        kept = self.run(handle)
        found: dict[str, list[int]] = {}
        safe = compiled(pattern)
        lines = ((index, line) for index in range(kept.states) for line in self._searchable(kept, index))
        for index, line in matching(safe, lines):
            found.setdefault(line, []).append(index)
        if not found:
            return f"No line of {handle} matches."
        return "\n".join(f"{handle}:{_numbers(indices)} {line}" for line, indices in found.items())

    def _searchable(self, kept: Inserted, index: int) -> list[str]:
        page = self.page(kept.id, index)
        reached = [f"reached by {_action(kept.actions[index - 1])}"] if index and kept.actions[index - 1] else []
        return [f"'{page.title}' {page.path}", *reached, *page.lines]

    def _search(self, pool: str, query: str, top: int) -> list:
        memory = self.memory
        embedder = memory.library.embedder if memory.config.mode != "bm25" else None
        return memory.search(pool, query, embedder.query(query) if embedder else None, top)

    def _refs_flat(self, states: Sequence[State]) -> str:
        return ", ".join(f"{self.handle(self.memory.inserted[name])}:{index}" for name, index in states)

    def _snippet(self, page: Page, asked: frozenset[str]) -> str:
        best = _best(page.lines, page.words, asked, SNIPPET_LINES)
        return "\n".join([f"'{page.title[:80]}' {page.path}", *(f"   {line[:LINE_CHARS]}" for line in best)])

    def _read(self, trajectory_id: str, index: int) -> Page:
        kept = self.memory.inserted[trajectory_id]
        tree = zlib.decompress(kept.trees[index]).decode()
        title = re.match(r"\s*RootWebArea '([^']*)'", tree)
        found = [line for line in map(plain_line, tree.split("\n")) if "'" in line and not line.endswith(" ''")]
        lines = tuple(dict.fromkeys(found))
        url = kept.heads[index].partition("Address: ")[2].partition("\n")[0]
        path = re.sub(r"^[a-z]+://[^/]*", "", url).split("?")[0][:PATH_CHARS]
        return Page(title[1] if title else "", path, lines, tuple(frozenset(words(line)) for line in lines))


def explorer_of(trajectories: Iterable[Trajectory], memory: RetrievalMemory) -> Explorer:
    """The explorer of a memory into which all trajectories are put."""
    for trajectory in trajectories:
        memory.insert(trajectory)
    return Explorer(memory)


__all__ = ["BadPattern", "Explorer", "NoSuch", "State", "explorer_of"]


def _asked(query: str) -> frozenset[str]:
    return frozenset(words(query)) - STOP_WORDS


def _best(lines: Sequence[str], held: Sequence[frozenset[str]], asked: frozenset[str], count: int) -> list[str]:
    """The lines that hold most of what was asked, words that few lines hold weighing more; in their own order."""
    common = Counter(word for line in held for word in line & asked)
    scored = [(sum(1.0 / common[word] for word in line & asked), -number) for number, line in enumerate(held)]
    chosen = sorted((pair for pair in scored if pair[0] > 0), reverse=True)[:count]
    return [lines[number] for number in sorted(-place for _, place in chosen)]


_ID = re.compile(r"\[[A-Za-z]*\d+\] ")
_ID_IN_CALL = re.compile(r"\b(\w+\()'[A-Za-z]*\d+'(?:,\s*)?(?=[^\n]*\)\s+# )")
"""Of an action whose element is named behind it; a message such as '3' is no id and has no element."""


def _without_ids(text: str) -> str:
    """Without element ids: they differ at every step and say nothing (but could tell a made world's seed)."""
    return _ID_IN_CALL.sub(r"\1", _ID.sub("", text))


def _action(action: str) -> str:
    return _one_line(NOISE.sub("", _without_ids(action)), 120)


def _one_line(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def _numbers(indices: Sequence[int]) -> str:
    """`1,2,5`, the first six."""
    return ",".join(map(str, indices[:6])) + (",..." if len(indices) > 6 else "")
