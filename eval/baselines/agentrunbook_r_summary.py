"""What a memory holds, in a few lines, for the controller that writes the queries."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence

from eval.baselines.agentrunbook_r_merge import spaced
from lme_v2_env.memory.api import Inserted
from lme_v2_env.memory.library import EVENTS, HINTS, PROCEDURES, SLICES

GOALS, TITLES, NOTE_TITLES = 6, 6, 4
"""How many are shown, as published."""

SNIPPET = 100
"""Characters of a goal's first clause."""

HEAD = 400
"""Bytes of a tree that hold its title."""

ROOT = re.compile(r"\s*RootWebArea '([^']*)'")
CLAUSE = re.compile(r"[.;:!?\n]")
ENTERPRISE = "service-now.com"
"""In the address of every enterprise page of the data."""


def titles(kept: Inserted) -> list[str]:
    """The title of each state, empty where it has none. Only the beginning of a tree is unpacked."""
    found = []
    for tree in kept.trees:
        match = ROOT.match(zlib.decompressobj().decompress(tree, HEAD).decode(errors="ignore"))
        found.append(match.group(1).strip() if match else "")
    return found


def summarise(memory: Sequence[Inserted], pools: Sequence[str], page_titles: Sequence[Sequence[str]]) -> str:
    """`page_titles` are those of `titles`, one list a trajectory, in the same order."""
    if not memory:
        return "Nothing yet."
    sizes = {
        "pages": sum(kept.states for kept in memory) if SLICES in pools else None,
        "events": sum(kept.states - 1 for kept in memory) if EVENTS in pools else None,
        "procedure notes": len(memory) if PROCEDURES in pools else None,
        "hint notes": len(memory) if HINTS in pools else None,
    }
    site = "a ServiceNow instance" if any(ENTERPRISE in kept.heads[0] for kept in memory) else "web applications"
    lines = [
        f"Site: {site}",
        f"Runs: {len(memory)}",
        *(f"{name.capitalize()}: {'not kept' if size is None else size}" for name, size in sizes.items()),
        "Some goals of the runs:",
        *(f"- {_snippet(memory[index].goal)}" for index in spaced(len(memory), GOALS)),
    ]
    common = Counter(title for found in page_titles for title in found if title)
    if common and SLICES in pools:
        lines += ["Most common page titles:", *(f"- {title}" for title, _ in common.most_common(TITLES))]
    for pool in (PROCEDURES, HINTS):
        if pool in pools:
            sample = (memory[index].records[pool][0]["title"] for index in spaced(len(memory), NOTE_TITLES))
            lines += [f"Some titles of {pool} notes:", *(f"- {title}" for title in sample)]
    return "\n".join(lines)


def _snippet(goal: str) -> str:
    return " ".join(CLAUSE.split(goal.strip(), maxsplit=1)[0].split())[:SNIPPET]
