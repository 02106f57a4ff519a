"""LongMemEval-V2's own graders, to the letter: box extraction, the spec language, four matchers, the judge's verdict.

They are what makes a score comparable with the paper, not what an answer deserves: extra text is never penalised, so
"not true" matches "true" and an echo of the question passes many questions. Rewards use `rewards.lme_v2_strict`.
Behaviour of the published repository at be15ea6; nothing here raises on any answer, whatever it contains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

JUDGED = frozenset({"llm_abstention_checker", "llm_gotchas_checker"})
"""Graders that ask a language model (156 of the 451 questions)."""

SEPARATORS = (",", ";")
"""How golds are cut into phrases when a spec does not say."""

_BOX = "\\boxed{"
_LIST_KEYS = ("separators", "separator")
_PHRASE_OPTIONS = frozenset({"separators", "require_non_empty", "lower", "normalize_hyphen", "strip_punct"})
_SET_FILLERS = frozenset(
    ("AND", "ANSWER", "ANSWERS", "CHOICE", "CHOICES", "FINAL", "LETTER", "LETTERS", "OPTION", "OPTIONS")
)


def extract_boxed(response: str) -> str:
    """The content of the last box, braces balanced; the whole response when there is no box or an empty one."""
    start = response.rfind(_BOX)
    if start < 0:
        return response.strip()
    start += len(_BOX)
    depth, end = 1, len(response)
    for brace in re.finditer(r"[{}]", response[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            end = start + brace.start()
            break
    return response[start:end].strip() or response.strip()


def is_unknown(boxed: str) -> bool:
    """Whether the boxed text is the reader's way of saying that it does not know. Scores False with every grader."""
    return boxed.strip().lower() == "unknown"


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """`name|key=value|...` -> name and options. Raises `ValueError` for an unknown name or a malformed option."""
    if not spec:
        raise ValueError("eval function spec must be a non-empty string")
    name, *parts = (part.strip() for part in spec.split("|"))
    if name not in MATCHERS and name not in JUDGED:
        raise ValueError(f"unknown eval function '{name}'")
    options: dict[str, Any] = {}
    for part in filter(None, parts):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise ValueError(f"invalid eval function option '{part}'")
        if key in options:
            raise ValueError(f"duplicate eval function option '{key}'")
        options[key] = _value(key, value)
    return name, options


def _value(key: str, value: str) -> Any:
    lowered = value.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("none", "null"):
        return None
    if key in _LIST_KEYS:
        listed = value.startswith("[") and value.endswith("]")
        return json.loads(value) if listed else [char for char in value if not char.isspace()]
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        return value


def normalise_phrase(
    text: str | None, *, lower: Any = True, normalize_hyphen: Any = True, strip_punct: Any = True
) -> str:
    """Lower case, hyphens and list marks to spaces, other punctuation deleted ("$1,200.50" -> "1 20050")."""
    text = text or ""
    if lower:
        text = text.lower()
    if normalize_hyphen:
        text = text.replace("-", " ").replace("_", " ")
    text = re.sub(r"[,;]", " ", text)
    if strip_punct:
        text = re.sub(r"[^\w\s]", "", text)
    return re.sub(r"\s+", " ", text).strip()


def split_phrases(text: str | None, *, separators: Sequence[str] = SEPARATORS, **how: Any) -> list[str]:
    """The phrases of a gold answer, each normalised; empty ones vanish."""
    text = text or ""
    parts = re.split("|".join(map(re.escape, separators)), text) if separators else [text]
    return [phrase for part in parts if (phrase := normalise_phrase(part, **how))]


def _phrases(prediction: str, gold: str, options: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """Both sides normalised; None when one is empty and the spec wants it not to be."""
    unknown = sorted(options.keys() - _PHRASE_OPTIONS)
    if unknown:
        raise ValueError(f"a phrase grader has no option '{unknown[0]}'")
    how = {key: value for key, value in options.items() if key not in ("separators", "require_non_empty")}
    text = normalise_phrase(prediction, **how)
    phrases = split_phrases(gold, separators=options.get("separators", SEPARATORS), **how)
    if options.get("require_non_empty", True) and not (text and phrases):
        return None
    return text, phrases


def _phrase_set(prediction: str, gold: str, options: Mapping[str, Any]) -> bool:
    """Every gold phrase occurs somewhere at word boundaries; whatever else is there does not matter."""
    sides = _phrases(prediction, gold, options)
    return sides is not None and all(re.search(rf"\b{re.escape(phrase)}\b", sides[0]) for phrase in set(sides[1]))


def _phrase_sequence(prediction: str, gold: str, options: Mapping[str, Any]) -> bool:
    """As the set, but every phrase is looked for behind the one before it."""
    sides = _phrases(prediction, gold, options)
    if sides is None:
        return False
    rest, phrases = sides
    for phrase in phrases:
        match = re.search(rf"\b{re.escape(phrase)}\b", rest)
        if match is None:
            return False
        rest = rest[match.end() :]
    return True


def _choice(prediction: str, gold: str, options: Mapping[str, Any]) -> bool:
    """Equality without the words "choice" and "option" and without full stops."""
    lowered = prediction.lower()
    start = lowered.find(_BOX)
    end = lowered.find("}", start) if start >= 0 else -1
    candidate = lowered[start + len(_BOX) : end] if end >= 0 else prediction
    candidate = re.sub(r"\b(choice|option)\b", "", candidate, flags=re.IGNORECASE)
    for char in str(options.get("strip_chars", ".")):
        candidate = candidate.replace(char, "")
    candidate, expected = candidate.strip().upper(), gold.strip().upper()
    if options.get("require_non_empty", True) and not (candidate and expected):
        return False
    return candidate == expected


def _letters(text: str) -> set[str]:
    return {letter for run in re.findall(r"[A-Z]+", text.upper()) if run not in _SET_FILLERS for letter in run}


def _choice_set(prediction: str, gold: str, options: Mapping[str, Any]) -> bool:
    """Equality of the sets of all Latin letters, some filler words aside ("The answers are" spoils it)."""
    found, expected = _letters(prediction), _letters(gold)
    if options.get("require_non_empty", True) and not (found and expected):
        return False
    return found == expected


MATCHERS: Mapping[str, Callable[[str, str, Mapping[str, Any]], bool]] = {
    "norm_phrase_set_match": _phrase_set,
    "norm_phrase_set_match_ordered": _phrase_sequence,
    "mc_choice_match": _choice,
    "mc_choice_set_match": _choice_set,
}
"""The graders that need no judge: (boxed prediction, gold, options) -> right or not."""

_LABELS = (
    re.compile(r'"label"\s*:\s*([01])', re.IGNORECASE),
    re.compile(r"'label'\s*:\s*([01])", re.IGNORECASE),
    re.compile(r"\blabel\b\s*[:=]\s*([01])", re.IGNORECASE),
)


def parse_verdict(text: str) -> tuple[int, str] | None:
    """A judge's reply -> (label, reason); None where the published code would raise and end the run."""
    text = text.strip()
    lines = text.splitlines()
    if text.startswith("```") and text.endswith("```") and len(lines) >= 3:
        text = "\n".join(lines[1:-1]).strip()
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        try:
            payload = json.loads(text[start : end + 1])
        except (ValueError, RecursionError):
            payload = {}
        label = payload.get("label")
        if isinstance(label, (int, float, str)) and label in (0, 1, "0", "1"):
            reason = payload.get("reason")
            return int(label), "" if reason is None else str(reason).strip()
    for pattern in _LABELS:
        if match := pattern.search(text):
            return int(match[1]), text
    return None
