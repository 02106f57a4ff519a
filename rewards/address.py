"""Addresses of endpoints, and keys in what endpoints say. On the ground floor, for every room that has an endpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from urllib.parse import urlsplit

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


SHORTEST_KEY = 8
"""Characters. What is shorter is no secret but a word for "no key" (none, EMPTY, x), and would be found everywhere."""

NAMED = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
"""Characters that HTML has names for."""


def usable_key(variable: str) -> str:
    """The key in an environment variable, or "none". Raises `UserError` for one that no header takes: refused here,
    because HTTP libraries repeat it in their messages."""
    key = os.environ.get(variable, "").strip() or "none"
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"the key in {variable} holds characters that no header takes")
    return key


def without_key(text: str, key: str) -> str:
    """`text` without the key, each of whose characters may be written as it is or as JSON, addresses or HTML write it:
    servers repeat a key that they refuse."""
    if len(key) < SHORTEST_KEY:
        return text
    return _pattern(key).sub(HIDDEN, text)


def stream_without_key(pieces: Iterable[bytes], key: str) -> Iterator[bytes]:
    """The same for a reply that comes in pieces. Whole lines go on at once, as events of a stream are; no form of a
    key holds the end of a line."""
    held: list[bytes] = []
    for piece in pieces:
        lines, end, rest = piece.rpartition(b"\n")
        if end:
            yield _bytes_without_key(b"".join((*held, lines, end)), key)
            held = []
        held.append(rest)
    yield _bytes_without_key(b"".join(held), key)


def _bytes_without_key(data: bytes, key: str) -> bytes:
    return without_key(data.decode("utf-8", "surrogateescape"), key).encode("utf-8", "surrogateescape")


@lru_cache(maxsize=8)
def _pattern(key: str) -> re.Pattern[str]:
    return re.compile("".join(_forms(character, len(list(run))) for character, run in groupby(key)))


def _forms(character: str, count: int) -> str:
    """A pattern for the ways to write an ASCII character `count` times."""
    if character == "\\":  # as one unit: how many of a row of them belong to which would be tried for ever
        return rf"(?:\\u00(?i:5c)|\\|%(?:25)*(?i:5c)|&\#92;){{{count},{8 * count}}}"
    code = ord(character)
    plain = re.escape(character) if character.isalnum() else rf"\\{{0,7}}{re.escape(character)}"  # JSON within JSON
    forms = [rf"\\{{1,7}}u00(?i:{code:02x})", rf"%(?:25)*(?i:{code:02x})", rf"&\#x0*(?i:{code:x});", rf"&\#0*{code};"]
    forms += [f"&{NAMED[character]};"] if character in NAMED else []
    return f"(?:{'|'.join([*forms, plain])}){{{count}}}"  # the plain one last: `&` begins `&amp;`
