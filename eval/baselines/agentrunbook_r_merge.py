"""Choosing among the results of several queries, and evenly spaced samples of a list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

ItemT = TypeVar("ItemT", bound=Hashable)


class Merged(NamedTuple, Generic[ItemT]):
    """An entry that was taken: by which query (from 0), and its rank in that query's results (from 1)."""

    query: int
    entry: ItemT
    rank: int


def limits(queries: int, budget: int, cap: int, parity: bool) -> list[int]:
    """How many new entries each query may add.

    An even share of the budget; with more than three queries at most `cap` each. The published code gives every one of
    four or five queries `cap` entries, 8 or 10 in all, though the budget is 6: with `parity` so does this. Otherwise
    the budget holds, and what does not divide evenly goes to the first queries.
    """
    if parity:
        return [max(1, budget // queries) if queries <= 3 else cap] * queries
    shares = [budget // queries + (number < budget % queries) for number in range(queries)]
    return shares if queries <= 3 else [min(share, cap) for share in shares]


def merge(
    lists: Sequence[Sequence[ItemT]],
    *,
    budget: int = 6,
    cap: int = 2,
    parity: bool = False,
    shows: Callable[[ItemT], Iterable[Hashable]] = lambda entry: (entry,),
) -> list[Merged[ItemT]]:
    """Walk the queries in order; pass over an entry that is taken already, at no cost to the query's share.

    A query without results counts when the budget is shared. `shows` names what an entry brings into the context: an
    entry that an earlier one brought is passed over, too.
    """
    if not lists:
        return []
    seen: set[Hashable] = set()
    merged: list[Merged[ItemT]] = []
    for query, (entries, limit) in enumerate(zip(lists, limits(len(lists), budget, cap, parity), strict=True)):
        left = limit
        for rank, entry in enumerate(entries, 1):
            if not left:
                break
            if entry in seen:
                continue
            seen.update(shows(entry))
            merged.append(Merged(query, entry, rank))
            left -= 1
    return merged


def spaced(count: int, wanted: int) -> list[int]:
    """Indices of an evenly spaced sample, ends included; halves go to the even neighbour, as published."""
    if count <= wanted:
        return list(range(count))
    if wanted == 1:
        return [0]
    return [round(number * (count - 1) / (wanted - 1)) for number in range(wanted)]
