"""The phrase banks and value pools of `language/`, read once and compiled into plain template strings.

Markup of the banks: `[first|third]` chooses the words for the user or for somebody else; `{n}` is that person's name,
`{p}` their possessive (her, his); `{v}` a value, `{d}` the size of an increment, `{e}` a fixed thing that the attribute
belongs to. Topics also use `{my}`, `{i}`, `{am}` and `{s}`, which have a second-person form for answers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SPLITS = ("train", "validation")
SWITCH = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
TOPIC_FORMS = {
    "first": {"{my}": "my", "{i}": "I", "{am}": "am", "{s}": "", "{have}": "have"},
    "second": {"{my}": "your", "{i}": "you", "{am}": "are", "{s}": "", "{have}": "have"},
    "third": {"{my}": "{n}'s", "{i}": "{n}", "{am}": "is", "{s}": "s", "{have}": "has"},
}
PHRASE_KEYS = ("is", "was", "did", "do", "hint", "inc", "dec", "q", "qp", "qy", "qc")


@dataclass(frozen=True)
class Attribute:
    """One kind of fact: its value type, where its values come from, and its phrases in one split.

    `phrases[key]` is a (first-person, third-person) pair of template tuples; for a boolean attribute the key carries
    the value ("is:Yes").
    """

    name: str
    value_type: str
    spec: dict[str, Any]
    topics: dict[str, str]
    phrases: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]

    @property
    def increments(self) -> bool:
        return "inc" in self.phrases


@dataclass(frozen=True)
class Language:
    """Everything that words are made of in one split."""

    split: str
    attributes: dict[str, Attribute]
    wrappers: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    pools: dict[str, tuple[str, ...]]
    chatter: dict[str, Any]


def _load(name: str) -> Any:
    return json.loads(Path(__file__).with_name("language").joinpath(name).read_text(encoding="utf-8"))


def _forms(templates: str | list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    items = [templates] if isinstance(templates, str) else templates
    return tuple(SWITCH.sub(r"\1", t) for t in items), tuple(SWITCH.sub(r"\2", t) for t in items)


def _topic(template: str, form: str) -> str:
    for slot, words in TOPIC_FORMS[form].items():
        template = template.replace(slot, words)
    return template


def _attribute(name: str, spec: dict[str, Any], bank: dict[str, Any]) -> Attribute:
    phrases = {}
    for key in PHRASE_KEYS:
        entry = bank.get(key)
        if isinstance(entry, dict):
            phrases.update({f"{key}:{value}": _forms(items) for value, items in entry.items()})
        elif entry:
            phrases[key] = _forms(entry)
    topics = {form: _topic(bank["topic"], form) for form in TOPIC_FORMS}
    return Attribute(name, spec["type"], spec, topics, phrases)


@cache
def language(split: str) -> Language:
    """The banks of one split; "validation" shares no phrase and no open-class value with "train"."""
    specs, banks = _load("attributes.json"), _load(f"attributes_{split}.json")
    pools = {key: tuple(values) for key, values in _load(f"pools_{split}.json").items()}
    wrappers = {key: _forms(items) for key, items in _load(f"wrappers_{split}.json").items()}
    attributes = {name: _attribute(name, specs[name], banks[name]) for name in specs}
    return Language(split, attributes, wrappers, pools, _load(f"chatter_{split}.json"))
