"""Strict grading of phrase answers: the gold phrases, all of them, and nothing that a person would take for another.

The gold phrases are found first, longest first, and the text around them must be something that one says around an
answer: a lead-in ("the default field is"), the kind of thing ("link", "tab"), a place ("in the toolbox"), a reason.
Whatever else is left over is a second answer, a doubt or a denial, and the answer is wrong. So a list of everything,
an echo of the question and "not true" all fail, while "The Bans link (in the toolbox)" passes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rewards.lme_v2_tokens import Token, clean, counts, joined, squash, tokenise
from rewards.lme_v2_words import (
    AGAINST,
    DOUBTS,
    FUNCTION,
    INEXACT,
    LINKS,
    MODIFIERS,
    NOUNS,
    PLACE_WORDS,
    PLACES,
    UNITS,
    VERBS,
)

FILLERS = FUNCTION | NOUNS
REASONS = ("because", "since", "due")
DETERMINERS = frozenset(("the", "a", "an", "these", "those", "all"))
MAX_PLACE = 15
"""Words of a phrase that says where; longer ones are another statement."""

MAX_LABEL, MAX_COUNTED = 4, 6
"""Words of a label before a colon, and of what a number counts."""

SUM = re.compile(r"\d\s*[+*×]\s*\d")

NONE_WORDS = {"none": ("neither", "nothing", "noneofthem", "noneofthese", "no"), "0": ("none", "no")}
"""Other ways to write a gold, by its squashed form."""

Piece = list[Token]


@dataclass(frozen=True, slots=True)
class Context:
    """What surrounds a match is judged by: the question's words and numbers, and what kind of gold it is."""

    asked: frozenset[str]
    numeric: bool
    """Whether the gold holds a number."""
    sole: bool
    """Whether the gold is one number and nothing else."""
    label: bool
    """Whether the gold is one phrase without a number."""
    offered: bool
    """Whether the question itself names a gold phrase, as when it lists options."""
    arrows: bool
    """Whether the question allows a path of arrows behind the answer."""

    def restates(self, token: Token) -> bool:
        """Whether a token may be used to restate the question. A number never beside a gold that holds one."""
        if token.kind == "number":
            return not self.numeric and token.text in self.asked
        return token.kind == "word" and self.known(token.text)

    def known(self, word: str) -> bool:
        """Whether a word may be used to restate the question."""
        if word in AGAINST or (self.numeric and word in INEXACT and word not in ("least", "minimum")):
            return False
        return word in FILLERS or word in self.asked or word in PLACES or word in PLACE_WORDS or word in VERBS


@dataclass(frozen=True, slots=True)
class Found:
    """Gold phrase `target` at tokens start..end-1."""

    target: int
    start: int
    end: int


def gold_phrases(gold: str, separators: Sequence[str] | None) -> list[list[Token]]:
    """The gold's phrases as tokens; a comma inside a number does not cut, and without separators it is one phrase."""
    parts, at = [], 0
    for cut in re.finditer("|".join(map(re.escape, filter(None, separators or ()))) or "(?!)", gold):
        place = cut.start()
        inside = cut[0] == "," and gold[place - 1 : place].isdigit() and gold[place + 1 : place + 4].isdigit()
        if not inside:
            parts.append(gold[at:place])
            at = cut.end()
    parts.append(gold[at:])
    return [tokens for part in parts if squash(tokens := tokenise(clean(part)))]


def context(question: str, phrases: Sequence[Sequence[Token]]) -> Context:
    tokens = tokenise(clean(question))
    asked = frozenset(token.text for token in tokens if token.kind in ("word", "number"))
    return Context(
        asked=asked,
        sole=len(phrases) == 1 and len(phrases[0]) == 1 and phrases[0][0].kind == "number",
        label=len(phrases) == 1 and not any(token.kind == "number" for token in phrases[0]),
        offered=any(all(token.text in asked for token in phrase if counts(token)) for phrase in phrases),
        numeric=any(token.kind == "number" for phrase in phrases for token in phrase),
        arrows=any(token.text == "arrow" for token in tokens),
    )


def match_phrases(
    answer: str, gold: str, *, separators: Sequence[str] | None, ordered: bool, question: str
) -> tuple[bool, str]:
    """Whether the answer gives exactly the gold phrases (in order when asked), and why."""
    phrases = gold_phrases(gold, separators)
    tokens = tokenise(clean(answer))
    if not phrases or not squash(tokens):
        return False, "nothing to compare"
    around = context(question, phrases)
    tokens = _last_sum(tokens) if len(phrases) == 1 and around.numeric else tokens
    if around.sole and SUM.search(answer.rpartition("=")[2]):
        return False, "a sum and not its result"
    head = _without_reason(tokens)
    wanted = {_first(phrases, index) for index in range(len(phrases))}
    if wanted <= {hit.target for hit in find(head, phrases)}:
        tokens = head
    found = find(tokens, phrases)
    missing = sorted(wanted - {hit.target for hit in found})
    if missing:
        return False, f"'{squash(phrases[missing[0]])}' is missing"
    if ordered and not _in_order([hit.target for hit in found], phrases):
        return False, "not in the asked order"
    complaint = _surroundings(tokens, found, around)
    return (False, complaint) if complaint else (True, "all phrases, nothing else")


def _first(phrases: Sequence[Sequence[Token]], index: int) -> int:
    """Equal gold phrases share one number."""
    form = squash(phrases[index])
    return next(i for i, phrase in enumerate(phrases) if squash(phrase) == form)


def _in_order(found: list[int], phrases: Sequence[Sequence[Token]]) -> bool:
    expected = [_first(phrases, index) for index in range(len(phrases))]
    if found == expected:
        return True
    once = [target for place, target in enumerate(found) if place == 0 or found[place - 1] != target]
    return once == expected


def find(tokens: Sequence[Token], phrases: Sequence[Sequence[Token]]) -> list[Found]:
    """Occurrences of gold phrases, the longest at each place, none overlapping."""
    forms = list(dict.fromkeys(squash(phrase) for phrase in phrases))
    numbers = {form: [squash(phrase) for phrase in phrases].index(form) for form in forms}
    spellings = {form: numbers[form] for form in forms}
    if len(forms) == 1:
        spellings |= dict.fromkeys(NONE_WORDS.get(forms[0], ()), 0)
    longest = max(map(len, spellings)) + 1
    found, at = [], 0
    while at < len(tokens):
        best: Found | None = None
        if tokens[at].kind in ("word", "number"):
            form = ""
            for end in range(at, min(len(tokens), at + 2 * longest)):
                token = tokens[end]
                if not counts(token):
                    continue
                form = joined(form, token.text)
                if len(form) > longest:
                    break
                target = _spelled(form, spellings)
                if target is not None:
                    best = Found(target, at, end + 1)
        if best:
            found.append(best)
            at = best.end
        else:
            at += 1
    return found


def _spelled(form: str, spellings: dict[str, int]) -> int | None:
    """The target that is spelled so; a plural s more or less does not matter in words of four letters and more."""
    if form in spellings:
        return spellings[form]
    if len(form) >= 4 and form[-1].isalpha():
        if form[-1] == "s" and form[:-1] in spellings and len(form) > 4:
            return spellings[form[:-1]]
        if form + "s" in spellings:
            return spellings[form + "s"]
    return None


def _last_sum(tokens: list[Token]) -> list[Token]:
    """ "3 + 3 = 6" says 6."""
    signs = [place for place, token in enumerate(tokens) if token.text == "="]
    return tokens[signs[-1] + 1 :] if signs and squash(tokens[signs[-1] + 1 :]) else tokens


def _without_reason(tokens: list[Token]) -> list[Token]:
    """Up to "because": what stands behind it explains and answers nothing."""
    at = next((place for place, token in enumerate(tokens) if place and token.text in REASONS), len(tokens))
    return tokens[:at]


def _surroundings(tokens: list[Token], found: list[Found], around: Context) -> str:
    """What is wrong with the text around the matches; empty when nothing is."""
    lead = tokens[: found[0].start]
    if not _lead(lead, around):
        return f"unasked text before the answer: {_words(lead)}"
    for left, right in pairwise(found):
        gap = tokens[left.end : right.start]
        if not _gap(gap, around):
            return f"unasked text between answers: {_words(gap)}"
    tail = tokens[found[-1].end :]
    if not tail_is_fine(tail, around):
        return f"unasked text after the answer: {_words(tail)}"
    return ""


def _words(tokens: Sequence[Token]) -> str:
    text = " ".join(token.raw for token in tokens if token.raw != "\n")
    return text if len(text) <= 80 else text[:77] + "..."


def pieces(tokens: Sequence[Token]) -> list[Piece]:
    """Cut at list separators, sentence ends and brackets; a piece behind a bracket or dash starts with it."""
    out: list[Piece] = [[]]
    for token in tokens:
        if token.kind in ("cut", "open", "close"):
            out.append([token] if token.raw in "([—-" else [])
        else:
            out[-1].append(token)
    return out


def _lead(tokens: Piece, around: Context) -> bool:
    *before, last = pieces(tokens)
    if [token.text for token in tokens if token.text != "/"] in (["f"], ["r"]) and tokens[-1].text == "/":
        return True  # the path of a forum: "/f/news"
    if tokens and tokens[0].text == "not" and tokens[-1].text == "but" and len(tokens) <= MAX_PLACE:
        return True  # "not Shipments, but"
    return all(_aside(piece, around) for piece in before) and _lead_in(_bare(last), around)


def _gap(tokens: Piece, around: Context) -> bool:
    first, *rest = pieces(tokens)
    if not rest:
        return _plain(first) or _lead_in(first, around) or _place(first, around)
    *middle, last = rest
    return _behind(first, around) and all(_aside(piece, around) for piece in middle) and _lead_in(_bare(last), around)


def _bare(piece: Piece) -> Piece:
    """Without the bracket or dash that opened it."""
    return piece[1:] if piece and piece[0].kind in ("cut", "open") else piece


def tail_is_fine(tokens: Piece, around: Context) -> bool:
    """After the last gold phrase: its kind, a place, a reason, what it is not, or a sentence that explains it."""
    while tokens and tokens[0].kind == "close":  # opened within the gold: "Laptop (PC)"
        tokens = tokens[1:]
    start = next((place for place, token in enumerate(tokens) if token.kind not in ("cut", "open", "close")), None)
    if start is None:
        return True
    rest = tokens[start:]
    if rest[0].text in REASONS:
        return True
    if _denial(rest):
        return True
    if start and tokens[start - 1].text in (".", "\n", "—", "-") and _explains(rest):
        return True
    if around.sole and (tokens[0].kind in ("open", "link") or tokens[-1].kind == "close"):
        return _listing(tokens)
    first, *others = pieces(tokens)
    if around.arrows and first and first[0].kind == "link":
        return True
    return _behind(first, around) and all(_aside(piece, around) for piece in others)


def _listing(tokens: Piece) -> bool:
    """ "six (Profile, Block list, ...)": what was counted. Nothing in it may be another number or a doubt."""
    return not any(
        token.kind in ("number", "mark") or token.text in AGAINST or token.text in INEXACT for token in tokens
    )


def _denial(rest: Piece) -> bool:
    """ "..., not the User form": says what the answer is not, and nothing after that."""
    words = [token.text for token in rest]
    opened = words[0] == "not" or words[:2] in (["rather", "than"], ["instead", "of"], ["as", "opposed"])
    return opened and len(words) <= 12 and not (DOUBTS | {"but", "or", "necessarily", "only", "."}) & set(words)


def _explains(rest: Piece) -> bool:
    """A sentence about the answer: "It sits between Back and Reorder." Never another answer."""
    words = [token.text for token in rest if token.kind == "word"]
    if len(words) < 4 or words[0] not in ("this", "these", "it", "they", "which", "that", "there", "see"):
        return False
    return not set(words) & (AGAINST | {"answer", "answers", "is", "correct"} - {"not", "no", "other", "others"})


def _plain(piece: Piece) -> bool:
    """Only function words and the kind of thing."""
    if not all(token.kind == "link" or token.text in FILLERS for token in piece):
        return False
    return sum(token.kind == "link" for token in piece) <= 1


def _counted(piece: Piece, around: Context) -> bool:
    """Behind a number: what it counts, in few words ("gray tabs shown")."""
    if not around.numeric or len(piece) > MAX_COUNTED:
        return False
    return all(token.text in UNITS or (around.restates(token) and token.text not in PLACES - VERBS) for token in piece)


def _aside(piece: Piece, around: Context) -> bool:
    """A piece of its own without a gold phrase: function words, a place, or a remark in brackets.

    A noun alone would be one more item of the list.
    """
    bare = _bare(piece)
    if all(token.kind == "link" or token.text in FUNCTION for token in bare) or _place(bare, around):
        return True
    return bare != piece and _remark(bare, around)


def _remark(piece: Piece, around: Context) -> bool:
    """ "(the form with most fields)": known words that make a phrase, not a name."""
    words = {token.text for token in piece}
    if piece and all(token.text in PLACE_WORDS for token in piece):
        return True  # "(default)"
    if piece and all(token.text in NOUNS - MODIFIERS for token in piece):
        return True  # "(field)"
    if not piece or len(piece) > 2 * MAX_PLACE or piece[0].text not in FUNCTION | PLACES | PLACE_WORDS:
        return False
    return bool(words & (PLACES | VERBS)) and all(around.restates(token) for token in piece)


def _place(piece: Piece, around: Context) -> bool:
    """ "in the toolbox", "which opens the editor": known words only, opened by a word of place."""
    if not piece or piece[0].text not in PLACES or len(piece) > MAX_PLACE:
        return False
    if piece[0].text in ("with", "among") and not {token.text for token in piece} & DETERMINERS:
        return False  # "Archive with Trash" and "among Archive, Trash" are lists
    return all(around.restates(token) for token in piece)


def _behind(piece: Piece, around: Context) -> bool:
    """Directly after a gold phrase: its kind, then perhaps a place or a predicate."""
    if _plain(piece) or _counted(piece, around):
        return True
    rest = list(piece)
    while rest and rest[0].text in NOUNS - PLACES - VERBS:
        rest.pop(0)
    if not rest or _place(rest, around):
        return True
    opened = rest[0].text in VERBS and len(rest) <= 2 * MAX_PLACE
    return opened and all(around.restates(token) for token in rest)


def _lead_in(piece: Piece, around: Context) -> bool:
    """Directly before a gold phrase: nothing, a label ("Priority:"), or the question restated up to its verb."""
    if piece and piece[-1].text in MODIFIERS - around.asked and around.label:
        return False  # "Total amount" is not "Amount"
    if _plain(piece) or ([token.text for token in piece] == ["at", "least"] and "least" in around.asked):
        return True
    links = [token for token in piece if token.kind == "link"]
    words = [token for token in piece if token.kind != "link"]
    if len(links) > 1 or not all(around.restates(token) for token in words):
        return False
    if links and piece[-1].kind == "link" and len(words) <= MAX_LABEL:
        return True
    while words and words[-1].text in FILLERS - LINKS:
        words.pop()
    if not words:
        return False
    opened = words[0].text in FUNCTION | PLACES or (not around.offered and len(words) <= MAX_LABEL)
    return opened and (piece[-1].kind == "link" or words[-1].text in LINKS)
