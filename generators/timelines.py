"""Supersession timelines: dated chats in which facts change, and a question that the last mention does not answer.

`generate(seed, config)` is a pure function of its arguments with the same bytes on every machine and Python version.
The world comes first (`world`), then the question and all that follows from the history (`questions`), then the words
(`render`); gold, superseded values and evidence never depend on the text.

    python -m generators.timelines --preset curriculum --seed 7 --show
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from generators.config import PRESETS, TimelineConfig, check, config_from_dict, preset
from generators.draw import Draw
from generators.facts import EFFECTS, USER, Event, World
from generators.language import SPLITS, language
from generators.questions import ask, oracle_notes
from generators.render import day_text, render, stamp
from generators.world import build

DATASET_VERSION = "2"
"""Changes whenever the bytes of the fixed sets change."""

__all__ = [
    "DATASET_VERSION",
    "PRESETS",
    "TimelineConfig",
    "config_from_dict",
    "fingerprint",
    "generate",
    "training_set",
    "validation_set",
]


def generate(seed: int, config: TimelineConfig | str = "curriculum", *, split: str = "train") -> dict[str, Any]:
    """One episode as a JSON-ready record.

    `split` chooses the phrase banks and value pools: "validation" shares no phrasing and no open-class value with
    "train". The key `history` (true events, oracle notes and answer) is for teachers and tests, never for an agent.
    """
    if not isinstance(config, str | TimelineConfig):
        raise ValueError(f"config must be a preset's name or a TimelineConfig (see config_from_dict), got {config!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ValueError(f"seed must be a whole number, got {seed!r}")
    settings = preset(config) if isinstance(config, str) else check(config)
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; the splits are {', '.join(SPLITS)}")
    bank = language(split)
    draw = Draw(seed, f"{settings.preset}/{split}")
    world = build(draw, settings, bank)
    sessions = render(draw, settings, bank, world)
    question = ask(draw, settings, bank, world)
    return {
        "id": f"timeline-{_name(settings)}-{split}-{seed}",
        "sessions": sessions,
        "question": question.text,
        "question_date": stamp(world.question_day, 480 + draw.below(800)),
        "gold": question.gold,
        "stale": question.stale,
        "asks": world.asks,
        "abstain": world.asks == "abstain",
        "evidence": question.evidence,
        "source": "generated",
        "tags": _tags(settings, split, world, bank.attributes[world.slot.attribute].value_type),
        "history": {
            "events": [_event(world, e) for e in world.events],
            "candidates": world.labels,
            "oracle_notes": oracle_notes(settings, bank, world),
            "oracle_answer": question.answer,
        },
    }


def _name(settings: TimelineConfig) -> str:
    """The preset's name, with a checksum of the settings where they differ from it, so that ids stay unique."""
    if settings == PRESETS.get(settings.preset):
        return settings.preset
    return f"{settings.preset}~{zlib.crc32(repr(settings).encode()):08x}"


def _fixed(config: str, split: str, first_seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Episodes from consecutive seeds, leaving out a question already asked in the same words with another answer."""
    answers: dict[str, str] = {}
    seed = first_seed
    while count:
        record = generate(seed, config, split=split)
        seed += 1
        if answers.setdefault(record["question"].casefold(), record["gold"]) == record["gold"]:
            count -= 1
            yield record


def training_set(preset: str = "curriculum") -> Iterator[dict[str, Any]]:
    """The 2,000 fixed training episodes, streamed in a fixed order."""
    return _fixed(preset, "train", 1_000_000, 2_000)


def validation_set(preset: str = "curriculum") -> Iterator[dict[str, Any]]:
    """The 300 fixed validation episodes: other seeds, other phrasings, other open-class values."""
    return _fixed(preset, "validation", 2_000_000, 300)


def fingerprint(records: Iterable[dict[str, Any]]) -> str:
    """sha256 of the records as canonical JSON lines; `language/fixed_sets.json` holds those of the two fixed sets."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(json.dumps(record, sort_keys=True, ensure_ascii=True).encode() + b"\n")
    return digest.hexdigest()


def _event(world: World, event: Event) -> dict[str, Any]:
    slot = event.slot
    return {
        "date": day_text(event.day),
        "person": slot.person.label("user's") if slot.person != USER else "user",
        "attribute": slot.attribute,
        "entity": slot.entity,
        "kind": event.kind,
        "style": event.style,
        "value": event.value,
        "delta": event.delta,
        "named": event.named,
        "session": event.session,
        "turn": event.turn,
        "text": event.text,
        "asked_slot": slot == world.slot,
    }


STYLE_OF_KIND = {
    "plan": "plan",
    "plan_failed": "plan",
    "cancel": "plan",
    "late": "late",
    "far": "late",
    "prior": "late",
    "hypothetical": "hypothetical",
    "repeat": "repeat",
    "correct": "correction",
    "revert": "reversion",
    "increment": "increment",
}


def _tags(config: TimelineConfig, split: str, world: World, value_type: str) -> dict[str, Any]:
    """What an episode is made of, for curricula and for reports.

    Of an abstention, the attribute is that of the fact that was told, while the asked one was not.
    """
    own = [e for e in world.told() if e.slot.attribute == world.slot.attribute]
    effects = [e for e in own if e.slot == world.slot and e.kind in EFFECTS]
    styles = {STYLE_OF_KIND[e.kind] for e in own if e.kind in STYLE_OF_KIND}
    styles |= {e.style for e in effects[1:] if e.kind == "change"}
    styles |= {"other"} if any(e.slot != world.slot for e in own) else set()
    if len(effects) == 1:
        styles.add("no_update")
    last = effects[-1]
    return {
        "preset": config.preset,
        "split": split,
        "version": DATASET_VERSION,
        "difficulty": world.difficulty,
        "styles": sorted(styles),
        "update_style": last.style if len(effects) > 1 else "no_update",
        "value_type": value_type,
        "attribute": world.slot.attribute,
        "person": "user" if world.slot.person == USER else "other",
        "candidates": len({e.value for e in own if e.named}),
        "sessions_after_update": len(world.days) - 1 - (last.session or 0),
    }


if __name__ == "__main__":
    from generators.cli import main

    sys.exit(main())
