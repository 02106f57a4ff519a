"""Strict grading of multiple-choice and true-or-false answers: one committed choice, in whatever form it is written.

"(C)", "Option C", "C) The grid cell", "The grid cell" and "C, because ..." choose C; "C or D", "not C" and a list of
all letters choose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rewards.lme_v2_phrases import context, tail_is_fine
from rewards.lme_v2_tokens import Token, clean, prefix, squash, tokenise
from rewards.lme_v2_words import AGAINST, FUNCTION, LINKS, NOUNS, TAKES_BACK

_OPTION = re.compile(r"(?:^|\n)[ \t]*\(?([A-Z])[.):][ \t]+([^\n]+)")
_SHOWN = frozenset(("letter", "letters", "option", "options", "choice", "choices", "answer", "answers"))
_TRUE, _FALSE = ("true", "yes", "t", "correct", "right"), ("false", "no", "f", "incorrect", "wrong", "untrue")
_CONTENT = ("word", "number", "mark")
_NOT = frozenset(("not", "isnt", "arent", "doesnt", "dont", "cant", "cannot", "never", "non"))
_TRUTH_WORDS = FUNCTION | NOUNS | LINKS | frozenset(("that", "both", "above", "given"))

Options = Mapping[str, list[Token]]


def options_of(question: str) -> dict[str, list[Token]]:
    """The lettered options of a question, A first and none left out; empty when it has none."""
    options: dict[str, list[Token]] = {}
    for letter, text in _OPTION.findall(question):
        if letter == chr(ord("A") + len(options)):
            options[letter] = tokenise(clean(text))
    return options if len(options) > 1 else {}


def match_truth(answer: str, gold: bool, question: str) -> tuple[bool, str]:
    """Whether the answer says true (or false), and nothing else."""
    tokens = tokenise(clean(answer))
    around = context(question, [])
    for place, token in enumerate(tokens):
        rest = tokens[place:]
        if place and _reason(tokens, place):
            tokens = tokens[:place]
            break
        if place and token.text in ("not", "rather") and rest[-1].text in _TRUE + _FALSE and len(rest) <= 3:
            before = {"true", "false"} & {word.text for word in tokens[:place]}
            if before and tokens[place - 1].kind == "cut":
                tokens = tokens[:place]
                break
    said, left = _polarities(tokens)
    if len(said) != 1:
        return False, "says both" if said else "says neither true nor false"
    start = next((place for place, token in enumerate(left) if token.kind == "mark"), None)
    extra = [token for token in left if token.kind in ("word", "number") and token.text not in _TRUTH_WORDS]
    doubt = [token.raw for token in extra if token.text in AGAINST or not around.known(token.text)]
    if said == {True}:  # what is true in part is not true
        doubt += [token.raw for token in left if token.text == "only" and "only" not in around.asked]
    if start is not None or doubt:
        return False, f"not a plain true or false: {' '.join(doubt[:6]) or '?'}"
    return said == {gold}, f"says {str(said.pop()).lower()}"


def _reason(tokens: Sequence[Token], place: int) -> bool:
    """Whether a reason or an explaining sentence starts here, behind a verdict."""
    if tokens[place].text in ("because", "since", "due"):
        return True
    behind = tokens[place - 1].text in (".", "—", "-", "\n", ",", ";") or tokens[place - 1].kind == "link"
    verdict = any(token.text in ("true", "false", "yes", "no") for token in tokens[:place])
    words = [token.text for token in tokens[place:] if token.kind in ("word", "number")]
    if not behind or not verdict or len(words) < 3:
        return False
    return not set(words) & TAKES_BACK


def _polarities(tokens: Sequence[Token]) -> tuple[set[bool], list[Token]]:
    """What is said to be true or false by the plainest words used, and the tokens that say something else."""
    words = {token.text for token in tokens}
    ranks = [(_TRUE[:1], _FALSE[:1]), (_TRUE[1:3], _FALSE[1:3]), (_TRUE[3:], _FALSE[3:])]
    rank = next((pair for pair in ranks if words & {*pair[0], *pair[1]}), None)
    if rank is None:
        return set(), list(tokens)
    if rank is ranks[0] and words & {"yes", "no"}:
        rank = (_TRUE[:2], _FALSE[:2])
    said: set[bool] = set()
    left: list[Token] = []
    for place, token in enumerate(tokens):
        if token.text in rank[0] or token.text in rank[1]:
            denied = place > 0 and tokens[place - 1].text in _NOT
            said.add((token.text in rank[0]) != denied)
            if denied:
                left.pop()
        else:
            left.append(token)
    return said, left


def match_choice(answer: str, gold: str, question: str) -> tuple[bool, str]:
    """Whether the answer chooses the gold letter and no other."""
    options = options_of(question)
    expected = gold.strip().upper()
    tokens = tokenise(clean(answer))
    chosen, rest = _by_text(tokens, options), []
    if chosen is None:
        chosen = _spelled_out(tokens, options)
    if chosen is None:
        letters = _letters(tokens, options)
        if len({letter for _, letter in letters}) != 1:
            return False, "chooses several" if letters else "chooses nothing"
        place, chosen = letters[0]
        lead = [token for token in tokens[:place] if token.kind in ("word", "number", "mark")]
        if any(token.text not in FUNCTION | NOUNS for token in lead):
            return False, f"unasked text before the letter: {lead[0].raw}"
        rest = tokens[letters[-1][0] + 1 :]
    if rest and not _fits(rest, chosen, options, question):
        return False, f"the text behind {chosen} is not its own"
    return chosen == expected, f"chooses {chosen}"


def _by_text(tokens: Sequence[Token], options: Options) -> str | None:
    """The letter of the option that is written out, perhaps behind the letter itself."""
    form = squash(tokens)
    return next((letter for letter, text in options.items() if form == squash(text)), None)


def _spelled_out(tokens: Sequence[Token], options: Options) -> str | None:
    """The one option whose text stands in the answer, with its letter or without, among words that add nothing."""
    chosen: set[str] = set()
    left: list[Token] = []
    at = 0
    while at < len(tokens):
        letter, end = _option_text(tokens, at, options)
        if letter:
            chosen.add(letter)
            at = end
        else:
            left.append(tokens[at])
            at += 1
    letters = _letters(left, options)
    places = {place for place, _ in letters}
    words = [token for place, token in enumerate(left) if place not in places and token.kind in _CONTENT]
    if not chosen or any(token.text not in FUNCTION | NOUNS for token in words):
        return None
    chosen |= {letter for _, letter in letters}
    return chosen.pop() if len(chosen) == 1 else None


def _letters(tokens: Sequence[Token], options: Options) -> list[tuple[int, str]]:
    """(place, letter) of the tokens that stand for an option."""
    known = frozenset(options) or frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    found: list[tuple[int, str]] = []
    words = [token for token in tokens if token.kind in ("word", "number")]
    bare = all(len(token.raw) == 1 or token.text in FUNCTION | _SHOWN for token in words)
    for place, token in enumerate(tokens):
        letter = token.raw.upper()
        if token.kind != "word" or len(token.raw) != 1 or letter not in known:
            continue
        before = tokens[place - 1] if place else None
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        pointed = before is not None and (before.kind == "open" or before.text in _SHOWN)
        closed = after is None or after.kind in ("cut", "link", "open", "close")
        if letter in ("A", "I") and not (closed or pointed):
            continue  # an article, a pronoun
        if token.raw.isupper() or pointed or (bare and (len(words) == 1 or closed)):
            found.append((place, letter))
    return _own_text_removed(tokens, found, options)


def _own_text_removed(tokens: Sequence[Token], found: list[tuple[int, str]], options: Options) -> list[tuple[int, str]]:
    """Without letters that belong to the text of the option chosen just before ("C. Option A and B")."""
    if len(found) < 2 or found[0][1] not in options:
        return found
    place, letter = found[0]
    own = squash(options[letter])
    rest = tokens[place + 1 :]
    ends = prefix(rest, own) if own else None
    if ends is not None:
        return [found[0], *((at, other) for at, other in found[1:] if at > place + ends)]
    denied = next((at for at, token in enumerate(rest) if token.text in ("not", "because", "since")), None)
    if denied is not None and not any(place < at <= place + denied for at, _ in found):
        return found[:1]
    return found


def _fits(rest: list[Token], chosen: str, options: Options, question: str) -> bool:
    """Whether the text behind the letter is the option's own (or a part of it), a reason, or nothing much."""
    if rest[0].kind in ("cut", "close") or rest[0].text == ":":
        rest = rest[1:]
    whole = {letter: _form(text) for letter, text in options.items()}
    form = _form(rest)
    if not form or form == whole.get(chosen):
        return True
    if form in whole.values():
        return False
    words = {token.text for token in rest}
    if chosen in options and squash(rest):
        own = whole[chosen]
        begun = max((text for text in whole.values() if prefix(rest, text)), key=len, default="")
        if begun:
            return begun == own and not _others(rest[prefix(rest, begun) :], chosen, options)
        if form in own:
            return True
        alike = {letter: _overlap(words, text) for letter, text in options.items()}
        if alike[chosen] >= 0.5 and alike[chosen] == max(alike.values()):
            return True
        said = [token.text for token in rest if token.kind in _CONTENT[:2] and token.text not in FUNCTION | NOUNS]
        elsewhere = {token.text for letter, text in options.items() if letter != chosen for token in text}
        if len(said) < 4 and "not" not in said and set(said) & elsewhere - {token.text for token in options[chosen]}:
            return False  # "D (with the price)" where another option is the one with the price
    while rest and rest[0].kind in ("cut", "link", "open", "close"):
        rest = rest[1:]
    if tail_is_fine([Token("cut", ".", "."), *rest], context(question, [])):
        return True
    if words & (AGAINST - {"other", "others", "together"}) or any(token.kind == "mark" for token in rest):
        return False
    # A sentence that explains. Without known options any text behind a letter is the option's.
    return not options or (len(rest) >= 4 and not _others(rest, chosen, options))


def _form(tokens: Sequence[Token]) -> str:
    """Comparable text; options that are signs only ("==") compare by their signs."""
    return squash(tokens) or "".join(token.raw for token in tokens)


def _overlap(words: set[str], text: Sequence[Token]) -> float:
    """Jaccard's similarity of two bags of words."""
    mine = {token.text for token in text}
    return len(words & mine) / max(1, len(words | mine))


def _others(tokens: Sequence[Token], chosen: str, options: Options) -> bool:
    """Whether the text of an option other than the chosen one is written out."""
    form = squash(tokens)
    return any(text in form for letter in options if letter != chosen and len(text := squash(options[letter])) > 3)


def match_choice_set(answer: str, gold: str, question: str) -> tuple[bool, str]:
    """Whether exactly the gold letters are chosen."""
    options = options_of(question)
    expected = set(re.findall(r"[A-Z]", gold.upper()))
    known = set(options) or set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    chosen: set[str] = set()
    left: list[Token] = []
    tokens = tokenise(clean(answer))
    at = 0
    while at < len(tokens):
        letter, end = _option_text(tokens, at, options)
        token = tokens[at]
        run = token.raw.upper()
        if letter:
            chosen.add(letter)
            at = end
            continue
        glued = token.kind == "word" and set(run) <= known and len(set(run)) == len(run)
        alone = len(run) == 1 and (token.raw.isupper() or len(tokens) > 1)
        if glued and (
            alone or (len(run) > 1 and sorted(run) == list(run) and (token.raw.isupper() or len(tokens) == 1))
        ):
            chosen |= set(run)
        elif token.kind in ("word", "number", "mark"):
            left.append(token)
        at += 1
    extra = [token.raw for token in left if token.text not in FUNCTION | _SHOWN]
    if extra:
        return False, f"unasked text: {' '.join(extra[:6])}"
    return chosen == expected, f"chooses {', '.join(sorted(chosen)) or 'nothing'}"


def _option_text(tokens: Sequence[Token], at: int, options: Options) -> tuple[str | None, int]:
    """The option that is written out from token `at`, and the token behind it."""
    best: tuple[str | None, int] = (None, at)
    for letter, text in options.items():
        length = prefix(tokens[at : at + 3 * len(text)], squash(text))
        if length and at + length > best[1]:
            best = (letter, at + length)
    return best
