"""The currency grader: does an answer stand behind the current value of a fact, a superseded one, several, or none?

``grade`` is the single entry of the reward, the evaluation and the reports. It reads the values first (quantities, then
names), finds where the answer mentions them, and then decides which mention the answer commits to.

Token overlap decides one thing only: whether a long sentence gold (more than five content words next to its question)
is mentioned, and only when all its numbers and names are there. It never turns a number, a name or a short gold into a
match.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from rewards.abstention import says_unknown
from rewards.alternatives import rivals
from rewards.clauses import Sentence, scan, segment
from rewards.commitment import Resolver
from rewards.competition import competes
from rewards.cues import Cue
from rewards.forms import read_value
from rewards.lexicon import PLACES, STOP
from rewards.mentions import GOLD, OTHER, STALE, Mention, Reading, find, find_all, read_answer
from rewards.polarity import polarity
from rewards.standings import STATED, Standing
from rewards.text import BOX_OPEN, Text, tokenise
from rewards.values import Question, Value, asks_yes_no, canon, read_question
from rewards.words import words

GRADER_VERSION = "1.6"
"""Changes whenever any verdict may change; result rows record it."""

Verdict = Literal["correct", "stale", "hedged", "wrong", "refused"]


@dataclass(frozen=True)
class Grade:
    """A verdict, its two reward terms and why. The reward is r_cur + stale_weight * r_stale."""

    verdict: Verdict
    r_cur: int
    """1 for correct, else 0."""
    r_stale: int
    """-1 for stale, and for hedged that names a superseded value; else 0."""
    explanation: str
    """The mention that decided, in the answer's own words."""


def _grade(verdict: Verdict, explanation: str, *, names_stale: bool = False) -> Grade:
    penal = verdict == "stale" or (verdict == "hedged" and names_stale)
    return Grade(verdict, int(verdict == "correct"), -int(penal), explanation)


def mentions_value(text: str, value: str | int | float) -> bool:
    """Whether the text contains the value at all: "four" is 4, and 10 is not in "100". Says nothing of commitment."""
    return bool(find(_read(text), read_value(str(value), ""), read_question("")))


@lru_cache(maxsize=64)
def _read(text: str) -> Reading:
    """Kept because notes are searched for one value after the other."""
    return read_answer(tokenise(text), numeric=True)


def grade(
    answer: str,
    gold: str | int | float,
    stale: Sequence[str] = (),
    *,
    question: str = "",
    abstain: bool = False,
) -> Grade:
    """Grade one answer. ``stale`` holds every other value the asked attribute ever had; ``abstain`` marks a question
    whose right answer is that it was never mentioned. Raises ValueError for an empty gold."""
    gold_text = str(gold)
    if not gold_text.strip():
        raise ValueError("empty gold: the row cannot be graded")
    text = tokenise(answer)
    asked = read_question(question)
    if abstain:
        known, why = says_unknown(text, gold_text, asked)
        return _grade("correct" if known else "wrong", why)
    if not any(w[0].isalnum() for w in text.lower):
        return _grade("refused", "empty answer")
    others = tuple(str(s) for s in stale if str(s).strip())
    value = read_value(gold_text, question, others)
    if value.is_bool and (asks_yes_no(asked) or not question or value.forms[0].kind == "bool"):
        return _grade_polar(text, value, stale, asked)
    olds = tuple(read_value(s, question, (gold_text,)) for s in others)
    reading = read_answer(text, numeric=True)
    mentions = find_all(reading, value, olds, asked)
    cues = scan(text, mentions)
    sentences = segment(text, mentions, cues)
    standings = Resolver(text, mentions, sentences, asked).run()
    return _decide(reading, value, standings, sentences, asked)


def _grade_polar(text: Text, value: Value, stale: Sequence[str], asked: Question) -> Grade:
    cues = scan(text, [])
    sentences = segment(text, [], cues)
    lean = polarity(text, sentences, asked)
    olds = [read_value(str(s), asked.text) for s in stale]
    other_way_is_stale = any(v.is_bool and v.forms[0].yes != value.forms[0].yes for v in olds)
    if lean.mixed:
        return _grade("hedged", lean.why, names_stale=other_way_is_stale)
    if lean.yes is None:
        reading = read_answer(text, numeric=False)
        for old in olds:
            if not old.is_bool and find(reading, old, asked):
                return _grade("stale", f"says {old.text!r}")
        if _refusals(sentences):
            return _grade("refused", f"says that it does not know: {_quote_refusal(text, sentences)}")
        return _grade("wrong", lean.why)
    if lean.yes == value.forms[0].yes:
        return _grade("correct", lean.why)
    return _grade("stale" if other_way_is_stale else "wrong", lean.why)


# -- from standings to a verdict ---------------------------------------------------------------------------------------


def _refusals(sentences: list[Sentence]) -> list[tuple[int, int, Cue]]:
    return [c for s in sentences for clause in s.clauses for c in clause.cues if c[2] is Cue.REFUSAL]


def _quote_refusal(text: Text, sentences: list[Sentence]) -> str:
    first = _refusals(sentences)[0]
    return repr(text.quote(first[0], min(first[1] + 4, len(text.lower))))


def _decide(
    reading: Reading, value: Value, standings: list[Standing], sentences: list[Sentence], asked: Question
) -> Grade:
    text = reading.text
    known = [s for s in standings if s.mention.who != OTHER]
    live = [s for s in standings if not s.dead]
    nouns = {text.lower[s.mention.last] if s.mention.last < len(text.lower) else "." for s in known}
    kinds = {s.mention.quantity.kind for s in known if s.mention.quantity}
    spoken = {s.sentence for s in live if s.mention.who != OTHER}
    live = [s for s in live if s.mention.who != OTHER or competes(text, s, standings, asked, nouns, kinds, spoken)]
    refusals = _refusals(sentences)
    named_stale = any(s.mention.who == STALE for s in known)
    if BOX_OPEN in text.lower and not any(s.rank >= 80 for s in live):
        boxed = text.lower.index(BOX_OPEN)
        if (
            boxed + 1 < len(text.lower)
            and not any(c[0] > boxed for c in refusals)
            and text.lower[boxed + 1][0].isalnum()
        ):
            return _grade("wrong", f"boxed another value: {text.raw[text.start[boxed] : text.start[boxed] + 60]!r}")
    other = _concludes_otherwise(text, sentences, standings) if standings else ""
    if other:
        return _grade("wrong", f"concludes with another value: {other!r}")
    if live and refusals and _refusal_prevails(text, live, refusals, sentences):
        return _grade("refused", f"says that it does not know: {_quote_refusal(text, sentences)}")
    if not live:
        return _without_commitment(text, standings, known, sentences, named_stale, asked)
    top = max(s.rank for s in live)
    leaders = [s for s in live if s.rank > top - 3.0]
    again = [s for s in known if s.dead == "inside a question" and s.index > leaders[-1].index]
    if len({s.key for s in again}) > 1:
        return _grade("hedged", f"asks again: {_said(text, again[-1])}", names_stale=named_stale)
    finals = [s for s in leaders if s.final]
    if not finals and len({s.key for s in live if s.mention.who != OTHER}) > 1 and _one_of(text, sentences, live):
        return _grade("hedged", f"one of several: {_said(text, live[-1])}", names_stale=named_stale)
    if finals and _answers_twice(text, sentences, live):
        return _grade("hedged", f"two answers: {_said(text, finals[-1])}", names_stale=named_stale)
    if finals and len({s.key for s in leaders}) > 1:
        last = finals[-1].sentence
        latest = [s for s in leaders if s.sentence == last]
        leaders = latest or leaders
    return _verdict(text, value, leaders, standings, sentences, asked, named_stale)


def _one_of(text: Text, sentences: list[Sentence], live: list[Standing]) -> bool:
    """ "One of the following: A; B"."""
    cues = [c for s in sentences for clause in s.clauses for c in clause.cues if c[2] is Cue.HEDGE]
    return any(text.lower[c[0]] == "one" and c[0] < live[0].mention.first for c in cues)


def _answers_twice(text: Text, sentences: list[Sentence], live: list[Standing]) -> bool:
    """ "Answer: A" and then "Answer: B", with the same words before both and nothing that takes A back."""
    cues = [c[0] for s in sentences for clause in s.clauses for c in clause.cues if c[2] is Cue.FINAL]
    for a, b in pairwise(live):
        if a.key == b.key or b.mention.first - a.mention.last > 12:
            continue
        labels = []
        for s, after in ((a, a.mention.first - 8), (b, a.mention.last)):
            k = bisect_left(cues, s.mention.first) - 1
            near = k >= 0 and cues[k] >= max(after, s.mention.first - 8)
            label = text.lower[cues[k] : s.mention.first] if near else []
            labels.append([w for w in label if len(w) > 2 and w not in STOP and w not in PLACES] or label)
        if labels[0] and labels[0] == labels[1]:
            return True
    return False


def _concludes_otherwise(text: Text, sentences: list[Sentence], standings: list[Standing]) -> str:
    """A labelled answer ("the answer is: ...") that names none of the known values, and nothing known after it."""
    low = text.lower
    for sentence in reversed(sentences):
        cue = next(
            (
                c
                for cl in reversed(sentence.clauses)
                for c in reversed(cl.cues)
                if c[2] is Cue.FINAL and "answer" in low[c[0] : c[1]]
            ),
            None,
        )
        if cue is None:
            continue
        if any(s.mention.last > cue[0] for s in standings):
            return ""
        if any(c[2] in (Cue.REFUSAL, Cue.HEDGE) for cl in sentence.clauses for c in cl.cues):
            return ""
        words = [w for w in low[cue[1] : sentence.last] if w[0].isalnum()]
        content = [w for w in words if w not in STOP]
        if content and len(words) <= 10 and not set(words) & {"above", "same", "this", "that", "it"}:
            return text.quote(cue[0], sentence.last)
        return ""
    return ""


def _said(text: Text, s: Standing) -> str:
    first, last = max(0, s.mention.first - 6), min(len(text.lower), s.mention.last + 4)
    note = f" [{', '.join(s.notes)}]" if s.notes else ""
    return f"{text.quote(s.mention.first, s.mention.last)!r} in {text.quote(first, last)!r}{note}"


def _verdict(
    text: Text,
    value: Value,
    leaders: list[Standing],
    standings: list[Standing],
    sentences: list[Sentence],
    asked: Question,
    named_stale: bool,
) -> Grade:
    whos = {s.mention.who for s in leaders}
    keys = {s.key for s in leaders}
    lead = leaders[-1]
    if GOLD in whos and OTHER in whos:
        others = {s.key for s in leaders if s.mention.who == OTHER}
        return _grade(
            "hedged",
            f"names the gold and another value: {_said(text, lead)} ({len(others)})",
            names_stale=STALE in whos,
        )
    if GOLD in whos and STALE in whos:
        picked = _about_asked(text, leaders, sentences, asked)
        if picked is None:
            return _grade("hedged", f"stands behind several values: {_said(text, lead)}", names_stale=True)
        lead, whos, keys = picked, {picked.mention.who}, {picked.key}
        leaders = [lead]
    rival = rivals(text, lead, leaders, standings, sentences, asked, value)
    if rival:
        kind, why = rival
        if kind == "hedged":
            return _grade("hedged", why, names_stale=STALE in whos or named_stale)
        return _grade("wrong", why)
    if whos == {GOLD}:
        return _grade("correct", f"commits to {_said(text, lead)}")
    if STALE in whos:
        if len(keys) > 1 and OTHER in whos:
            return _grade("hedged", f"stands behind several values: {_said(text, lead)}", names_stale=True)
        return _grade("stale", f"commits to the superseded {_said(text, lead)}")
    return _grade("wrong", f"commits to another value: {_said(text, lead)}")


def _about_asked(text: Text, leaders: list[Standing], sentences: list[Sentence], asked: Question) -> Standing | None:
    """Several values, each said of something else ("12 on the north field and 9 on the south field"): the one whose
    clause shares more with the question, when every other clause has a noun of its own."""
    clauses = [c for s in sentences for c in s.clauses]
    low = text.lower
    owned = {i for s in leaders for i in range(s.mention.first, s.mention.last)}
    around: list[set[str]] = []
    for s in leaders:
        c = clauses[s.clause]
        around.append(
            {
                canon(low[i])
                for i in range(c.first, c.last)
                if i not in owned and low[i][0].isalpha() and low[i] not in STOP and low[i] not in _SOURCES
            }
        )
    shares = [len(nouns & asked.canon) for nouns in around]
    best = max(shares)
    picked = [s for s, share in zip(leaders, shares, strict=True) if share == best]
    if not best or len({s.key for s in picked}) > 1:
        return None
    own = set().union(*(nouns for nouns, share in zip(around, shares, strict=True) if share == best))
    lesser = [nouns for nouns, share in zip(around, shares, strict=True) if share < best]
    return picked[-1] if all(nouns - own - asked.canon for nouns in lesser) else None


_SOURCES = words("per another other note notes session message entry according says say said earlier")


def _refusal_prevails(
    text: Text, live: list[Standing], refusals: list[tuple[int, int, Cue]], sentences: list[Sentence]
) -> bool:
    """Whether "I don't know" outweighs the values named around it."""
    top = max(s.rank for s in live)
    leaders = [s for s in live if s.rank > top - 3.0]
    last_refusal = refusals[-1][0]
    final_refusal = -1
    for s in sentences:
        finals = [c[0] for cl in s.clauses for c in cl.cues if c[2] is Cue.FINAL]
        if finals:
            inside = [c[0] for cl in s.clauses for c in cl.cues if c[2] is Cue.REFUSAL]
            if inside:
                final_refusal = max(final_refusal, inside[0])
    if all(s.mention.who == OTHER for s in leaders):
        first_after = [s for s in leaders if s.mention.first > refusals[0][0]]
        return not any(_answers(text, s) for s in first_after)
    if top < STATED and all(s.mention.first < last_refusal for s in leaders):
        return True
    if top < STATED and all(s.mention.who == STALE for s in leaders) and _lacks_current(sentences, leaders[0]):
        return True
    after_final = [s for s in leaders if s.mention.first > final_refusal]
    return final_refusal >= 0 and not after_final and not any(s.final for s in leaders)


def _lacks_current(sentences: list[Sentence], lead: Standing) -> bool:
    """ "I don't know the current one. It was M.": the refusal before it is about what holds now."""
    return any(
        {Cue.REFUSAL, Cue.CURRENT} <= {c[2] for c in clause.cues} and clause.first < lead.mention.first
        for sentence in sentences
        for clause in sentence.clauses
    )


def _answers(text: Text, s: Standing) -> bool:
    """A value given in a short clause of its own, as an answer is."""
    low = text.lower
    i, j = s.mention.first, s.mention.last
    while i and low[i - 1] not in (".", ",", ";", ":", "\n", "!", "?", "—", "but", "so"):
        i -= 1
    while j < len(low) and low[j] not in (".", ",", ";", "\n", "!", "?", "—"):
        j += 1
    return (j - s.mention.last) <= 1 and (s.mention.first - i) <= 6


def _without_commitment(
    text: Text,
    standings: list[Standing],
    known: list[Standing],
    sentences: list[Sentence],
    named_stale: bool,
    asked: Question,
) -> Grade:
    """No mention stands: refused, hedged by echo or condition, or wrong."""
    offered = {s.key for s in known if s.dead.startswith("conditional")}
    if len(offered) > 1 and all(s.key in offered for s in standings):
        return _grade("hedged", f"{_said(text, known[-1])}: {known[-1].dead}", names_stale=named_stale)
    torn = [s for s in known if s.dead.startswith(("echo", "inside"))]
    if len({s.key for s in torn}) > 1 and _refusals(sentences) and all(s.sentence == torn[0].sentence for s in torn):
        return _grade("hedged", f"does not know which: {_said(text, torn[-1])}", names_stale=named_stale)
    if _refusals(sentences) and not _names_other_after(text, sentences, standings, asked):
        return _grade("refused", f"says that it does not know: {_quote_refusal(text, sentences)}")
    echoes = [s for s in known if s.dead.startswith(("echo", "inside", "conditional"))]
    echoing = {e.sentence for e in echoes}
    if echoes and all(s.sentence in echoing for s in known):
        return _grade("hedged", f"{_said(text, echoes[-1])}: {echoes[-1].dead}", names_stale=named_stale)
    if known:
        return _grade("wrong", f"{_said(text, known[-1])}: {known[-1].dead}")
    if not standings and _torn(text, sentences):
        return _grade("refused", "says that it cannot tell")
    hedges = [c for s in sentences for cl in s.clauses for c in cl.cues if c[2] is Cue.HEDGE]
    if (
        hedges
        and not standings
        and text.lower[hedges[0][0]] in ("whichever", "whatever", "either", "depends", "depending", "both", "any")
    ):
        return _grade("hedged", f"names no value: {text.quote(hedges[0][0], hedges[0][1])!r}")
    if not standings and _names_nothing(text, asked):
        return _grade("hedged", "names no value")
    return _grade("wrong", "does not name the value")


def _torn(text: Text, sentences: list[Sentence]) -> bool:
    """ "I can't tell which", without a value."""
    cues = [c for s in sentences for cl in s.clauses for c in cl.cues if c[2] is Cue.HEDGE]
    return any(text.lower[c[0]] in ("can't", "cannot", "not", "don't") for c in cues)


def _names_other_after(text: Text, sentences: list[Sentence], standings: list[Standing], asked: Question) -> bool:
    """ "I'm not sure about X. It's Dr. Hale, though.": a name of no known value, given in a later sentence."""
    if standings or len(sentences) != 2 or any(c[2] is Cue.REFUSAL for cl in sentences[1].clauses for c in cl.cues):
        return False
    first, last = sentences[1].first, sentences[1].last
    words = text.lower[first:last]
    opens = words[0] in ("it's", "it", "that's") or (words[0] in ("the", "your") and ("is" in words or "was" in words))
    content = sum(w[0].isalnum() and w not in STOP and canon(w) not in asked.canon for w in words[1:])
    return opens and not sentences[1].is_question and 1 <= content <= 3


def _names_nothing(text: Text, asked: Question) -> bool:
    """ "The answer is whatever is current": words about an answer, none that could be one."""
    low = text.lower
    if len(low) <= 14 and any(w in _WHEREVER for w in low):
        return True
    return any(w in _ANY for w in low) and all(
        w in _ANY or w in STOP or w in _ABOUT or canon(w) in asked.canon or not w[0].isalnum() for w in low
    )


_WHEREVER = words("whichever whatever wherever whoever whenever")
_ANY = words("current latest newest recent correct right last whichever whatever either applicable valid true")
_ABOUT = words("answer value most gave given said told chose is one choice option note notes mentioned")

__all__ = ["GRADER_VERSION", "Grade", "Mention", "Verdict", "grade", "mentions_value"]
