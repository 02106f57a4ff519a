"""Addresses of endpoints, and keys in what endpoints say. On the ground floor, for every room that has an endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, urlsplit

from rewards.errors import UserError

HIDDEN = "(the key)"
"""Stands where a key stood."""


def refuse_secrets(url: str, name: str) -> None:
    """Raise `UserError` for an address with a password or a query. The message does not repeat it.

    An address is written into run folders, configurations and lists of processes; a key belongs in the environment.
    """
    try:
        parts = urlsplit(url)
        secretive = "@" in parts.netloc or bool(parts.query or parts.fragment)
    except ValueError:
        secretive = any(mark in url for mark in "@?#")
    if secretive:
        raise UserError(
            f"{name} holds a user, a password or a query, which would be stored with the run: give the bare address, "
            "and the key in the environment variable of --api-key-var"
        )


def without_key(text: str, key: str) -> str:
    """`text` without the key, as it is or as JSON and addresses write it; servers repeat a key that they refuse.

    An empty key and "none", which stands for no key, are no secrets.
    """
    for form in _forms(key):
        text = text.replace(form, HIDDEN)
    return text


def stream_without_key(pieces: Iterable[bytes], key: str) -> Iterator[bytes]:
    """The same for a reply that comes in pieces: what may be the beginning of a key waits for the next piece."""
    forms = [form.encode() for form in _forms(key)]
    held = b""
    for piece in pieces:
        held += piece
        for form in forms:
            held = held.replace(form, HIDDEN.encode())
        waiting = max((n for form in forms for n in range(1, len(form)) if held.endswith(form[:n])), default=0)
        yield held[: len(held) - waiting]
        held = held[len(held) - waiting :]
    yield held


def _forms(key: str) -> tuple[str, ...]:
    """The key as it is, as JSON and as addresses write it, the longest first: one may hold another."""
    if key in ("", "none"):
        return ()
    forms = dict.fromkeys((key, json.dumps(key)[1:-1], quote(key, safe="")))
    return tuple(sorted(forms, key=len, reverse=True))
