"""Questions about what was never said: right is an answer that says so and asserts no value for it."""

from __future__ import annotations

from rewards.clauses import scan, segment
from rewards.cues import Cue
from rewards.lexicon import STOP
from rewards.mentions import find, read_answer
from rewards.quantities import parse
from rewards.text import Text
from rewards.values import Question, canon, read_value
from rewards.words import words

_GUESSES = [
    "probably",
    "likely",
    "presumably",
    "guess",
    "estimate",
    "assume",
    "suppose",
    "think",
    "believe",
    "perhaps",
    "maybe",
]
_DENIALS = words("not never no nothing none only without")


def says_unknown(text: Text, gold: str, asked: Question) -> tuple[bool, str]:
    """(whether the answer says that the asked-about thing is not known and leaves it at that, why)."""
    low = text.lower
    if not low:
        return False, "empty answer"
    first = gold.split(".")[0].strip()
    packed = first if first and len(first) <= 4 and parse(read_answer_text(first)) else ""
    if packed:
        found = find(read_answer(text, numeric=True), read_value(packed, asked.text), asked)
        if found and (len(low) <= 4 or found[0].first <= 5):
            return True, f"says {packed!r}"
    sentences = segment(text, [], scan(text, []))
    clauses = [c for s in sentences for c in s.clauses]
    said = [
        (cue[0], n)
        for n, c in enumerate(clauses)
        for cue in c.cues
        if cue[2] is Cue.REFUSAL and low[cue[0]] not in ("please", "could", "can", "would", "missing", "lacking")
    ]
    for n, clause in enumerate(clauses):
        shared = {canon(low[i]) for i in range(clause.first, clause.last)} & asked.canon
        denied = [
            c for c in clause.cues if c[2] is Cue.NEG and low[c[0]] not in ("wrong", "false", "instead", "rather")
        ]
        bare_no = next((i for i in range(clause.first, clause.last) if low[i] in ("no", "zero", "none")), None)
        if shared and denied:
            said.append((denied[0][0], n))
        elif shared and bare_no is not None and clause.last - bare_no > 1:
            said.append((bare_no, n))
    if not said:
        return False, "does not say that this was never mentioned"
    said.sort()
    place = text.quote(said[0][0], min(said[0][0] + 5, len(low)))
    quantities = parse(text)
    lead = sentences[0]
    lead_refuses = any(lead.first <= at < lead.last for at, _ in said)
    if (
        not lead_refuses
        and quantities
        and lead.first <= quantities[0].first < lead.last
        and lead.last - lead.first <= 6
    ):
        return False, f"asserts {text.quote(lead.first, lead.last)!r}"
    last_clause = said[-1][1]
    for number in range(last_clause + 1, len(clauses)):
        clause = clauses[number]
        inside = [q for q in quantities if clause.first <= q.first < clause.last]
        if not inside:
            continue
        words = [low[i] for i in range(clause.first, clause.last)]
        concluded = any(c[2] is Cue.FINAL for c in clause.cues) or (
            number
            and any(c[2] is Cue.FINAL for c in clauses[number - 1].cues)
            and clauses[number - 1].last - clauses[number - 1].first <= 4
        )
        guessed = any(w in _GUESSES for w in words)
        asserted = words[0] in ("it", "it's", "that's", "they") and clause.opener in (
            "but",
            ".",
            "so",
            ";",
            "however",
            "yet",
        )
        content = {canon(w) for w in words if w not in STOP}
        named = (
            len(content & asked.canon) >= 1
            and clause.opener in ("but", "so", "however")
            and not asked.canon.isdisjoint(content)
        )
        if (
            concluded
            or guessed
            or asserted
            or (named and not any(w in _DENIALS for w in words) and len(content & asked.canon) >= 2)
        ):
            return False, f"asserts a value all the same: {text.quote(clause.first, clause.last)!r}"
    return True, f"says that it is not known: {place!r}"


def read_answer_text(words: str) -> Text:
    from rewards.text import tokenise

    return tokenise(words)
