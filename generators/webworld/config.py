"""How large and how hard a generated world is, the presets, and the seeds of each split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

KINDS = ("servicedesk", "shop", "admin", "forum")

SPLITS = {
    "train": range(0, 1_000_000),
    "validation": range(1_000_000, 1_100_000),
    "heldout": range(2_000_000, 2_100_000),
}
"""Seeds of the worlds of each split. A world belongs to one split, and so do the worlds that its traps come from."""

Range = tuple[int, int]


@dataclass(frozen=True)
class WorldConfig:
    """Sizes of a world; pairs are the least and the most, both included."""

    preset: str
    trajectories: int
    """Even: half of them succeed."""
    lists: Range
    """List pages (tickets, orders, threads), each with record pages."""
    forms: Range
    rows: Range
    """Records in a list, and items in the catalogue."""
    page_size: Range
    """Rows shown at once."""
    fields: Range
    """Text, choice and number fields in a form, without the one that a rule brings up."""
    options: Range
    """Options of a choice field."""
    noise: int
    """Chance in percent that a run takes a needless step before a needed one."""
    chrome: bool
    """Whether pages carry the furniture of real ones: skip links, a banner, a footer, help texts."""
    quotas: tuple[tuple[str, int], ...]
    """Questions of each type, at most."""
    judged_gotchas: int
    """Chance in percent that a gotcha is asked in free form, for a judge."""
    plain: bool
    """Only questions whose answer stands on one line of one page (and those with a false premise)."""
    kinds: tuple[str, ...] = KINDS


PRESETS = {
    "easy": WorldConfig(
        preset="easy",
        trajectories=8,
        lists=(1, 1),
        forms=(1, 1),
        rows=(3, 5),
        page_size=(3, 4),
        fields=(3, 4),
        options=(3, 3),
        noise=8,
        chrome=False,
        quotas=(
            ("static-environment", 4),
            ("dynamic-environment", 3),
            ("procedure", 2),
            ("errors-gotchas", 1),
            ("static-environment-abs", 2),
            ("dynamic-environment-abs", 1),
            ("procedure-abs", 1),
        ),
        judged_gotchas=0,
        plain=True,
    ),
    "standard": WorldConfig(
        preset="standard",
        trajectories=20,
        lists=(2, 3),
        forms=(2, 2),
        rows=(7, 14),
        page_size=(4, 6),
        fields=(5, 8),
        options=(4, 6),
        noise=18,
        chrome=True,
        quotas=(
            ("static-environment", 6),
            ("dynamic-environment", 5),
            ("procedure", 4),
            ("errors-gotchas", 2),
            ("static-environment-abs", 3),
            ("dynamic-environment-abs", 2),
            ("procedure-abs", 1),
        ),
        judged_gotchas=40,
        plain=False,
    ),
}

PRESETS["hard"] = replace(
    PRESETS["standard"],
    preset="hard",
    trajectories=40,
    lists=(3, 4),
    forms=(3, 3),
    rows=(12, 20),
    page_size=(7, 10),
    fields=(8, 12),
    options=(5, 7),
    noise=25,
)
"""Longer pages, more of everything."""

PRESETS["judge_free"] = replace(
    PRESETS["easy"],
    preset="judge_free",
    quotas=tuple((kind, count) for kind, count in PRESETS["easy"].quotas if not kind.endswith("-abs")),
)
"""Easy worlds without false premises: every question can be graded, and nearly all can be read, without a model."""


BOUNDS: dict[str, Range] = {
    "lists": (1, 4),
    "forms": (1, 3),
    "rows": (3, 20),
    "page_size": (2, 20),
    "fields": (3, 12),
    "options": (3, 7),
}
"""What the word banks last for; seven wrong options have to be left of a choice's fourteen."""


def config_from(preset: str | WorldConfig, over: dict[str, Any] | None = None) -> WorldConfig:
    """A preset by name with some fields replaced. Raises `ValueError`, naming the nearest name."""
    if isinstance(preset, WorldConfig):
        base = preset
    elif preset in PRESETS:
        base = PRESETS[preset]
    else:
        raise ValueError(f"unknown preset '{preset}'{_near(preset, PRESETS)}")
    over = over or {}
    for name in over:
        if name not in WorldConfig.__dataclass_fields__:
            raise ValueError(f"unknown setting '{name}'{_near(name, WorldConfig.__dataclass_fields__)}")
    made = replace(base, **{name: _frozen(value) for name, value in over.items()})
    if made.trajectories % 2 or made.trajectories < 8:
        raise ValueError(f"trajectories must be even and at least 8, got {made.trajectories}")
    for name, (least, most) in BOUNDS.items():
        low, high = getattr(made, name)
        if not least <= low <= high <= most:
            raise ValueError(f"{name} must be a pair within {least}..{most}, got {low}, {high}")
    if not made.kinds or set(made.kinds) - set(KINDS):
        raise ValueError(f"kinds must be some of {', '.join(KINDS)}")
    return made


def _frozen(value: Any) -> Any:
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


def split_of(seed: int) -> str:
    """The split that a seed belongs to. Raises `ValueError` for one that belongs to none."""
    for name, seeds in SPLITS.items():
        if seed in seeds:
            return name
    spans = ", ".join(f"{name} {seeds.start}..{seeds.stop - 1}" for name, seeds in SPLITS.items())
    raise ValueError(f"seed {seed} belongs to no split ({spans})")


def _near(name: str, known: Any) -> str:
    close = get_close_matches(name, list(known), 1, 0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(known)}"
