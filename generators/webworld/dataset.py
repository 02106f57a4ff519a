"""Worlds as the files of the published layout.

`trajectories.jsonl`, `questions.jsonl`, `haystacks/lme_v2_small.json` (each question's haystack is the runs of its own
world) and, beside them, `evidence.json`: a JSON array, one question a line, of evidence and of what else is known of a
question. Nothing in the other files tells it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generators.webworld.config import WorldConfig, config_from
from generators.webworld.explorer import runs
from generators.webworld.model import World
from generators.webworld.questions import ask
from generators.webworld.worlds import foils, generate_world


@dataclass(frozen=True)
class Bundle:
    """A world with its rows; `evidence` goes with `questions` one to one."""

    world: World
    trajectories: tuple[dict[str, Any], ...]
    questions: tuple[dict[str, Any], ...]
    evidence: tuple[dict[str, Any], ...]


def bundle(seed: int, config: str | WorldConfig = "standard") -> Bundle:
    """Everything of a seed: the same whatever else is generated."""
    made = config_from(config)
    world = generate_world(seed, made)
    walked = runs(world)
    asked = ask(world, foils(seed, made), walked)
    return Bundle(
        world,
        tuple(run.record for run in walked),
        tuple(question.row for question in asked),
        tuple(question.evidence for question in asked),
    )


def write_dataset(folder: Path, seeds: Iterable[int], config: str | WorldConfig = "standard") -> dict[str, int]:
    """Write the four files and count what is in them. A folder's earlier files are replaced."""
    (folder / "haystacks").mkdir(parents=True, exist_ok=True)
    counts = {"worlds": 0, "trajectories": 0, "questions": 0}
    haystacks: dict[str, list[str]] = {}
    evidence: list[str] = []
    with (
        (folder / "trajectories.jsonl").open("w", encoding="utf-8", newline="\n") as trajectory_file,
        (folder / "questions.jsonl").open("w", encoding="utf-8", newline="\n") as question_file,
    ):
        for seed in seeds:
            made = bundle(seed, config)
            trajectory_file.writelines(_line(row) for row in made.trajectories)
            question_file.writelines(_line(row) for row in made.questions)
            ids = [row["id"] for row in made.trajectories]
            haystacks |= {row["id"]: ids for row in made.questions}
            evidence += [json.dumps(row) for row in made.evidence]
            counts["worlds"] += 1
            counts["trajectories"] += len(made.trajectories)
            counts["questions"] += len(made.questions)
    (folder / "haystacks" / "lme_v2_small.json").write_text(json.dumps(haystacks) + "\n", encoding="utf-8")
    (folder / "evidence.json").write_text("[\n" + ",\n".join(evidence) + "\n]\n", encoding="utf-8")
    return counts


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row) + "\n"
