"""No model at all: the final notes are taken as the answer.

It says whether the notes assert the value that holds and no superseded one. It is no agent's accuracy: a model may
misread good notes, and find the current value in notes that hold both.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from eval.baselines.facts import outcome
from eval.baselines.note_takers import Start, row_fields
from eval.baselines.own import Failed
from eval.progress import Progress
from eval.rows import RunFolder, no_gold_rows, scored_row, unscored_row
from rewards.errors import UserError
from supersede_env.episode import Episode
from supersede_env.longmemeval import Loaded
from supersede_env.protocol import ProtocolConfig

if TYPE_CHECKING:
    from eval.heldout import Job

NAME = "none"
"""Also what `--model` calls it."""


def select(options: argparse.Namespace, loaded: Loaded, protocols: list[ProtocolConfig], start: Start) -> Loaded:
    """All episodes. Raises `UserError` where a model is needed."""
    if options.system in ("notes", "facts"):
        raise UserError(f"--model none plays no model, and --system {options.system} needs one to keep the notes")
    if options.fitting or options.adapter:
        raise UserError("--model none has no window and takes no adapter: leave out --fitting and --adapter")
    return loaded


def evaluate(job: Job, folder: RunFolder, lock: int) -> None:
    """Play every task that has no scored row."""
    kept = [row for row in folder.read() if row["scored"]]
    folder.replace(no_gold_rows(job.info) + kept)
    done = {(row["id"], row["sample"]) for row in kept}
    tasks = [(e, s) for e in job.episodes for s in range(job.info.samples) if (e.id, s) not in done]
    with Progress("episodes", len(kept) + len(tasks)) as progress:
        for number, task in enumerate(tasks, len(kept) + 1):
            folder.append([_row(job, *task)])
            progress.show(number)


def _row(job: Job, episode: Episode, sample: int) -> dict[str, Any]:
    try:
        rollout = job.start(episode.view, job.protocol)
    except Failed as error:
        return unscored_row(episode, sample, str(error)) | {"traceback": error.trace}
    rollout.step(rollout.notes)
    return scored_row(episode, sample, outcome(rollout), job.info.stale_weight, row_fields(rollout))
