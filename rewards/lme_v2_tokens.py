"""An answer as tokens for the strict graders: words and numbers to compare, marks and separators to judge by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rewards.lme_v2_words import NUMBERS
from rewards.text import normalise

Kind = Literal["word", "number", "cut", "link", "open", "close", "mark"]

_LATEX_ARROW = re.compile(r"\\(?:long)?(?:rightarrow|to)\b", re.IGNORECASE)
_LATEX_GAP = re.compile(r"\\(?:q?quad\b|\\|~)")
_LATEX_WRAP = re.compile(r"\\(?:text(?:bf|it|tt|rm|sf|sc)?|math(?:bf|it|rm|tt|sf)|operatorname|emph|underline) ?\{")
_ENUMERATOR = re.compile(r"(?<![\w.,])(?:step ?|\()?(\d{1,2})(?:[.):](?=[\s\"'*`A-Za-z]))", re.IGNORECASE)
_TOKEN = re.compile(
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|\d+\.\d+(?!\w)|\d+(?![^\W_])"
    r"|[^\W_]+(?:'[^\W_]+)*(?:[+#]+(?!\w))?|\n|[^\w\s]|_"
)
_KINDS: dict[str, Kind] = {
    **dict.fromkeys([",", ";", "/", "|", "\n", "—", "•", "&"], "cut"),
    **dict.fromkeys([":", "=", "→", ">", "»", "›"], "link"),
    **dict.fromkeys(["(", "["], "open"),
    **dict.fromkeys([")", "]"], "close"),
    **dict.fromkeys(["%", "?", "~", "<", "^", "¬", "≈", "≤", "≥", "❌", "✗", "✘", "✖", "🚫"], "mark"),
}


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `text` is comparable: lower case, numbers as plain decimals ("six" and "6.0" are "6")."""

    kind: Kind
    text: str
    raw: str


def clean(text: str) -> str:
    """Typography and LaTeX gone; numbering of a list ("1) ... 2) ...") turned into separators."""
    if "\\" in text:
        text = _LATEX_GAP.sub(" ", _LATEX_ARROW.sub("→", text))
        text = _LATEX_WRAP.sub("{", text)
        text = text.replace("\\{", " ").replace("\\}", " ")
    marks = [match[1] for match in _ENUMERATOR.finditer(text)]
    if len(marks) > 1 and marks == [str(number) for number in range(1, len(marks) + 1)]:
        text = _ENUMERATOR.sub(" ; ", text)
    return normalise(text.replace("≠", "¬"))  # which normalising would take for "="


def tokenise(text: str) -> list[Token]:
    """Cut a cleaned text. Quotes, braces, hyphens within words and other typography leave no token."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        raw, start, end = match[0], match.start(), match.end()
        before, after = text[start - 1 : start], text[end : end + 1]
        if raw[0].isalnum():
            tokens.append(_word(raw))
        elif raw == "-":
            if before.isspace() and after.isspace():
                tokens.append(Token("cut", "-", raw))
            elif after.isdigit() and (not before or before.isspace() or before in "($:"):
                tokens.append(Token("mark", "minus", raw))
        elif raw in ".!":
            if not after or after.isspace():
                tokens.append(Token("cut", ".", raw))
            elif raw == "!" and (after.isalnum() or after == "=") and not before.isalnum():
                tokens.append(Token("mark", "¬", raw))  # "!true", "!= true"
        elif raw in _KINDS:
            tokens.append(Token(_KINDS[raw], "and" if raw == "&" else raw, raw))
    return _joined(tokens)


def _word(raw: str) -> Token:
    digits = raw.replace(",", "")
    if digits.replace(".", "", 1).isdecimal() and digits.isascii():
        whole, _, part = digits.partition(".")
        part = part.rstrip("0")
        return Token("number", (whole.lstrip("0") or "0") + (f".{part}" if part else ""), raw)
    word = raw.lower().replace("'", "")
    if word == "and":
        return Token("cut", word, raw)
    if word in NUMBERS:
        return Token("number", str(NUMBERS[word]), raw)
    return Token("word", word, raw)


def _joined(tokens: list[Token]) -> list[Token]:
    """Numbers written in several words as one: "twenty one", "three hundred"."""
    out: list[Token] = []
    for token in tokens:
        last = out[-1] if out else None
        if last and last.kind == "number" and last.raw.isalpha() and token.raw.isalpha():
            value = int(last.text)
            if token.text == "hundred" and 0 < value < 10:
                out[-1] = Token("number", str(100 * value), last.raw + token.raw)
                continue
            if token.kind == "number" and value >= 20 and value % 10 == 0 and 0 < int(token.text) < 10:
                out[-1] = Token("number", str(value + int(token.text)), last.raw + token.raw)
                continue
        if token.kind == "number" and last and last.text == "minus":
            out[-1] = Token("number", f"-{token.text}", token.raw)
            continue
        out.append(token)
    return out


def joined(form: str, text: str) -> str:
    """`form` continued by one more word; two numbers stay apart."""
    return f"{form} {text}" if form[-1:].isdigit() and text[0].isdigit() else form + text


def counts(token: Token) -> bool:
    """Whether a token is part of what is compared; marks, separators and brackets are not."""
    return token.kind in ("word", "number") or token.text == "and"


def squash(tokens: Iterable[Token]) -> str:
    """Words and numbers without the spaces between them, so that "e-mail", "e mail" and "email" are the same."""
    parts: list[str] = []
    for token in tokens:
        if counts(token):
            if parts and parts[-1][-1].isdigit() and token.text[0].isdigit():
                parts.append(" ")
            parts.append(token.text)
    return "".join(parts)


def prefix(tokens: Sequence[Token], form: str) -> int | None:
    """How many tokens spell `form`, from the first on; None when they do not."""
    begun = ""
    for place, token in enumerate(tokens):
        if counts(token):
            begun = joined(begun, token.text)
            if begun == form:
                return place + 1
            if not form.startswith(begun):
                return None
    return None
