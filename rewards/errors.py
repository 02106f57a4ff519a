"""Errors that a user can act on: one clear line, no traceback needed. On the ground floor, for every room."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import fuzz, process


class UserError(ValueError):
    """Something the user gave is wrong; the message says what and what to do."""


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise `UserError` at the first name in `given` that is not in `known`, naming the nearest known one."""
    known = sorted(known)
    for name in given:
        if name not in known:
            near = process.extractOne(str(name), known, scorer=fuzz.ratio, score_cutoff=50)
            hint = f"; did you mean '{near[0]}'?" if near else f"; known: {', '.join(known)}"
            raise UserError(f"unknown {what} '{name}'{hint}")
