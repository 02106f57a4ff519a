"""One request to a server that may misbehave: the reply comes whole, within a time and up to a size, or not at all.

HTTP libraries bound the wait for the next byte, not for the reply: a server that sends a byte a minute would hold a run
for ever. Requests therefore run in an event loop of their own, in a thread, where the time of the whole can be bounded.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 30.0
"""Most seconds to reach a server; a model may then think for an hour, a connection takes no longer than this."""

LONGEST_WAIT = 60.0
"""Most seconds between two attempts, whatever a server asks for: one that says "in a day" would hold the run."""


class TooLarge(RuntimeError):
    """The reply has more bytes than it may have."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's reply. `retry_after` is what it asked for, in seconds."""

    status: int
    kind: str
    """Its content type."""
    body: bytes
    retry_after: float | None = None


class Wire:
    """Connections that are kept between requests. Threads may share one."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    def send(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, *, seconds: float, largest: int
    ) -> Answer:
        """Raises `TimeoutError`, `TooLarge`, and what httpx raises: `HTTPError` or `InvalidURL`."""
        future = asyncio.run_coroutine_threadsafe(self._send(method, url, headers, body, seconds, largest), _loop())
        try:
            return future.result()
        except BaseException:  # Ctrl-C, too: nobody waits for the reply any more
            future.cancel()
            raise

    async def _send(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, seconds: float, largest: int
    ) -> Answer:
        import httpx

        if self._client is None:  # in the loop's thread, so that only one is made
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=256)
            self._client = httpx.AsyncClient(timeout=None, limits=limits)
        bounds = httpx.Timeout(None, connect=min(seconds, CONNECT_SECONDS))
        async with (
            asyncio.timeout(seconds),
            self._client.stream(method, url, headers=headers, content=body, timeout=bounds) as reply,
        ):
            read = bytearray()
            async for piece in reply.aiter_bytes():
                read += piece
                if len(read) > largest:
                    raise TooLarge(f"the reply is larger than {largest / (1 << 20):g} MiB")
            said = reply.headers
            return Answer(
                reply.status_code, said.get("content-type", "no content type"), bytes(read), _seconds_of(said)
            )


_STARTING = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """One for the process, though several threads ask for it at once."""
    with _STARTING:
        return _started()


@cache
def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="endpoints", daemon=True).start()
    return loop


def _seconds_of(headers: httpx.Headers) -> float | None:
    """The Retry-After of a reply: seconds, or a date."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def pause(attempt: int, backoff: float, retry_after: float | None) -> float:
    """Seconds to wait after failed attempt number `attempt` (from 1): `backoff` doubled each time, and never less than
    the server asked for, up to `LONGEST_WAIT`. A tenth more by chance, so that rollouts do not come back together."""
    wait = max(backoff * 2 ** (attempt - 1), retry_after or 0.0)
    return min(wait, LONGEST_WAIT) * random.uniform(1.0, 1.1)
