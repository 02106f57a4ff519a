"""A progress line with rate and time left: live on a terminal, one line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Self


class Progress:
    """Context manager; `show(done)` may be called as often as one likes."""

    def __init__(self, what: str, total: int, *, quiet_seconds: float = 30.0) -> None:
        self.what, self.total = what, total
        self._start = self._printed = time.monotonic()
        self._first: int | None = None
        self._live = sys.stderr.isatty()
        self._quiet_seconds = quiet_seconds

    def __enter__(self) -> Self:
        return self

    def show(self, done: int) -> None:
        if self._first is None:
            self._first = done  # what a resumed run found does not count into the rate
        now = time.monotonic()
        if not self._live and now - self._printed < self._quiet_seconds:
            return
        self._printed = now
        rate = (done - self._first) / max(now - self._start, 1e-9)
        left = f", {(self.total - done) / rate:.0f} s left" if rate > 0 else ""
        line = f"{done}/{self.total} {self.what}, {rate:.2f}/s{left}"
        print(f"\r\033[K{line}" if self._live else line, end="" if self._live else "\n", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._live:
            print(file=sys.stderr)
