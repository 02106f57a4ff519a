"""What an agent's commands were for: the five kinds of the paper's figures 8 and 9, and what a sandbox stopped.

A command has one kind, the first that fits in the order below: one that reads a manifest and greps the raw files in the
same line is guided retrieval.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eval.baselines.coding.sandbox import Finished


class Kind(StrEnum):
    OUTPUT = "output"
    GUIDED = "guided retrieval"
    VISUAL = "visual"
    RAW = "raw exploration"
    SETUP = "setup"
    OTHER = "other"


RULES = (
    (Kind.OUTPUT, re.compile(r"memory_module_output")),
    (Kind.GUIDED, re.compile(r"inspect_trajectory\.py|TRAJECTORY_SUMMARY|procedure_notes")),
    (Kind.VISUAL, re.compile(r"\.(?:png|jpe?g|webp)\b|\bPIL\b|screenshots/|\bview_image\b", re.IGNORECASE)),
    (Kind.RAW, re.compile(r"trajector(?:y|ies)\b|\b(?:rg|[ef]?grep|jq|find)\b")),
    (Kind.SETUP, re.compile(r"INSTRUCTION\.md|question\.json|index\.json|manifest\.json|^\s*(?:ls|pwd|tree)\b")),
)

HELP = re.compile(r"(?:cat|head|sed|less)\s[^|;&]*inspect_trajectory\.py|inspect_trajectory\.py\s+(?:-h|--help)")
"""Reading the helper's own text is part of getting ready."""

LISTING = re.compile(r"^\s*(?:ls|pwd|tree)\b[^|;&]*$")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of an agent. `round` counts from 1 in each attempt; commands of one reply share it."""

    round: int
    text: str
    kind: Kind
    seconds: float
    incidents: tuple[str, ...] = ()


def kind_of(text: str) -> Kind:
    """What a command is for."""
    if HELP.search(text) or LISTING.match(text):
        return Kind.SETUP
    return next((kind for kind, pattern in RULES if pattern.search(text)), Kind.OTHER)


SIGNS = (
    ("write outside the attempt's folder", re.compile(r"Read-only file system|Operation not permitted|not writable")),
    (
        "network",
        re.compile(
            r"Network is unreachable|resolve host|name resolution|Name or service not known|getaddrinfo"
            r"|Connection refused|Failed to connect|Address family not supported"
        ),
    ),
    ("process limit", re.compile(r"Resource temporarily unavailable|can't start new thread|BlockingIOError")),
    ("disk limit", re.compile(r"No space left on device|File size limit exceeded|File too large")),
    ("memory limit", re.compile(r"MemoryError|Cannot allocate memory|memory exhausted")),
)
"""What stderr says when the sandbox has stopped something."""

OUTSIDE = re.compile(r"(?<![\w.:/])(?:/(?!task|tmp|dev/null|usr|bin\b|proc\b)[\w.-]+|~|\.\.)(?:/[^\s'\";:|&)]*)?")
"""A path that leaves the agent's folder."""

DENIED = re.compile(r"No such file or directory|Permission denied|cannot access|Not a directory")


def incidents(done: Finished) -> tuple[str, ...]:
    """What the sandbox kept a command from, by its end and by what it says on stderr. Also harmless commands can meet
    a limit; the row says which command it was."""
    found = [str(done.stop)] if done.stop else []
    found += [name for name, pattern in SIGNS if pattern.search(done.stderr)]
    refused = [line for line in done.stderr.split("\n") if DENIED.search(line)]
    paths = (OUTSIDE.search(line) for line in refused)
    found += dict.fromkeys(f"path outside the sandbox: {path.group()[:80]}" for path in paths if path)
    if done.full and "disk limit" not in found:
        found.append("disk limit")
    return tuple(found)


def summary(attempts: Sequence[Sequence[Command]]) -> dict[str, Any]:
    """Counts of a question for its row: by kind, and by kind for every round of the first attempt."""
    total = Counter(str(command.kind) for attempt in attempts for command in attempt)
    rounds: dict[int, Counter[str]] = {}
    for command in attempts[0] if attempts else ():
        rounds.setdefault(command.round, Counter())[str(command.kind)] += 1
    return {"commands": dict(total), "rounds": [dict(rounds.get(n, {})) for n in range(1, max(rounds, default=0) + 1)]}


def mean_counts(rows: Iterable[Mapping[str, Any]]) -> tuple[int, dict[str, float]]:
    """(questions, commands a question by kind) over rows that have tool counts: figure 8."""
    counted = [row["gathered"]["tools"]["commands"] for row in rows if (row.get("gathered") or {}).get("tools")]
    total: Counter[str] = Counter()
    for counts in counted:
        total.update(counts)
    return len(counted), {str(kind): total[kind] / max(len(counted), 1) for kind in Kind}


def by_round(rows: Iterable[Mapping[str, Any]], most: int = 8) -> list[dict[str, float]]:
    """Share of each kind among the commands of round 1, 2, ...: figure 9."""
    rounds = [Counter[str]() for _ in range(most)]
    for row in rows:
        for place, counts in enumerate(((row.get("gathered") or {}).get("tools") or {}).get("rounds", [])[:most]):
            rounds[place].update(counts)
    return [{str(kind): found[kind] / found.total() for kind in Kind} for found in rounds if found]
