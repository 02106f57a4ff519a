"""Which episodes to play: generated sets, a generator preset, LongMemEval, or a user's own file."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rewards import strict_json
from rewards.errors import UserError, refuse_unknown
from supersede_env.episode import Episode, has_gold, refuse_half_characters
from supersede_env.longmemeval import Loaded, load_longmemeval, refuse_doubled

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


def episodes_told(config: DataConfig) -> tuple[Episode, ...]:
    """The episodes alone, for verifiers' datasets; rows that were left out are logged as a warning, never silent."""
    loaded = load_episodes(config)
    if loaded.excluded or loaded.unscorable:
        logging.getLogger(__name__).warning("%s: %s", config.data, loaded.summary())
    if not loaded.episodes:
        raise UserError(f"{config.data}: no episode to play")
    return loaded.episodes


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
    try:
        text = file.read_text("utf-8-sig")  # editors on Windows put a byte order mark first
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():  # split at \n only: texts may hold U+2028, which splitlines cuts at
            continue
        where = f"{file.name}, line {number}"
        try:
            record = strict_json.loads(line)
        except ValueError as error:  # no JSON, a number of thousands of digits, endless nesting
            raise UserError(f"{where}: {error}") from error
        if not isinstance(record, dict):
            raise UserError(f"{where}: expected an object")
        refuse_half_characters(record, where)
        if has_gold(record):
            try:
                episodes.append(Episode.from_record(record))
            except UserError as error:
                raise UserError(f"{where}: {error}") from error
        elif num_episodes is None or len(episodes) < num_episodes:  # what lies behind the last episode is not asked for
            unscorable.append((str(record.get("id") or f"line {number}"), "no gold answer"))
    refuse_doubled([*(episode.id for episode in episodes), *(row_id for row_id, _ in unscorable)], file.name)
    return Loaded(tuple(episodes[:num_episodes]), (), tuple(unscorable))
