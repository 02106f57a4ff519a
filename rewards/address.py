"""Addresses of endpoints, and keys in what endpoints say. On the ground floor, for every room that has an endpoint."""

from __future__ import annotations

import json
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
    if key in ("", "none"):
        return text
    for form in dict.fromkeys((key, json.dumps(key)[1:-1], quote(key, safe=""))):
        text = text.replace(form, HIDDEN)
    return text
