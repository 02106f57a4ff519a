"""What the agents of a world have seen: every fact with the states whose trees tell it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from generators.webworld.explorer import Run

NAMED = re.compile(r"\] \w+ '([^']*)'")
"""The name of an element that has an id."""


@dataclass(frozen=True)
class Sight:
    """A line of a tree that tells a fact."""

    run: int
    state: int
    line: int


class Seen:
    """An index of facts over all runs of a world."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.sights: dict[str, list[Sight]] = {}
        for number, run in enumerate(runs):
            for state, facts in enumerate(run.facts):
                for fact, line in facts.items():
                    self.sights.setdefault(fact, []).append(Sight(number, state, line))

    def __contains__(self, fact: str) -> bool:
        return fact in self.sights

    def evidence(self, facts: Sequence[str]) -> list[dict[str, Any]]:
        """A line for every fact, from as few states as possible.

        Of equal ones, from a run that only saw the element and did not use it, and then from the shortest.
        """
        places = [{(s.run, s.state): s.line for s in self.sights[fact]} for fact in facts]
        found: dict[tuple[int, int], list[int]] = {}
        left = list(range(len(facts)))
        while left:
            counts: dict[tuple[int, int], int] = {}
            for number in left:
                for place in places[number]:
                    counts[place] = counts.get(place, 0) + 1
            best = min(
                counts,
                key=lambda place: (
                    -counts[place],
                    self._used(place, [places[number].get(place) for number in left]),
                    len(self.runs[place[0]].facts),
                    place,
                ),
            )
            found[best] = [places[number][best] for number in left if best in places[number]]
            left = [number for number in left if best not in places[number]]
        return [self._point(place, line) for place, lines in sorted(found.items()) for line in sorted(set(lines))]

    def _used(self, place: tuple[int, int], lines: Sequence[int | None]) -> bool:
        """Whether the run's actions used an element of these lines."""
        run = self.runs[place[0]]
        tree = run.record["states"][place[1]]["accessibility_tree"].split("\n")
        names = {match[1] for line in lines if line is not None and (match := NAMED.search(tree[line]))}
        return not names.isdisjoint(run.touched)

    def states(self, facts: Sequence[str]) -> list[tuple[str, int]]:
        """Every state that tells all of the facts by itself: any of them is as good as the evidence."""
        places = [{(sight.run, sight.state) for sight in self.sights[fact]} for fact in facts]
        return [(self.runs[run].record["id"], state) for run, state in sorted(set.intersection(*places))]

    def _point(self, place: tuple[int, int], line: int) -> dict[str, Any]:
        record = self.runs[place[0]].record
        tree = record["states"][place[1]]["accessibility_tree"]
        return {"trajectory_id": record["id"], "state_index": place[1], "line": tree.split("\n")[line].strip()}
