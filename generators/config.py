"""The knobs of a timeline, the presets, and the door that refuses bad settings by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from generators.language import language

Range = tuple[int, int]


@dataclass(frozen=True)
class Styles:
    """How facts are told. Integer weights or percentages; 0 switches a style off."""

    explicit: int = 30
    """Weight among the ways to tell a change: it is announced as a change."""
    implicit: int = 35
    """Weight: the new value shows only in passing, in a remark about something else."""
    paraphrased: int = 25
    """Weight: the change is told in other words, without a marker such as "update"."""
    correction: int = 10
    """Weight: an earlier statement is corrected (never where the question asks for the previous value)."""
    reversion: int = 60
    """Percent of episodes in which an earlier value may become true again, named or not."""
    increment: int = 50
    """Percent: a change of a countable side fact is told as a difference ("two more"). Count questions need it > 0."""
    plan: int = 35
    """Weight among distractor values: a plan that falls through."""
    hypothetical: int = 20
    """Weight among distractor values: a value that is only imagined."""
    other: int = 45
    """Weight among distractor values: somebody else's value of the same attribute."""
    late: int = 100
    """Percent of episodes in which old values may be mentioned after they were superseded."""
    repeat: int = 100
    """Percent of episodes in which values are told again in other words (`repeats` says how often)."""
    forget: int = 10
    """Percent of episodes in which somebody fails to remember the asked fact; no value is named."""
    no_update: int = 8
    """Percent of current-value episodes whose asked fact never changes."""


@dataclass(frozen=True)
class Asks:
    """Weights of the question kinds; 0 switches a kind off."""

    current: int = 48
    previous: int = 16
    count: int = 12
    yesno: int = 12
    change: int = 6
    abstain: int = 6


@dataclass(frozen=True)
class TimelineConfig:
    """One episode's settings. Ranges are (lowest, highest), both included; each episode draws its own."""

    preset: str = "curriculum"
    """The name that the settings started from; part of the episode's id."""
    difficulty: Range = (1, 5)
    """1-5; fills in whatever of `updates`, `distractors`, `repeats` and `facts` is None."""
    sessions: Range = (6, 8)
    """Dated sessions an episode."""
    turns: Range = (2, 8)
    """Turns a session, user and assistant alternating; drawn even."""
    updates: Range | None = None
    """Superseded values of the asked fact."""
    distractors: Range | None = None
    """Further values of the same attribute that the asked person never had (plans, daydreams, other people)."""
    repeats: Range | None = None
    """Additional mentions of values that were already told."""
    facts: Range | None = None
    """Other facts tracked along the way, some of which change too."""
    tips: Range = (0, 2)
    """Longer pieces of advice in an assistant turn (about 22 words each)."""
    long_sessions: int = 8
    """Percent of sessions that go on at the length of LongMemEval's: `LONG_TURNS` turns, `LONG_TIPS` pieces each."""
    chat: Range = (1, 2)
    """Off-topic sentences in a user turn."""
    echo: int = 10
    """Percent of facts whose value the assistant says back."""
    gap_days: Range = (2, 24)
    """Days from one session to the next."""
    settled: int = 0
    """Sessions that follow the asked fact's last change, at least. With 0 it is often told in the last session, where a
    memory that copies the last session is right."""
    balanced: bool = True
    """Draw which of the told values is the answer independently of where and how often it is told. False: it is
    always the last one told (the saturated kind)."""
    third_person: int = 25
    """Percent of questions about somebody other than the user."""
    preamble: int = 50
    """Percent of questions that begin with a few words of introduction."""
    attributes: tuple[str, ...] = ()
    """Names of the attributes that may be asked about; empty means all."""
    value_types: tuple[str, ...] = ()
    """Value types that may be asked about; empty means all."""
    notes_chars: int = 300
    """Longest oracle note, in characters; at least `SHORTEST_NOTES`."""
    styles: Styles = field(default_factory=Styles)
    asks: Asks = field(default_factory=Asks)


LONG_TURNS: Range = (8, 13)
LONG_TIPS: Range = (8, 34)

# Difficulty -> ranges of (updates, distractors, repeats, facts).
LEVELS: dict[int, tuple[Range, Range, Range, Range]] = {
    1: ((1, 1), (0, 1), (0, 0), (0, 1)),
    2: ((1, 1), (1, 2), (0, 1), (1, 2)),
    3: ((1, 2), (2, 2), (0, 1), (1, 2)),
    4: ((2, 2), (2, 3), (1, 2), (2, 3)),
    5: ((2, 3), (3, 4), (1, 3), (2, 4)),
}

_PLAIN = Styles(
    explicit=100,
    implicit=0,
    paraphrased=0,
    correction=0,
    reversion=0,
    increment=0,
    late=0,
    repeat=0,
    forget=0,
    no_update=0,
)

# For a model of about 100M parameters: prompts of about 150 tokens, plain words, few values, one fact.
_QUICK = TimelineConfig(
    preset="quick",
    difficulty=(2, 2),
    sessions=(3, 4),
    turns=(2, 2),
    updates=(1, 1),
    distractors=(1, 1),
    long_sessions=0,
    echo=0,
    repeats=(0, 1),
    facts=(0, 0),
    tips=(0, 0),
    chat=(0, 1),
    third_person=15,
    preamble=0,
    notes_chars=160,
    styles=Styles(
        explicit=45,
        implicit=0,
        paraphrased=45,
        correction=0,
        reversion=0,
        increment=0,
        late=30,
        repeat=50,
        forget=0,
        no_update=5,
    ),
    asks=Asks(current=100, previous=0, count=0, yesno=0, change=0, abstain=0),
)

PRESETS: dict[str, TimelineConfig] = {
    # The saturated kind: explicit updates, talk without values in between, the answer is the last value told.
    "control": TimelineConfig(
        preset="control",
        difficulty=(1, 1),
        updates=(2, 3),
        distractors=(0, 0),
        repeats=(0, 0),
        facts=(0, 0),
        turns=(2, 2),
        long_sessions=0,
        echo=0,
        balanced=False,
        third_person=0,
        preamble=0,
        styles=_PLAIN,
        tips=(0, 0),
        asks=Asks(current=1, previous=0, count=0, yesno=0, change=0, abstain=0),
    ),
    "curriculum": TimelineConfig(),
    "hard": TimelineConfig(
        preset="hard",
        difficulty=(5, 5),
        updates=(2, 3),
        distractors=(3, 4),
        turns=(2, 12),
        tips=(0, 4),
        styles=Styles(explicit=15, implicit=45, paraphrased=30, correction=10, no_update=0),
    ),
    "quick": _QUICK,
    # As `quick`, and something else is always told after the last change: what was written must be kept.
    "quick_settled": replace(_QUICK, preset="quick_settled", settled=1),
    # As `quick`, and harder: more sessions and values, the old value more often mentioned after it was superseded.
    "quick_hard": replace(
        _QUICK,
        preset="quick_hard",
        sessions=(4, 5),
        updates=(1, 2),
        distractors=(1, 2),
        third_person=25,
        styles=replace(_QUICK.styles, explicit=35, paraphrased=55, late=60),
    ),
    # The length and turn distribution of LongMemEval's knowledge-update rows: two sessions, long assistant turns.
    "longmemeval": TimelineConfig(
        preset="longmemeval",
        difficulty=(3, 3),
        sessions=(2, 2),
        turns=(11, 13),
        long_sessions=0,
        updates=(1, 1),
        distractors=(1, 2),
        repeats=(0, 1),
        facts=(2, 4),
        tips=(8, 34),
        chat=(2, 4),
        gap_days=(2, 90),
        styles=Styles(explicit=60, implicit=25, paraphrased=15, late=35),
    ),
}


def _nearest(name: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.0)
    return f"; the nearest is {close[0]!r}" if close else ""


def preset(name: str) -> TimelineConfig:
    """The named preset, or a ValueError that says which name is nearest."""
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}{_nearest(name, PRESETS)}")
    return PRESETS[name]


def _checked_keys(data: Mapping[str, Any], of: TimelineConfig | Styles | Asks, where: str) -> None:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where} settings must be a mapping of names to values, got {data!r}")
    known = [f.name for f in fields(of)]
    for key in data:
        if key not in known:
            raise ValueError(f"unknown {where} key {key!r}{_nearest(key, known)}")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _range(key: str, value: Any) -> Range:
    """A single number n stands for (n, n)."""
    pair = (value, value) if _whole(value) else tuple(value) if isinstance(value, list | tuple) else ()
    if len(pair) != 2 or not all(_whole(x) for x in pair) or pair[0] > pair[1]:
        raise ValueError(f"{key} must be a number or [lowest, highest], got {value!r}")
    return pair


# The most that a range may ask for. The pools hold people enough for `distractors` and `facts`, and four centuries of
# sessions are within the calendar.
LARGEST = {
    "difficulty": max(LEVELS),
    "sessions": 400,
    "turns": 400,
    "updates": 16,
    "distractors": 16,
    "repeats": 100,
    "facts": 16,
    "tips": 400,
    "chat": 100,
    "gap_days": 365,
}
OPTIONAL = ("updates", "distractors", "repeats", "facts")
"""Ranges that may be None: the difficulty fills them in."""
PERCENTAGES = ("long_sessions", "echo", "third_person", "preamble")
SHORTEST_NOTES = 160
"""Characters that hold the longest note of a single fact with its previous value."""


def config_from_dict(data: Mapping[str, Any]) -> TimelineConfig:
    """A config from plain data: an optional `preset` to start from, and any field over it."""
    _checked_keys(data, PRESETS["curriculum"], "timeline")
    base = preset(data.get("preset", "curriculum"))
    changes: dict[str, Any] = {}
    for key, value in data.items():
        if key in LARGEST:
            changes[key] = None if value is None and key in OPTIONAL else _range(key, value)
        elif key in ("styles", "asks"):
            part = getattr(base, key)
            _checked_keys(value, part, key)
            changes[key] = replace(part, **value)
        elif key in ("attributes", "value_types"):
            changes[key] = tuple(value) if isinstance(value, list) else value
        elif key != "preset":
            changes[key] = value
    return check(replace(base, **changes))


def _check_kinds(config: TimelineConfig) -> None:
    """Refuse values of the wrong kind or size, whatever the others say."""
    for name, largest in LARGEST.items():
        bounds = getattr(config, name)
        if bounds is None and name in OPTIONAL:
            continue
        if not isinstance(bounds, tuple):
            raise ValueError(f"{name} must be a pair (lowest, highest), got {bounds!r}")
        low, high = _range(name, bounds)
        if name == "difficulty" and not 1 <= low <= high <= largest:
            raise ValueError(f"difficulty runs from 1 to {largest}, got {bounds}")
        if low < 0 or high > largest:
            raise ValueError(f"{name} must be within 0 and {largest}, got {bounds}")
    for name in PERCENTAGES:
        value = getattr(config, name)
        if not _whole(value) or not 0 <= value <= 100:
            raise ValueError(f"{name} is a percentage, got {value!r}")
    for part in (config.styles, config.asks):
        for key, value in vars(part).items():
            if not _whole(value) or value < 0:
                raise ValueError(f"{key} must be a whole number and not negative, got {value!r}")
    for key in ("late", "repeat", "no_update", "forget", "reversion", "increment"):
        if getattr(config.styles, key) > 100:
            raise ValueError(f"{key} is a percentage, got {getattr(config.styles, key)}")
    if not _whole(config.settled) or not 0 <= config.settled < max(1, config.sessions[0]):
        raise ValueError(f"settled must be at least 0 and below the fewest sessions, got {config.settled!r}")
    if not isinstance(config.balanced, bool):
        raise ValueError(f"balanced must be true or false, got {config.balanced!r}")
    if not _whole(config.notes_chars) or config.notes_chars < SHORTEST_NOTES:
        raise ValueError(f"notes_chars must be at least {SHORTEST_NOTES}, got {config.notes_chars!r}")


def _check_names(config: TimelineConfig) -> None:
    """Refuse attributes and value types that do not exist, and question kinds that none of those left can answer."""
    if config.attributes == () == config.value_types:
        return
    attributes = language("train").attributes
    known = {"attributes": list(attributes), "value_types": sorted({a.value_type for a in attributes.values()})}
    for key, names in known.items():
        wanted = getattr(config, key)
        if not isinstance(wanted, tuple):
            raise ValueError(f"{key} must be a list of names, got {wanted!r}")
        for name in wanted:
            if name not in names:
                raise ValueError(f"unknown {key} name {name!r}{_nearest(name, names)}")
    left = [
        a
        for a in attributes.values()
        if (not config.attributes or a.name in config.attributes)
        and (not config.value_types or a.value_type in config.value_types)
    ]
    if not left:
        raise ValueError(f"none of attributes={config.attributes} has one of value_types={config.value_types}")
    if config.asks.count and not any(a.increments for a in left):
        raise ValueError("count questions need an attribute that is counted: name one, or set asks.count to 0")
    if config.asks.current + config.asks.previous + config.asks.change and all(a.value_type == "boolean" for a in left):
        raise ValueError("only yesno and abstain questions can be about booleans: set the other weights to 0")


def check(config: TimelineConfig) -> TimelineConfig:
    """Refuse settings that no episode can satisfy; returns the config unchanged otherwise."""
    _check_kinds(config)
    _check_names(config)
    updates = config.updates or (0, max(LEVELS[d][0][1] for d in range(config.difficulty[0], config.difficulty[1] + 1)))
    if updates[1] + 1 > config.sessions[0]:
        raise ValueError(
            f"{updates[1]} updates need at least {updates[1] + 1} sessions (each change is told in a "
            f"session of its own); sessions may be as few as {config.sessions[0]}"
        )
    if config.turns[1] < 2 or config.turns[1] // 2 * 2 < config.turns[0]:
        raise ValueError(f"turns must allow an even number from 2 up, got {config.turns}")
    if config.gap_days[0] < 2:
        raise ValueError("gap_days must be at least 2: what happens between two sessions needs a day of its own")
    if not sum(vars(config.asks).values()):
        raise ValueError("asks switches every question kind off")
    if not config.styles.explicit + config.styles.implicit + config.styles.paraphrased:
        raise ValueError("one of explicit, implicit and paraphrased must be above 0")
    wants = config.distractors or (0, 1)
    if wants[1] and not config.styles.plan + config.styles.hypothetical + config.styles.other:
        raise ValueError("distractors need one of plan, hypothetical and other above 0")
    if config.asks.count and not config.styles.increment:
        raise ValueError("count questions need increments: set styles.increment above 0 or asks.count to 0")
    if config.asks.previous + config.asks.change and config.updates is not None and config.updates[1] == 0:
        raise ValueError("previous and change questions need updates: raise updates or set their weights to 0")
    return config
