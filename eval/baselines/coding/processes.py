"""What a process and all that it has started use, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def tree(pid: int) -> Iterator[int]:
    """The process and its descendants, as far as they are still there."""
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        yield current
        try:
            tasks = os.listdir(f"/proc/{current}/task")
        except OSError:
            continue  # it has ended
        for task in tasks:
            try:
                waiting += map(int, Path(f"/proc/{current}/task/{task}/children").read_text().split())
            except OSError:
                continue


def resident_bytes(pid: int) -> int:
    """Memory of the tree that is its own (anonymous pages)."""
    pages = 0
    for current in tree(pid):
        try:
            fields = Path(f"/proc/{current}/statm").read_text().split()
        except OSError:
            continue
        pages += int(fields[1]) - int(fields[2])
    return pages * PAGE
