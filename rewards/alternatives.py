"""Alternatives that no list of values knows: "tram 5 or tram 6", "Leiden / Bruges", "Leiden. Oops, I mean Bruges"."""

from __future__ import annotations

from rewards.clauses import Sentence
from rewards.cues import Cue
from rewards.lexicon import PLACES as PREPOSITIONS
from rewards.lexicon import STOP
from rewards.mentions import OTHER
from rewards.standings import Standing
from rewards.text import Text
from rewards.units import DURATIONS, MONTHS, NUMBER_WORDS, WEEKDAYS
from rewards.values import Question, Value, canon
from rewards.words import words

_OR = frozenset(("or", "/", "oder", "ou"))
_DOUBT = frozenset(("maybe", "perhaps", "possibly", "probably"))
_GUESSING = words(", in at on to maybe perhaps possibly the a and but probably - — ( )")
_NOT_ALTERNATIVES = words(
    "any so thereabouts something whatever not if at in on i you we it they he she as for to when how maybe else"
    " otherwise what more less fewer that let just possibly perhaps need there this"
)
_AFTER_CORRECTION = words(
    "i mean meant it's it is was that be should no sorry , : . - — make to the a an actually rather in at on not"
    " wait hmm oops your"
)
_ADVERBS = words(
    "thanks please yes no okay ok sure sorry hi hello right correct indeed now today currently only always mostly"
    " still again too definitely certainly exactly period done usa uk us count reckoning memory records"
)
PLACES = words(
    "usa us uk england scotland wales ireland germany france spain portugal italy switzerland austria netherlands"
    " belgium denmark sweden norway finland iceland poland czechia hungary greece turkey russia ukraine romania"
    " bulgaria croatia serbia slovenia slovakia estonia latvia lithuania canada mexico brazil argentina chile peru"
    " colombia china japan korea india pakistan thailand vietnam indonesia malaysia singapore philippines"
    " australia zealand egypt morocco kenya nigeria africa israel lebanon europe asia america alabama alaska"
    " arizona arkansas california colorado connecticut delaware florida georgia hawaii idaho illinois indiana iowa"
    " kansas kentucky louisiana maine maryland massachusetts michigan minnesota mississippi missouri montana"
    " nebraska nevada hampshire jersey carolina dakota ohio oklahoma oregon pennsylvania tennessee texas utah"
    " vermont virginia washington wisconsin wyoming ontario quebec al ak az ar ca co ct de fl ga hi il ia ks ky la"
    " ma md mi mn ms mo mt ne nv nh nj nm ny nc nd oh pa ri sc sd tn tx ut vt va wa wv wi wy dc bc"
)
"""Countries and states: "Leiden, Netherlands" names one place."""


def rivals(
    text: Text,
    lead: Standing,
    leaders: list[Standing],
    standings: list[Standing],
    sentences: list[Sentence],
    asked: Question,
    value: Value,
) -> tuple[str, str] | None:
    """("hedged" | "wrong", why) when something next to the leading mention undoes its commitment."""
    if lead.rank >= 80:
        return None
    for s in leaders:
        joined = _joined_known(text, s, standings)
        if joined:
            return "hedged", joined
        other = _or_beside(text, s, standings)
        if other:
            return "hedged", f"offers an alternative: {other!r}"
    added = _added(text, lead, standings, sentences)
    if added:
        return "hedged", f"adds another value: {added!r}"
    corrected = _corrected_to_unknown(text, leaders, sentences)
    if corrected:
        return "wrong", f"corrected to another value: {corrected!r}"
    extra = _extra_item(text, lead, value)
    if extra:
        return "wrong", f"adds another item: {extra!r}"
    if not any(f.kind == "list" for f in value.forms):
        listed = _bare_list(text, leaders, standings, sentences, asked)
        if listed:
            return "hedged", f"a list of values: {listed!r}"
    return None


def _neighbours(s: Standing, standings: list[Standing]) -> list[Standing]:
    return [standings[i] for i in (s.index - 1, s.index + 1) if 0 <= i < len(standings)]


def _joined_known(text: Text, s: Standing, standings: list[Standing]) -> str:
    """Strung to another live value by "or" or a slash."""
    low = text.lower
    for other in _neighbours(s, standings):
        if other.key == s.key or (other.dead and other.dead != "inside a question"):
            continue
        a, b = (s, other) if s.mention.first < other.mention.first else (other, s)
        between = low[a.mention.last : b.mention.first]
        guessing = any(w in _DOUBT for w in between) and all(w in _GUESSING or w in PREPOSITIONS for w in between)
        opened = low[max(0, a.mention.first - 2) : a.mention.first]
        if "between" in opened and "and" in between and len(between) <= 4:
            return f"{text.quote(a.mention.first, b.mention.last)!r}"
        notes = " ".join(other.notes).lower()
        doubted = other is b and not other.dead and ("might" in notes or "could" in notes)
        if doubted and other.sentence == s.sentence:  # "M, though it might be N"
            return f"{text.quote(a.mention.first, b.mention.last)!r}"
        offered = any(w in _OR for w in between) and (between[-1] in _OR or not any(w in (".", ";") for w in between))
        if len(between) <= 6 and (guessing or offered):
            return f"{text.quote(a.mention.first, b.mention.last)!r}"
    return ""


_ADDS = words(
    "alternative alternatively backup fallback or also additionally too moreover plus likewise well addition possibly"
    " maybe perhaps"
)
_BARE = words("answer choice guess it's it is as in the a an at on and that's that , :")


def _added(text: Text, lead: Standing, standings: list[Standing], sentences: list[Sentence]) -> str:
    """A later sentence that says nothing but one more value: "M. Additionally, N.", "M; it's also N", "M. N too."."""
    low = text.lower
    for s in standings[lead.index + 1 :]:
        if s.dead or s.key == lead.key or s.mention.who == OTHER or s.sentence == lead.sentence:
            continue
        first, last = sentences[s.sentence].first, sentences[s.sentence].last
        rest = [*low[first : s.mention.first], *low[s.mention.last : last]]
        if any(w in _ADDS for w in rest) and all(w in _ADDS or w in _BARE or w in PREPOSITIONS for w in rest):
            return text.quote(first, last)
    return ""


def _or_beside(text: Text, s: Standing, standings: list[Standing]) -> str:
    low, n = text.lower, len(text.lower)
    i = s.mention.last
    if i < n and low[i] == ",":
        i += 1
    per = i + 1 < n and low[i] == "/" and (low[i + 1] in DURATIONS or low[i + 1] in ("person", "night", "pp", "each"))
    offered = i + 1 < n and low[i] in _OR and low[i + 1] not in _NOT_ALTERNATIVES and low[i + 1] != "rather" and not per
    if i + 1 < n and low[i] == "or" and low[i + 1] in ("fewer", "more", "less") and s.mention.quantity is not None:
        offered = True  # a bound, not a value
    if i + 2 < n and low[i] in _OR and low[i + 1 : i + 3] in (["any", "other"], ["something", "else"]):
        offered = True
    if offered and (low[i] != "/" or not low[i + 1][0].isdigit() or s.mention.quantity is not None):
        again = any(t.key == s.key and 0 <= t.mention.first - i <= 4 for t in _neighbours(s, standings))
        if not again:  # "7, or seven" offers nothing
            return text.quote(s.mention.first, min(i + 4, n))
    i = s.mention.first - 1
    while i >= 0 and low[i] in ("the", "a", "an", "your", "maybe", "perhaps", "possibly", "in", "at", "on"):
        i -= 1
    if i < 1 or low[i] not in _OR:
        return ""
    if any(t.key == s.key and 0 <= i - t.mention.last <= 1 for t in _neighbours(s, standings)):
        return ""
    before = low[i - 1]
    if before == ",":
        return text.quote(max(0, i - 3), s.mention.last) if i > 1 and low[i - 2] not in STOP else ""
    if before in ("whether", "not", ".", "\n") or (before in STOP and before != "one"):
        return ""
    return text.quote(max(0, i - 2), s.mention.last)


def _corrected_to_unknown(text: Text, leaders: list[Standing], sentences: list[Sentence]) -> str:
    """A correcting phrase after the last leading mention, followed by a short phrase that is none of the values."""
    low, n = text.lower, len(text.lower)
    last = max(s.mention.last for s in leaders)
    places = [
        c for sent in sentences for cl in sent.clauses for c in cl.cues if c[2] is Cue.CORRECTION and c[0] >= last
    ]
    for place in places:
        if (
            low[place[0]] in ("actually", "hmm", "wait", "hold", "hang", "rather", "er", "uh", "apologies")
            and place[1] < n
        ):
            strict = True
        else:
            strict = False
        i = place[1]
        while i < n and (low[i] in _AFTER_CORRECTION or low[i] == "."):
            i += 1
        if i >= n:
            continue
        j = i
        while j < n and low[j] not in (".", ",", ";", "\n", "!", "?", ":"):
            j += 1
        phrase = low[i:j]
        if any(s.mention.first <= i < s.mention.last for s in leaders):
            continue
        content = [w for w in phrase if w not in STOP]
        short = 0 < len(content) <= 3 and len(phrase) <= 4 and not any(w in _VERBISH for w in phrase)
        opens = place[0] == 0 or not low[place[0] - 1][0].isalnum()
        if short and (not strict or (opens and len(phrase) <= 2)):
            return text.quote(place[0], j)
    return ""


_VERBISH = words(
    "for about confusion check think thought know help let me any further the misunderstanding delay"
    " inconvenience wrong right"
)


def _extra_item(text: Text, lead: Standing, value: Value) -> str:
    """One more item strung to a list gold."""
    if not any(f.kind == "list" for f in value.forms):
        return ""
    low, n = text.lower, len(text.lower)
    i = lead.mention.last
    if i < n and low[i] == ",":
        i += 1
    if i < n and low[i] in ("and", "&", "plus"):
        j = i + 1
        while j < n and low[j] not in (".", ",", ";", "\n", "!", "?", "(", ")"):
            j += 1
        piece = low[i + 1 : j]
        content = [w for w in piece if w not in STOP]
        if content and len(piece) <= 3 and piece[0] not in ("you", "it", "that", "i", "they", "not", "no"):
            return text.quote(lead.mention.first, j)
    return ""


_TIMED = frozenset(
    (
        Cue.PAST,
        Cue.CURRENT,
        Cue.NEG,
        Cue.UNTIL,
        Cue.CORRECTION,
        Cue.FINAL,
        Cue.LEAVE,
        Cue.GOTO,
        Cue.BEFORE,
        Cue.AFTER,
        Cue.FIRST,
    )
)


_SEPARATORS = frozenset((",", "/", "\n", "|", "&", "and", "or", ";", "•", ".", "(", ")", ":", "then"))
_NUMBER_SIGNS = words("pg p pp no nr vol ch")
_ITEM_WORDS = words("the a an your my in at on to of with for by")


def _bare_list(
    text: Text, leaders: list[Standing], standings: list[Standing], sentences: list[Sentence], asked: Question
) -> str:
    """The whole answer is short items and separators, more than one of them, and not all the same value."""
    low, n = text.lower, len(text.lower)
    if n > 200 or any(s.dead for s in standings):
        return ""
    if any(cue[2] in _TIMED for sentence in sentences for clause in sentence.clauses for cue in clause.cues):
        return ""
    led = {s.key for s in leaders}
    owned = {
        i for s in standings if s.key in led or s.mention.who != OTHER for i in range(s.mention.first, s.mention.last)
    }
    items: list[list[int]] = [[]]
    for i, w in enumerate(low):
        if i not in owned and w in _SEPARATORS and not (w == "." and low[i - 1] in _NUMBER_SIGNS):
            if w in "():":
                return ""
            items.append([])
        elif w[0].isalnum():
            items[-1].append(i)
    items = [item for item in items if item]
    if len(items) < 2:
        return ""
    foreign = 0
    for item in items:
        words = [low[i] for i in item]
        if any(i in owned for i in item):
            if any(low[i] in STOP and low[i] not in _ITEM_WORDS for i in item if i not in owned):
                return ""
            continue
        content = [w for w in words if w not in STOP]
        if len(words) > 4 or not content or any(w in STOP and w not in _ITEM_WORDS for w in words):
            return ""
        if all(w in _ADVERBS or w in PLACES or w.endswith("ly") for w in content):
            continue
        if all(canon(w) in asked.canon for w in content):
            continue
        model = leaders[0].mention.quantity
        if all(w[0].isdigit() for w in content) and model is None:
            continue
        if all(w in WEEKDAYS or w in MONTHS for w in content) and (
            model is None or model.kind in ("date", "clock", "colon")
        ):
            continue
        if model is not None and not any(w[0].isdigit() or w in NUMBER_WORDS for w in words):
            continue  # "$95, and parts cost extra"
        foreign += 1
    if not foreign:
        return ""
    return text.raw[:80]
