"""Other quantities in an answer: does one of them answer the question too?"""

from __future__ import annotations

from rewards.standings import Standing
from rewards.text import Text
from rewards.values import Question
from rewards.words import words


def competes(
    text: Text,
    s: Standing,
    standings: list[Standing],
    asked: Question,
    nouns: set[str],
    kinds: set[str],
    spoken: set[int],
) -> bool:
    """Whether another quantity answers the question too, or is only something else that was counted."""
    q = s.mention.quantity
    low = text.lower
    if q is None:
        return True
    last = s.mention.last
    if not nouns:
        return True
    if q.kind in ("date", "weekday", "clock", "colon", "rate", "range") and q.kind not in kinds:
        return False
    for i in (s.index - 1, s.index + 1):
        if 0 <= i < len(standings) and _chained(low, s, standings[i]):
            return True
    if _in_sum(low, s):
        return False
    noun = low[last] if last < len(low) else "."
    apart = noun in asked.words and noun not in nouns and all(w[0].isalpha() for w in nouns)  # "11 notes, but 13 kids"
    if s.sentence in spoken and not _corrective(low, s):
        return apart
    bare = not noun[0].isalpha()
    if not (noun in nouns or bare or noun in asked.words):
        return False
    return bool(s.now or s.final or s.past or (noun in nouns and not bare) or _corrective(low, s))


def _in_sum(low: list[str], s: Standing) -> bool:
    """A term of a calculation ("15 + 12 = 27")."""
    before = low[s.mention.first - 1] if s.mention.first else ""
    after = low[s.mention.last] if s.mention.last < len(low) else ""
    return before in _OPERATORS or after in _OPERATORS or after == "="


_OPERATORS = words("+ × ÷ * x")


def _corrective(low: list[str], s: Standing) -> bool:
    return any(
        w in ("mean", "sorry", "correction", "actually", "no")
        for w in low[max(0, s.mention.first - 4) : s.mention.first]
    )


def _chained(low: list[str], a: Standing, b: Standing) -> bool:
    if a.mention.first > b.mention.first:
        a, b = b, a
    between = low[a.mention.last : b.mention.first]
    return len(between) <= 4 and all(w in _CHAIN for w in between)


_CHAIN = frozenset((",", "or", "and", "/", "\n", "maybe", "perhaps", "possibly", "either", "|", ";", "the", "a"))
