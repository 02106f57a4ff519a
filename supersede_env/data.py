"""Which episodes to play: generated sets, a generator preset, LongMemEval, or a user's own file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from supersede_env.episode import Episode
from supersede_env.errors import UserError, refuse_unknown
from supersede_env.longmemeval import Loaded, load_longmemeval

NAMES = ("train", "validation", "oracle", "s")

FIRST_VALIDATION_SEED = 1_000_000
"""Preset episodes of the validation side count their seeds from here, so that no seed serves both sides."""


@dataclass(frozen=True, slots=True)
class DataConfig:
    """What to load.

    Attributes:
        data: `train` or `validation` (generated), `oracle` or `s` (LongMemEval), or a .jsonl file of episode records.
        preset: a generator preset for train/validation (`quick`, `control`, `curriculum`, `hard`...); without it the
            fixed sets of 2,000 and 300 episodes.
        num_episodes: take this many from the start; `None` takes all (a preset without it: 2,000 or 300).
        first_seed: the first generator seed of a preset.
        path: where LongMemEval lies (file or folder); otherwise `LONGMEMEVAL_DIR` or the download.
        exclusions: LongMemEval rows to leave out: `default`, `none`, or a JSON file.
    """

    data: str = "train"
    preset: str | None = None
    num_episodes: int | None = None
    first_seed: int = 0
    path: str | None = None
    exclusions: str = "default"

    def __post_init__(self) -> None:
        if self.num_episodes is not None and self.num_episodes < 1:
            raise UserError(f"num_episodes is {self.num_episodes}: give a positive number or leave it out")
        if not self.data.endswith(".jsonl"):
            refuse_unknown([self.data], NAMES, "data")
        if self.preset is not None and self.data not in ("train", "validation"):
            raise UserError(f"preset '{self.preset}' belongs to generated data (train, validation), not {self.data}")


def load_episodes(config: DataConfig) -> Loaded:
    """All episodes that `config` names, with what was left out. Raises `UserError`."""
    if config.data == "oracle" or config.data == "s":
        loaded = load_longmemeval(config.data, path=config.path, exclusions=config.exclusions)
        return Loaded(loaded.episodes[: config.num_episodes], loaded.excluded, loaded.unscorable)
    if config.data.endswith(".jsonl"):
        return _own_file(Path(config.data), config.num_episodes)
    return Loaded(tuple(Episode.from_record(record) for record in generated_records(config)))


def generated_records(config: DataConfig) -> Iterable[dict[str, Any]]:
    """The generator's records, true history included (the warm start reads it; `Episode` drops it)."""
    from generators import timelines

    split = "train" if config.data == "train" else "validation"
    if config.preset is None:
        fixed = timelines.training_set() if split == "train" else timelines.validation_set()
        yield from islice(fixed, config.num_episodes)
        return
    refuse_unknown([config.preset], timelines.PRESETS, "preset")
    default = 2000 if split == "train" else 300
    first = config.first_seed + (FIRST_VALIDATION_SEED if split == "validation" else 0)
    for seed in range(first, first + (config.num_episodes or default)):
        yield timelines.generate(seed, config.preset, split=split)


def task_set_hash(episodes: Iterable[Episode]) -> str:
    """Identifies a set of tasks, order included; runs with different ones are not compared."""
    digest = hashlib.sha256()
    for episode in episodes:
        digest.update(json.dumps(episode.to_record(), sort_keys=True).encode())
    return digest.hexdigest()[:12]


def _own_file(file: Path, num_episodes: int | None) -> Loaded:
    if not file.is_file():
        raise UserError(f"{file}: no such file")
    episodes: list[Episode] = []
    unscorable: list[tuple[str, str]] = []
    for number, line in enumerate(file.read_text("utf-8").split("\n"), 1):
        if not line.strip():  # split at \n only: texts may hold U+2028, which splitlines cuts at
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{file.name}, line {number}: {error}") from error
        if not isinstance(record, dict):
            raise UserError(f"{file.name}, line {number}: expected an object")
        if not str(record.get("gold") or "").strip():
            unscorable.append((str(record.get("id") or f"line {number}"), "no gold answer"))
            continue
        try:
            episodes.append(Episode.from_record(record))
        except UserError as error:
            raise UserError(f"{file.name}, line {number}: {error}") from error
    ids = [episode.id for episode in episodes]
    doubled = sorted({name for name in ids if ids.count(name) > 1})
    if doubled:
        raise UserError(f"{file.name}: id '{doubled[0]}' occurs more than once")
    return Loaded(tuple(episodes[:num_episodes]), (), tuple(unscorable))
