"""The shape of a whole answer: conclusions, boxes, a headline, corrections."""

from __future__ import annotations

from bisect import bisect_right

from rewards.clauses import Clause, Sentence
from rewards.cues import Cue
from rewards.lexicon import PLACES
from rewards.standings import Standing
from rewards.text import BOX_CLOSE, BOX_OPEN
from rewards.words import words

BOXED = 60.0
_FINAL, _SO, _HEADLINE, _ASIDE = 20.0, 13.0, 7.0, -15.0
"""Ranks that a box, a labelled answer, "so", a bare first sentence and a footnote add."""
_SO_WORDS = words("so therefore thus hence consequently accordingly ultimately overall meaning which")
_EXPLAINERS = words("reasoning explanation rationale justification why because details background context")
_FILLER = words(
    "or maybe perhaps possibly with the a an at in on it it's is its to your my about around of and"
    " by you're they are that's that"
)


def conclusions(low: list[str], sentences: list[Sentence], standings: list[Standing]) -> None:
    """Mentions in a conclusion outrank what led to it; those after "Reasoning:" only explain."""
    pending, count = 0.0, 0
    by_sentence: dict[int, list[Standing]] = {}
    for s in standings:
        by_sentence.setdefault(s.sentence, []).append(s)
    aside = -1
    for number, sentence in enumerate(sentences):
        first = low[sentence.first]
        label = low[sentence.first + 1 : sentence.first + 2]
        explains = aside < 0 and number > 0 and first in _EXPLAINERS and label in ([":"], ["\n"])
        if explains and any(s.sentence < number for s in standings):
            aside = number
        strength, start = pending, sentence.first
        for clause in sentence.clauses:
            for cue in clause.cues:
                if cue[2] is Cue.FINAL:
                    opens = cue[0] <= clause.first + 1
                    weak = low[cue[0]] in _SO_WORDS or low[cue[1] - 1] in (
                        "means",
                        "appears",
                        "seems",
                        "like",
                    )
                    if (weak and opens) or not weak:
                        strength, start = max(strength, _SO if weak else _FINAL), cue[0]
                        count += 1
        members = by_sentence.get(number, ())
        hit = False
        for s in members:
            if strength and s.mention.first >= start:
                s.rank += strength + 0.1 * count
                s.final = True
                hit = True
            elif aside >= 0 and number >= aside:
                s.rank += _ASIDE
        refused = any(c[2] is Cue.REFUSAL and c[0] > start for cl in sentence.clauses for c in cl.cues)
        short = sentence.last - start <= 6 or low[sentence.last - 1] == ":" or sentence.end == "\n"
        pending = strength if strength and not hit and not refused and short else 0.0


def boxes(low: list[str], standings: list[Standing]) -> None:
    if BOX_OPEN not in low:
        return
    depth, spans, start = 0, [], 0
    for i, w in enumerate(low):
        if w == BOX_OPEN:
            depth, start = depth + 1, i if not depth else start
        elif w == BOX_CLOSE and depth:
            depth -= 1
            if not depth:
                spans.append((start, i))
    at = 0
    for s in standings:
        while at < len(spans) and spans[at][1] < s.mention.first:
            at += 1
        if at < len(spans) and spans[at][0] <= s.mention.first:
            s.rank += BOXED
            s.dead = "" if s.dead.startswith(("current", "inside", "about")) else s.dead


def headline(low: list[str], sentences: list[Sentence], standings: list[Standing]) -> None:
    """A first sentence that is a bare value is the answer, unless bare values are listed."""
    bare: list[Standing] = []
    counted = any(s.mention.quantity is not None for s in standings)  # a unit may follow
    for s in standings:
        sentence = sentences[s.sentence]
        extra = [
            w
            for i, w in enumerate(low[sentence.first : sentence.last], start=sentence.first)
            if not s.mention.first <= i < s.mention.last
            and w[0].isalnum()
            and w not in _FILLER
            and w not in PLACES
            and not (len(w) == 1 and low[i + 1 : i + 2] == [":"])
        ]
        if len(extra) <= counted:
            bare.append(s)
        elif len(bare) == 0:
            return
        if len(bare) > 1 and bare[-1].key != bare[0].key:
            return
        if len(bare) > 3:
            break
    doubtful = bool(bare) and any(note.startswith("doubtful") for note in bare[0].notes)
    if bare and not doubtful and bare[0] is standings[0] and not bare[0].dead and len({s.key for s in bare}) == 1:
        bare[0].rank += _HEADLINE
        bare[0].notes.append("headline")


def corrections(low: list[str], clauses: list[Clause], standings: list[Standing]) -> None:
    """ "A. Sorry, B": a live, different value after a correcting phrase replaces all before it."""
    places = [c[0] for clause in clauses for c in clause.cues if c[2] is Cue.CORRECTION]
    places += [clause.first for clause in clauses if clause.last - clause.first == 1 and low[clause.first] == "no"]
    if not places or not standings:
        return
    live = [s for s in standings if not s.dead]
    starts = [s.mention.first for s in live]
    ends = [s.mention.last for s in standings]
    key = standings[0].key
    turn = next((i for i, s in enumerate(standings) if s.key != key), len(standings))
    for place in sorted(places, reverse=True):
        after = bisect_right(starts, place)
        before = bisect_right(ends, place)  # how many mentions come before the phrase
        if after < len(live) and before and (live[after].key != key or turn < before):
            for s in standings[:before]:
                s.dead = s.dead or "corrected away"
            return
