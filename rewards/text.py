"""One normalisation for every grader: unicode folding, markup, hidden reasoning, and tokens with positions.

The result keeps the reading order and the case of the answer but nothing of its typography: full-width digits, curly
quotes, no-break spaces, accents, bold, LaTeX and HTML tags all disappear. What carries meaning stays as a token of its
own: a line break, an arrow, the brackets of a box. Everything here is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

BOX_OPEN, BOX_CLOSE = "\ue000", "\ue001"
"""Private-use marks that stand for ``\\boxed{`` / ``<answer>`` and their ends; removed from the input first."""

_HIDDEN_TAGS = ("think", "thinking", "thought", "reasoning", "scratchpad")
_STRUCK_TAGS = ("s", "del", "strike")

_CHAR_MAP = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′´`ʼʹ＇", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–−﹣－⁻", "-"),
        **dict.fromkeys("—―⸺⸻", "—"),
        **dict.fromkeys("→⇒➔➜➝⟶⟹↦", "→"),
        **dict.fromkeys("⁄∕", "/"),
        **dict.fromkeys("，、،", ","),
        **dict.fromkeys("。｡", ". "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f" + BOX_OPEN + BOX_CLOSE, None),
        **dict.fromkeys("\u2028\u2029\x0b\x0c\r\x85", "\n"),
        "ß": "ss",
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "æ": "ae",
        "œ": "oe",
        "ı": "i",
    }
)
_VULGAR = {ord(c): f" {unicodedata.normalize('NFKC', c)}" for c in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
# Letters of other scripts that are drawn like Latin ones (Unicode confusables, the exact twins only).
_TWINS = str.maketrans("АВЕКМНОРСТХаеосрхуіјѕΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEKMHOPCTXaeocpxyijsABEZHIKMNOPTYXo")

_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_BOTH_WAYS = re.compile(r"<[-=]{1,2}>|[↔⇔]")
_ARROWS = re.compile(r"[-=]{1,2}>")
_LATEX_WRAP = re.compile(r"(?i)\\(?:text|textbf|textit|mathbf|mathrm|mathit|emph|underline) ?\{([^{}]{0,400})\}")
_LATEX_FRAC = re.compile(r"(?i)\\d?frac ?\{(\d{1,6})\}\{(\d{1,6})\}")
_LATEX_ESCAPE = re.compile(r"\\([$%&#_])")
_LATEX_SPACE = re.compile(r"\\[()\[\],;! ]")
_DOLLAR_BOX = re.compile(rf"\$+(?={BOX_OPEN})|(?<={BOX_CLOSE})\$+")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,80}>")
_BULLET = re.compile(r"(?:^|(?<=\n))(?:[-*•‣◦·+>]|#{1,6})(?: |(?=\*))")
_NUMBERED = re.compile(r"(?:^|(?<=\n))\d{1,2}[.)] ")
_GROUPED = re.compile(r"(?<![\d.,:/-])(\d{1,3})((?: \d{3})+)(?![\d:/-]|[.,]\d)")

_UNDERLINE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_ACRONYM = re.compile(r"(?<![\w.])(?:[A-Za-z]\.){2,}")
_FEET = re.compile(r"(?<![\d'])(\d) ?' ?(\d{1,2}) ?(?:\"|'')")
_DIGIT_DASH = re.compile(r"(?<=\d)—(?=\d)")

TOKEN = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|\d{1,2}[/.]\d{1,2}[/.]\d{4}(?!\d)"  # numeric dates
    r"|\d+(?::\d+)+"  # clock times, m:ss, ratios
    r"|\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+"  # numbers
    r"|(?<!\w)[A-Za-z](?:\+\+|[+-])(?![\w+-])"  # grades, blood groups: B+ is not B
    r"|[apAP]\.[mM]\.?|[^\W\d_]+(?:'[^\W\d_]+)*"  # words
    r"|\n|[^\w\s]"  # a line break, one mark
)
_IGNORED = frozenset("*_\"'{}[]#\\`")


class Text(NamedTuple):
    """A normalised text and its tokens: ``lower[i]`` is token i in lower case, ``raw[start[i]:end[i]]`` as written."""

    raw: str
    lower: list[str]
    start: list[int]
    end: list[int]

    def glued(self, i: int) -> bool:
        """Whether token i follows token i - 1 with nothing between them."""
        return i > 0 and self.start[i] == self.end[i - 1]

    def capital(self, i: int) -> bool:
        return self.raw[self.start[i]].isupper()

    def quote(self, first: int, last: int) -> str:
        """The words of tokens first..last-1 as written."""
        return self.raw[self.start[first] : self.end[last - 1]]


def _lower(text: str) -> str:
    """In lower case, as long as before: of all characters only the dotted capital I becomes two."""
    return text.replace("\u0130", "i").lower()


def _spans(text: str, opening: str, closing: str) -> Iterator[tuple[int, int, int, int]]:
    """(start, inner start, inner end, end) of every opening..closing pair; an opening without end runs to the end."""
    folded = _lower(text)
    at = 0
    while (start := folded.find(opening, at)) >= 0:
        inner = start + len(opening)
        stop = folded.find(closing, inner)
        if stop < 0:
            yield start, inner, len(text), len(text)
            return
        at = stop + len(closing)
        yield start, inner, stop, at


def drop_reasoning(text: str) -> str:
    """Remove ``<think>`` blocks. One that never closes hides the rest; one that never opened hides what precedes it."""
    if "<" not in text:
        return text
    for tag in _HIDDEN_TAGS:
        opening, closing = f"<{tag}>", f"</{tag}>"
        pieces, at = [], 0
        for start, _, _, stop in _spans(text, opening, closing):
            pieces.append(text[at:start])
            at = stop
        text = "".join(pieces) + text[at:]
        if (orphan := _lower(text).rfind(closing)) >= 0:
            text = text[orphan + len(closing) :]
    return text


def _box(text: str) -> str:
    """Put the box marks around the inside of ``\\boxed{...}``, braces matched, and of ``<answer>...</answer>``."""
    if "<answer>" in text.lower():
        pieces, at = [], 0
        for start, inner, inner_end, stop in _spans(text, "<answer>", "</answer>"):
            pieces += [text[at:start], BOX_OPEN, text[inner:inner_end], BOX_CLOSE]
            at = stop
        text = "".join(pieces) + text[at:]
    if "\\boxed" not in text.lower():
        return text
    pieces, depth = [], []
    for part in re.split(r"(?i)(\\boxed ?\{|\\?[{}])", text):
        if part[:6].lower() == "\\boxed":
            depth.append(True)
            pieces.append(BOX_OPEN)
        elif part == "{":
            depth.append(False)
            pieces.append(part)
        elif part == "}" and depth:
            pieces.append(BOX_CLOSE if depth.pop() else part)
        else:
            pieces.append(part)
    return "".join(pieces) + BOX_CLOSE * sum(depth)


def _drop_struck(text: str) -> str:
    if text.count("~~") >= 2:
        parts = text.split("~~")
        keep = parts[::2] if len(parts) % 2 else [*parts[:-1:2], "~~" + parts[-1]]
        text = " ".join(keep)
    if "</" in text:
        for tag in _STRUCK_TAGS:
            pieces, at = [], 0
            for start, _, inner_end, stop in _spans(text, f"<{tag}>", f"</{tag}>"):
                if inner_end == stop:  # never closed: nothing was struck out
                    break
                pieces.append(text[at:start])
                at = stop
            text = " ".join([*pieces, text[at:]])
    return text


def normalise(text: str) -> str:
    """Fold typography and markup, keep case and order. Idempotent enough for golds, answers and questions alike."""
    text = _BOTH_WAYS.sub(" / ", drop_reasoning(text))
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_VULGAR)).translate(_CHAR_MAP)
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in text if not unicodedata.combining(c)).translate(_TWINS)
        text = text.translate(_CHAR_MAP)
    elif "\r" in text or "\x0b" in text or "\x0c" in text:
        text = text.translate(_CHAR_MAP)
    if "_" in text:
        text = _UNDERLINE.sub("", text)
    if "`" in text:
        text = text.replace("`", "")
    if "~~" in text or "</" in text:
        text = _drop_struck(text)
    if "\\" in text:
        text = _LATEX_FRAC.sub(r"\1/\2", _LATEX_WRAP.sub(r"\1", text))
    if "\\" in text or "<" in text:
        text = _box(text)
    if "\\" in text:
        text = _LATEX_SPACE.sub(" ", _LATEX_ESCAPE.sub(r"\1", text))
    if BOX_OPEN in text:
        text = _DOLLAR_BOX.sub("", text)
    if ">" in text:
        text = _TAG.sub(" ", _ARROWS.sub("→", text))
    text = _LINES.sub("\n", _SPACES.sub(" ", text)).strip()
    text = _BULLET.sub("", text)
    if "2. " in text or "2) " in text:
        marks = [m[0][:-2] for m in _NUMBERED.finditer(text)]
        if marks[:2] == ["1", "2"]:  # a numbered list; a lone "23. Hmm" is an answer
            text = _NUMBERED.sub("", text)
    if "." in text:
        text = _ACRONYM.sub(lambda m: m[0].replace(".", ""), text)
    if "'" in text or '"' in text:
        text = _FEET.sub(r"\1 ft \2 in", text)
    if "—" in text:
        text = _DIGIT_DASH.sub("-", text)
    if "--" in text:
        text = re.sub(r"-{2,}", "—", text)
    return _GROUPED.sub(lambda m: m[1] + m[2].replace(" ", ","), text)


def tokenise(text: str) -> Text:
    """Normalise and cut into words, numbers, numeric dates, clock times and marks."""
    raw = normalise(text)
    lower, start, end = [], [], []
    for match in TOKEN.finditer(raw):
        token = match[0]
        if token in _IGNORED:
            continue
        lower.append(token.lower())
        start.append(match.start())
        end.append(match.end())
    return Text(raw, lower, start, end)
