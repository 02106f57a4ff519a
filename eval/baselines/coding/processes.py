"""What a process and all that it has started use, from /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

HELD = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)


def children(pid: int) -> list[int]:
    """Those of a process that are still there."""
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found  # it has ended
    for task in tasks:
        with suppress(OSError):  # so may a thread have
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def tree(pid: int) -> Iterator[int]:
    """The process and its descendants, as far as they are still there."""
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        yield current
        waiting += children(current)


def resident_bytes(pid: int) -> int:
    """Memory that the tree holds: anonymous and shared pages; what is shared counts for each that shares it."""
    kilobytes = 0
    for current in tree(pid):
        try:
            text = Path(f"/proc/{current}/status").read_text()
        except OSError:
            continue
        kilobytes += sum(map(int, HELD.findall(text)))
    return kilobytes << 10


def machine_is_short() -> bool:
    """Whether the machine has under a twentieth of its memory left."""
    text = Path("/proc/meminfo").read_text()
    total, left = (int(text.split(f"{name}:")[1].split()[0]) for name in ("MemTotal", "MemAvailable"))
    return left * 20 < total
