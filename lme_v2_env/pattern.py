"""Regular expressions that an agent wrote, run without a chance to hang.

Python's engine backtracks: `(a+)+$` takes exponential time. So the parsed pattern is weighed first: `_paths` bounds the
ways in which it can match from one place, and a pattern with too many is refused with a reason. Lines are matched in
pieces, so that this bound is small, and the whole search has a deadline for what still adds up.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

MAX_PATTERN_CHARS = 200

PIECE = 240
"""Characters of a line that are matched at once; longer lines are cut into pieces that overlap by half."""

MAX_PATHS = 200_000
"""Two open repeats (`.*`) over a piece are 57,600 paths; three are refused."""

SECONDS = 0.5
"""For one search. Within the limits above only a pattern made for it takes this long."""

KeyT = TypeVar("KeyT")

# The engine's own parser, which has no public name and no stub.
parser, sre = import_module("re._parser"), import_module("re._constants")

_LEADING = re.compile(r"^\^?(?:\.[*]\??(?![+*?]))+")
_TRAILING = re.compile(r"(?<!\\)(?:\.[*]\??)+\$?$")


class BadPattern(ValueError):
    """The pattern cannot be run; the message tells the agent why."""


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern that is safe to search pieces with, ignoring case. Raises `BadPattern`."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise BadPattern(f"the pattern is longer than {MAX_PATTERN_CHARS} characters.")
    pattern = _TRAILING.sub("", _LEADING.sub("", pattern)) or pattern  # they change nothing but the time taken
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set" and the like are no concern of a run
            tree = parser.parse(pattern, re.IGNORECASE)
            paths = _paths(tree)
            if paths > MAX_PATHS:
                raise BadPattern("the pattern has too many repeats: use at most two of * and +, and none in another.")
            return re.compile(pattern, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern(f"not a regular expression ({error}).") from error


def matching(pattern: re.Pattern[str], lines: Iterable[tuple[KeyT, str]]) -> Iterator[tuple[KeyT, str]]:
    """The (key, line) pairs whose line matches. Raises `BadPattern` when the search takes too long."""
    end = time.monotonic() + SECONDS
    for key, line in lines:
        for start in range(0, max(1, len(line) - PIECE // 2), PIECE // 2):
            if time.monotonic() > end:
                raise BadPattern("the search takes too long: use a simpler pattern.")
            if pattern.search(line[start : start + PIECE]):
                yield key, line
                break


def _paths(tree: Any) -> int:
    """An upper bound of the ways in which the engine can go through the pattern from one start."""
    total = 1
    for op, value in tree:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            low, high, inner = value
            total *= _repeated(int(low), min(int(high), PIECE), _paths(inner))
        elif op is sre.SUBPATTERN:
            total *= _paths(value[-1])
        elif op is sre.ATOMIC_GROUP:
            total *= _paths(value)
        elif op is sre.BRANCH:
            total *= sum(map(_paths, value[1]))
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            total *= _paths(value[1])
        elif op in (sre.GROUPREF, sre.GROUPREF_EXISTS):
            raise BadPattern("references to groups are not taken.")
        total = min(total, MAX_PATHS + 1)
    return total


def _repeated(low: int, high: int, inner: int) -> int:
    """Each count from low to high is one way, times what the repeated part can do each time."""
    if inner == 1:
        return max(1, high - low + 1)
    if high > 8:
        return MAX_PATHS + 1
    return sum(inner**count for count in range(low, high + 1))
