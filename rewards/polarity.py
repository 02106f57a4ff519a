"""Yes/no golds: which way does the answer come down?"""

from __future__ import annotations

from typing import NamedTuple

from rewards.clauses import Clause, Sentence
from rewards.cues import Cue
from rewards.lexicon import STOP
from rewards.text import BOX_OPEN, Text
from rewards.values import NO, YES, Question, canon
from rewards.words import words

_NO_FOLLOWERS = words("you it they she he i not longer that there we the your") | {
    ",",
    ".",
    "!",
    ";",
    "—",
    ":",
    "\n",
    "-",
    ")",
    "(",
    "?",
}
_NO_LEADERS = words(
    "a hard definite firm clear so is answer then therefore and or but say hence thus either maybe perhaps both"
) | {",", ":", ".", "—", "\n", "(", "!", ";", "/", BOX_OPEN}
_ENDED = words(
    "cancelled canceled ended stopped quit sold expired closed gave lost dropped ditched lapsed left finished"
    " terminated discontinued broke retired dissolved abandoned gone rid"
)
_GIVES_UP = words("given giving gone got getting walked cut weaned done let moved")
_OBJECTS = words("it them that one")
_HOLDING = words("have has own owns keep keeps got")
_SUBJECTS = words("you it they she he i we")
_OPPOSITES = {
    "closed": "open", "open": "closed", "single": "married", "divorced": "married", "dead": "alive", "off": "on",
    "empty": "full",
    "broken": "fixed", "unemployed": "employed", "vacant": "occupied", "finished": "ongoing", "unrepaired": "working",
}  # fmt: skip
_STANDS_FOR = words("one it so them that indeed still allowed able welcome")
_AUX = words("do does did is are was were am have has had can could will would")


class Polarity(NamedTuple):
    """``yes`` is None when the answer leans neither way; ``mixed`` when it leans both ways."""

    yes: bool | None
    mixed: bool
    why: str


def _particle(text: Text, i: int, asked: Question) -> bool | None:
    """Whether token i is a yes or a no said as such ("no longer", "no car" are not)."""
    low = text.lower
    word = low[i]
    if word in YES or (word in ("correct", "indeed", "absolutely", "definitely", "certainly", "sure") and i == 0):
        return True
    if word not in NO:
        return None
    if word != "no":
        return False
    before = low[i - 1] if i else "."
    after = low[i + 1] if i + 1 < len(low) else "."
    if canon(after) in asked.canon and not (i and low[i - 1] == "have"):
        return False
    if after == "longer" or after in ("doubt", "question"):
        return None
    if before in ("maybe", "perhaps", "possibly"):
        return False
    if before in _NO_LEADERS or before in _AUX:
        return (
            False
            if after in _NO_FOLLOWERS
            or after in ("and", "or", "but")
            or (after not in STOP and i == 0 and after == ",")
            else None
        )
    return None


def polarity(text: Text, sentences: list[Sentence], asked: Question) -> Polarity:
    """Conclusions first, then the last yes or no that is not taken back, then the statement itself."""
    low = text.lower
    found: list[tuple[int, bool]] = []
    for i, word in enumerate(low):
        if word in YES or word in NO or i == 0:
            said = _particle(text, i, asked)
            if said is not None:
                found.append((i, said))
    asked_back = {i for s in sentences if s.is_question for i in range(s.first, s.last)}
    found = [(i, said) for i, said in found if i not in asked_back]
    finals = [
        cue[0]
        for s in sentences
        for c in s.clauses
        for cue in c.cues
        if cue[2] is Cue.FINAL and (cue[0] <= c.first + 1 or low[cue[0]] not in ("so", "which", "meaning"))
    ]
    if found:
        return _settle(text, found, finals, sentences)
    return _statement(text, sentences, asked, finals)


def _settle(text: Text, found: list[tuple[int, bool]], finals: list[int], sentences: list[Sentence]) -> Polarity:
    low = text.lower
    if BOX_OPEN in low:
        inside = [(i, said) for i, said in found if i and low[i - 1] == BOX_OPEN]
        found = inside or found
    first_i, first_said = found[0]
    if all(said == first_said for _, said in found):
        return Polarity(first_said, False, f"says {low[first_i]!r}")
    for place in reversed(finals):
        after = [(i, said) for i, said in found if i > place]
        if after and all(said == after[0][1] for _, said in after):
            return Polarity(after[0][1], False, f"concludes {low[after[0][0]]!r}")
    corrections = [
        cue[0]
        for s in sentences
        for c in s.clauses
        for cue in c.cues
        if cue[2] is Cue.CORRECTION and low[cue[0]] != "or"
    ]
    for place in reversed(corrections):
        after = [(i, said) for i, said in found if i > place]
        if after and any(i < place for i, _ in found) and all(said == after[0][1] for _, said in after):
            return Polarity(after[0][1], False, f"corrects to {low[after[0][0]]!r}")
    return Polarity(None, True, "says both yes and no")


def _statement(text: Text, sentences: list[Sentence], asked: Question, finals: list[int]) -> Polarity:
    """No yes or no: does a sentence repeat what was asked, affirmed or denied? The last such sentence decides, one that
    concludes before one that does not."""
    best: tuple[float, Polarity] | None = None
    for sentence in sentences:
        if sentence.is_question:
            continue
        for clause in sentence.clauses:
            said = _clause_says(text, clause, asked)
            if said is None:
                continue
            share, yes = said
            weight = share + (10 if any(sentence.first <= f < clause.last for f in finals) else 0)
            if best is None or weight >= best[0] - 0.01 or weight > 10:
                why = text.quote(clause.first, clause.last)[:120]
                best = (weight, Polarity(yes, False, f"{'affirms' if yes else 'denies'}: {why!r}"))
    return best[1] if best else Polarity(None, False, "says neither yes nor no")


def _clause_says(text: Text, clause: Clause, asked: Question) -> tuple[float, bool] | None:
    low = text.lower
    words = {canon(low[i]) for i in range(clause.first, clause.last) if low[i][0].isalnum()}
    shared = {w for w in asked.canon if w in words or (len(w) > 4 and any(x.startswith(w[:5]) for x in words))}
    negated = any(c[2] is Cue.NEG for c in clause.cues) or any(
        c[2] is Cue.PAST and low[c[0]] in ("no", "anymore", "not", "used", "formerly", "any") for c in clause.cues
    )
    was = any(low[i] in ("was", "were", "had", "did") for i in range(clause.first, clause.last))
    if was and any(c[2] in (Cue.UNTIL, Cue.PAST) for c in clause.cues):
        negated = True  # "it was open until June"
    ended = any(
        low[i] in _ENDED and not any(low[i].startswith(w[:5]) for w in asked.canon)
        for i in range(clause.first, clause.last)
    )
    ended = ended or any(c[2] is Cue.LEAVE and low[c[0]] in _GIVES_UP and c[1] < clause.last for c in clause.cues)
    if any(c[2] is Cue.REFUSAL for c in clause.cues):
        return None
    opener_words = {w.split("'")[0] for w in low[clause.first : clause.first + 2]}
    if any(low[i] in _OBJECTS for i in range(clause.first + 1, clause.last)) and shared:
        shared = shared | {"it"}
    if shared and opener_words & _SUBJECTS:
        shared = shared | {"subject"}
    end = [low[i] for i in range(max(clause.first, clause.last - 2), clause.last)]
    if len(end) == 2 and end[0] in _SUBJECTS and end[1].removesuffix("n't") in _AUX:
        return 0.5, not end[1].endswith("n't")
    stands_in = bool(opener_words & _SUBJECTS) and any(low[i] in _OBJECTS for i in range(clause.first + 1, clause.last))
    if ended and (stands_in or (low[clause.first].split("'")[0] in ("it", "they") and clause.last - clause.first <= 3)):
        return 0.6, negated
    if (
        stands_in
        and clause.last - clause.first <= 6
        and any(low[i] in _HOLDING for i in range(clause.first, clause.last))
    ):
        return 0.6, not negated
    if any(_OPPOSITES.get(w) in asked.words for w in words) and len(words) <= 6:
        return 0.6, negated
    size = max(1, len(asked.canon))
    if shared and len(shared) >= min(2, size):
        return len(shared) / size, negated == ended
    start = clause.first + (low[clause.first] in ("but", "and", "so", "though", "although", "because"))
    tag = [low[i] for i in range(start, min(clause.last, start + 3))]
    if (
        len(tag) >= 2
        and tag[0] in ("you", "it", "they", "she", "he", "i", "we")
        and tag[1].removesuffix("n't") in _AUX | {"ca", "wo"}
    ):
        short = clause.last - start <= 3
        if short or (len(tag) == 3 and tag[2] in _STANDS_FOR and clause.last - start <= 5):
            return 0.5, not (negated or tag[1].endswith("n't"))
    if tag and tag[0] == "not" and clause.last - start <= 4:  # "not at the moment"
        return 1.0, False
    if negated and clause.last - clause.first <= 3 and any(w in ("anymore", "longer", "not") for w in tag):
        return 2.0, False
    if ended and shared:
        return 0.3, False
    return None
