"""Whose value is it? The person a clause speaks of, against the person the question asks about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from rewards.clauses import Clause
from rewards.lexicon import PERSON_VERBS, PERSONS, SPEECH_VERBS, STOP
from rewards.mentions import Mention
from rewards.text import Text, tokenise
from rewards.units import MONTHS, WEEKDAYS
from rewards.values import canon
from rewards.words import words

_NAMES = re.compile(r"\bname of (?:my|our)\b|'s (?:first |last |full )?name\b|\bcalled\b")
_SELF = words("i me we us i've i'm i'd i'll we've we're")
_SELF_OWN = frozenset(("my", "our", "mine", "ours"))
_THIRD = words("he she they he's she's they're him them they've")
_YOU = frozenset(("you", "you've", "you're", "you'd"))
_HE, _SHE = frozenset(("he", "he's", "him")), frozenset(("she", "she's", "her"))
_WOMEN = words(
    "mother mom mum sister aunt niece grandma grandmother wife girlfriend fiancee daughter stepmom stepsister landlady"
)
_MEN = words("father dad brother uncle nephew grandpa grandfather husband boyfriend son stepdad stepbrother landlord")
_AFTER_LINKS = words("where for on is are was were belongs of has have goes lives who's")
_AFTER_BREAKS = words("with near from by to like because after before since when as told said mentioned gave")

REACH = 30
"""How many tokens before a mention an owner may stand; keeps the time linear."""


@dataclass(frozen=True)
class Asked:
    """Who the question is about: the asker, named people, relatives."""

    me: bool
    persons: frozenset[str]
    """Canonical relation nouns and lower-case names in the question."""
    who: bool
    """The answer itself is a person."""
    content: frozenset[str]
    """Its content words in canonical spelling."""
    named: bool
    """The question has the name of a person ("Leila's", "my brother Emil", "does Dov")."""


@lru_cache(maxsize=4096)
def asked_about(question: str) -> Asked:
    text = tokenise(question)
    low = text.lower
    persons = {canon(w) for w in low if w.removesuffix("'s") in PERSONS or canon(w) in PERSONS}
    relatives, named = bool(persons), False
    for i, word in enumerate(low):
        if (
            i
            and word[0].isalpha()
            and text.capital(i)
            and word not in STOP
            and word not in MONTHS
            and word not in WEEKDAYS
        ):
            persons.add(canon(word))
            before = low[i - 1].removesuffix("'s")
            named = named or word.endswith("'s") or before in PERSONS or before in _ASKING
    me = bool(_SELF & set(low)) or not low or (not relatives and not named)
    who = bool({"who", "whom", "whose", "who's"} & set(low[:3])) or bool(_NAMES.search(text.raw.lower()))
    content = frozenset(canon(w) for w in low if w[0].isalpha())
    return Asked(me, frozenset(persons), who, content, named)


def belongs_to_other(
    text: Text, clause: Clause, mention: Mention, asked: Asked, inherited: str, inside: set[int]
) -> tuple[bool, str]:
    """(whether the mention is about someone else, who the clause is about when that is someone else, else "").
    ``inherited`` is the latter for the clause before: "she" may stand for it."""
    low = text.lower
    last = mention.last
    if asked.who and last < len(low) and low[last - 1].endswith("'s") and low[last] in PERSONS:
        return True, low[last]  # "Oskar's sister Vera" names the sister
    verdict: bool | None = None
    subject: str | None = None
    start = max(clause.first, mention.first - REACH)
    for i in range(start, mention.first):
        if i in inside:
            continue
        other = _entity(text, i, asked, clause.first)
        if other is not None:
            verdict = other
            subject = (low[i] if other else "") if subject is None else subject
    if verdict is None:
        pronoun = next((low[i] for i in range(start, mention.first) if low[i] in _THIRD), "")
        if pronoun:
            verdict = inherited != "" and not (
                (pronoun in _HE and inherited in _WOMEN) or (pronoun in _SHE and inherited in _MEN)
            )
    if verdict is None or verdict is False:
        linked, blocked = False, False
        start = mention.last + 1 if _counts(text, mention, asked) else mention.last
        for i in range(start, min(clause.last, mention.last + 9)):
            if low[i] in _AFTER_BREAKS:
                blocked = True
            if low[i] in _AFTER_LINKS:
                linked = True
            owner = low[i + 1] if low[i] == "to" and low[i - 1] in ("belongs", "belonged") and i + 1 < len(low) else ""
            if owner[:1].isalpha() and owner not in STOP and canon(owner) not in asked.persons:
                return True, owner  # "M belongs to Renske"
            owned = low[i] == "your" and linked and i + 1 < len(low) and not asked.me and bool(asked.persons)
            if owned and not blocked and canon(low[i + 1]) not in asked.persons and low[i + 1] not in PERSONS:
                return True, "you"  # "M is your team", of somebody else's team
            other = _entity(text, i, asked, clause.first)
            if other is None:
                continue
            if other and linked and not blocked:
                return True, low[i]
            if not other:
                break
    if verdict is None:
        return False, ""
    return verdict, subject if subject is not None else (inherited if verdict else "")


def _counts(text: Text, mention: Mention, asked: Asked) -> bool:
    """Whether the noun after a number is what is counted ("7 cousins") and so no owner."""
    if mention.quantity is None or mention.last >= len(text.lower):
        return False
    noun = text.lower[mention.last]
    return noun[0].isalpha() and noun not in STOP


def _owned(low: list[str], i: int, start: int) -> bool:
    """Whether the person at token i is introduced as one: "your sister", "Ravi's flatmate", "for guests"."""
    if i == start or word_opens(low, i):
        return True
    return any(low[k] in _OWNERS or low[k].endswith("'s") for k in range(max(start, i - 2), i))


def word_opens(low: list[str], i: int) -> bool:
    return i == 0 or not low[i - 1][0].isalnum()


_ASKING = words("does did is was has will do can could are")
_TIME_OWNERS = words("today yesterday tomorrow week month year day everyone let it that what there here")
_ARRANGES = words("updated revised replaced swapped switched changed moved traded transferred enrolled picked chose")
"""What "you" may do about the value of another person."""
_NO_NAMES = words(
    "answer total count number amount note notes message messages update list record records collection history"
    " value information profile data anyone nobody today age size price rent time date day result score"
)
_OWNERS = words("your my his her their our for a an another some")


def _entity(text: Text, i: int, asked: Asked, start: int) -> bool | None:
    """None when token i names nobody; else whether that is somebody other than the asked person."""
    low = text.lower
    word = low[i]
    if not word[0].isalpha():
        return None
    following = low[i + 1] if i + 1 < len(low) else "."
    base = word.removesuffix("'s")
    if word in ("hers", "his", "theirs", "yours", "mine") and following in ("is", "was", "are", "'s"):
        if word in ("yours", "mine"):
            return not asked.me and bool(asked.persons)
        men, women = asked.persons & _MEN, asked.persons & _WOMEN
        return bool(women) if word == "his" else bool(men) if word == "hers" else None
    if (word in ("someone", "somebody") and following == "else") or (word == "my" and following == "own"):
        return True
    if base == "user":
        return not asked.me and not asked.who and bool(asked.persons)
    if word in _YOU:
        k = i + 1
        while k < len(low) and low[k] in (
            "have",
            "had",
            "also",
            "previously",
            "just",
            "once",
            "recently",
            "did",
            "first",
            "initially",
        ):
            k += 1
        if k < len(low) and (
            low[k] in SPEECH_VERBS or (low[k] in _ARRANGES and not (asked.named and low[k + 1 : k + 2] != ["it"]))
        ):
            return None
        return not asked.me and not asked.who and bool(asked.persons)
    if base in PERSONS:
        owner = word.endswith("'s")
        if canon(base) in asked.persons:
            return None if owner and canon(following) in PERSONS else False
        owns = owner and following not in STOP and canon(following) in asked.content
        if asked.who and not asked.persons and low[max(0, i - 2)] != "for" and not owns:
            return None
        by_marriage = low[i + 1 : i + 5] == ["-", "in", "-", "law"]
        if (following == "-" and not by_marriage) or following[0].isdigit() or not _owned(low, i, start):
            return None
        return not (i > 2 and low[i - 2] == "and" and low[i - 3] in _YOU)  # "you and your friends"
    if asked.persons and canon(base) in asked.persons:
        return None if word != base and canon(following) in PERSONS else False
    own = word != base and following in ("is", "was") and word_opens(low, i) and word not in STOP
    if own and base not in asked.content | _NO_NAMES | _TIME_OWNERS:
        return True  # "Rolf's is M"
    theirs = word != base and following not in STOP and canon(following) in asked.content
    if theirs and word not in STOP and base not in asked.content | _NO_NAMES | _TIME_OWNERS:
        return True  # "Vera's emergency contact"
    if asked.who or word in STOP or base in _TIME_OWNERS:
        return None
    if word != base:  # "Omar's is Saturday"
        return True if asked.named or following in PERSONS else None
    opens = i == start or not low[i - 1][0].isalpha() or low[i - 1] in ("and", "but", "while", "whereas")
    if following in PERSON_VERBS and opens:
        return True  # "Omar lives in"
    if word not in _NO_NAMES and word[-2:] != "ly" and canon(word) not in asked.content:
        if low[i - 1] == "what" and i and following in ("is", "was", "does"):
            return True  # "Law is what Piet is studying"
        if following == "is" and opens and asked.named and low[i + 2 : i + 4] == ["the", "one"]:
            return True
        if following == "has" and (opens or low[i - 1] in ("that", "which", "what")):
            return True  # "Maya has 2", "the number that Carla has won"
        if (
            following == "is"
            and opens
            and asked.named
            and (low[i + 2] if i + 2 < len(low) else ".")[0] in "a0123456789"
        ):
            return True  # "Karim is a welder", "Edda is 9"
    if asked.named and i and low[i - 1] == "for" and any(w in asked.persons for w in low):
        return True  # "Friday for Leila, Saturday for Omar"
    return None
