"""An answer cut into sentences and clauses, and the cues each clause holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewards.cues import CUES, Cue
from rewards.lexicon import SPEECH_VERBS
from rewards.mentions import Mention
from rewards.text import BOX_CLOSE, BOX_OPEN, Text
from rewards.units import MONTHS
from rewards.words import words

_SENTENCE_ENDS = frozenset(".!?;\n…")
_CLAUSE_ENDS = frozenset((",", ":", "—", "(", ")", "|", "→", BOX_OPEN, BOX_CLOSE))
_CLAUSE_WORDS = words(
    "but while whereas although though because so and yet however whilst when pero mas aber mais sondern sino maar"
)
_WERE = frozenset(("was", "were", "lived", "worked", "used"))
_MODALS = frozenset(("may", "might", "could"))
_MOVES = words("go return switch move change come try join buy get become take start end")
_SUBJECTS = words("you i we they it he she the your my")
_ABBREVIATIONS = words("st dr mr mrs ms vs no approx min sec hr hrs ave jr sr mt prof etc dept apt ft lb lbs oz")
_TITLES = words("dr mr mrs ms prof")
_TALK = words(
    "conversation conversations chat chats session sessions discussion discussions message messages history"
    " interaction interactions exchange exchanges context"
)
_LABELS = words("answer a result output response verdict conclusion")
_TIMELESS = words("earlier previously before originally initially recently lately once previous earliest prior")


@dataclass(slots=True)
class Clause:
    first: int
    last: int
    sentence: int
    opener: str
    """The token that opened it: a conjunction, a mark, or "" at the start."""
    cues: list[tuple[int, int, Cue]] = field(default_factory=list)
    mentions: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Sentence:
    first: int
    last: int
    end: str
    """The mark that closes it, "" at the end of the text."""
    clauses: list[Clause] = field(default_factory=list)

    @property
    def is_question(self) -> bool:
        return self.end == "?" and not (
            len(self.clauses) > 1
            and self.clauses[-1].last - self.clauses[-1].first <= 2
            and not self.clauses[-1].mentions
        )


def scan(text: Text, mentions: list[Mention]) -> list[tuple[int, int, Cue]]:
    """Every cue outside the mentions, left to right, the longest phrase at each place."""
    low, n = text.lower, len(text.lower)
    inside = {m.first: m.last for m in mentions if m.whole}
    out: list[tuple[int, int, Cue]] = []
    i, table = 0, CUES
    while i < n:
        if i in inside:
            i = inside[i]
            continue
        token = low[i]
        if token == "once" and (i + 1 == n or not low[i + 1][0].isalpha()) and _WERE & set(low[max(0, i - 6) : i]):
            out.append((i, i + 1, Cue.PAST))  # "M was your sport once."
            i += 1
            continue
        entries = table.get(token)
        if entries is not None:
            for rest, cue in entries:
                size = len(rest)
                if not size or (i + size < n and all(low[i + 1 + k] == rest[k] for k in range(size))):
                    end = i + 1 + size
                    if any(k in inside for k in range(i + 1, end)):
                        continue
                    cue = _about_talk(low, i, end, cue, inside)
                    if cue is Cue.HEDGE and not size and end < n and token in _MODALS and low[end] in _MOVES:
                        cue = Cue.FUTURE
                    if token == "since" and not size:
                        cue = Cue.CURRENT if end < n and (low[end] in MONTHS or low[end][0].isdigit()) else Cue.NONE
                    if cue is not Cue.NONE or size:
                        out.append((i, end, cue))
                    i = end - 1
                    break
        elif token in _LABELS and _labels(low, i, n) and (i == 0 or not low[i - 1].isalpha()):
            out.append((i, i + 1, Cue.FINAL))
        elif token[-3:] == "n't" or token in ("❌", "✗", "✘"):
            out.append((i, i + 1, Cue.NEG))
        elif token in ("✅", "✔", "☑"):
            out.append((i, i + 1, Cue.FINAL))
        elif token[:2] == "n'" and i + 1 < n and low[i + 1] == "plus":  # French "n'habite plus"
            out.append((i, i + 2, Cue.PAST))
            i += 1
        i += 1
    return out


def _labels(low: list[str], i: int, n: int) -> bool:
    """ "Answer:", "Answer B:"."""
    k = i + 2 if i + 2 < n and len(low[i + 1]) == 1 and low[i + 1].isalnum() else i + 1
    return k < n and low[k] in (":", "\n") and (k == i + 1 or low[k] == ":")


def _about_talk(low: list[str], i: int, end: int, cue: Cue, inside: dict[int, int]) -> Cue:
    """ "You mentioned earlier", "in our previous chat": the talk was earlier, not the value."""
    if cue in (Cue.PAST, Cue.BEFORE, Cue.CURRENT) and low[i] in _TIMELESS:
        if i and (low[i - 1] in SPEECH_VERBS or low[i - 1] in ("our", "we")):
            return Cue.NONE
        if i > 1 and low[i - 2] in SPEECH_VERBS and low[i - 1] in ("me", "it", "this", "that"):
            return Cue.NONE
        for k in range(end, min(end + 3, len(low))):
            if k in inside:
                break
            if low[k] in _TALK or low[k] in SPEECH_VERBS:
                return Cue.NONE
            if not low[k].isalpha():
                break
    return cue


def segment(text: Text, mentions: list[Mention], cues: list[tuple[int, int, Cue]]) -> list[Sentence]:
    """Sentences of clauses; every mention and cue is filed in the clause of its first token."""
    low, n = text.lower, len(text.lower)
    inside = {m.first: m.last for m in mentions}
    at_cue = {first: (last, cue) for first, last, cue in cues}
    sentences: list[Sentence] = []
    current = Sentence(0, 0, "")
    clause = Clause(0, 0, 0, "")
    number = {m.first: k for k, m in enumerate(mentions)}

    def close_clause(i: int, opener: str) -> None:
        nonlocal clause
        clause.last = i
        if clause.last > clause.first:
            current.clauses.append(clause)
        clause = Clause(i, i, len(sentences), opener)

    i = 0
    while i < n:
        token = low[i]
        if i in inside:
            clause.mentions.append(number[i])
            i = inside[i]
            continue
        if i in at_cue:
            last, cue = at_cue[i]
            if token in _CLAUSE_WORDS and cue is not Cue.NONE and clause.last is not None and i > clause.first:
                close_clause(i, token)
            clause.cues.append((i, last, cue))
            i = last
            continue
        if token in _SENTENCE_ENDS:
            if (
                token == "."
                and i
                and i + 1 < n
                and (low[i - 1] in _TITLES or (low[i - 1] in _ABBREVIATIONS and low[i + 1][0].isdigit()))
            ):
                i += 1
                continue
            close_clause(i, token)
            clause.first = i + 1
            if current.clauses:
                current.first, current.last = current.clauses[0].first, i
                current.end = token
                sentences.append(current)
                current = Sentence(i + 1, i + 1, "")
                clause.sentence = len(sentences)
            elif sentences and token in ("?", "\n"):
                pass
        elif (
            token in _CLAUSE_ENDS
            or (token == "-" and _is_dash(text, i))
            or (
                i > clause.first
                and (token in _CLAUSE_WORDS or (token == "since" and i + 1 < n and low[i + 1] in _SUBJECTS))
            )
        ):
            close_clause(i, token)
            clause.first = i + 1
        i += 1
    close_clause(n, "")
    if current.clauses:
        current.first, current.last = current.clauses[0].first, n
        sentences.append(current)
    return sentences


def _is_dash(text: Text, i: int) -> bool:
    """A hyphen with space on both sides is a dash."""
    return 0 < i < len(text.lower) - 1 and not text.glued(i) and not text.glued(i + 1)
