"""A local model (and adapter), evaluated in lock-step batches over the same protocol objects as everything else.

torch loads when a model does, never before: `eval` for endpoints runs without it.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.baselines.facts import outcome
from eval.baselines.note_takers import Start, row_fields
from eval.baselines.own import Failed
from eval.progress import Progress
from eval.rows import OVER_WINDOW, RunFolder, at, no_gold_rows, scored_row, unscored_row
from rewards.errors import UserError
from supersede_env.episode import Episode
from supersede_env.longmemeval import Loaded
from supersede_env.protocol import NotesRollout, ProtocolConfig

if TYPE_CHECKING:
    from eval.heldout import Job
    from train.policy import LocalPolicy

NAME = "local"

Task = tuple[Episode, int]
"""An episode and a sample index."""


def select(options: argparse.Namespace, loaded: Loaded, protocols: list[ProtocolConfig], start: Start) -> Loaded:
    """With `--fitting`, leave out (and name) episodes that have a prompt over the window under any condition.

    Notes are counted at their full budget. `--n` is applied to what fits.
    """
    if not options.fitting:
        return loaded
    policy = load_policy(options)
    fitting: list[Episode] = []
    excluded = list(loaded.excluded)
    for episode in loaded.episodes:
        if len(fitting) == options.n:
            break
        try:
            plays = [start(episode.view, protocol) for protocol in protocols]
        except Failed:
            plays = []  # its row will say so
        if all(_fits(policy, rollout, options.max_tokens) for rollout in plays):
            fitting.append(episode)
        else:
            excluded.append((episode.id, OVER_WINDOW))
    return Loaded(tuple(fitting), tuple(excluded), loaded.unscorable)


def _fits(policy: LocalPolicy, rollout: NotesRollout, max_tokens: int) -> bool:
    while not rollout.done:
        if not policy.fits(rollout.prompt(), max_tokens):
            return False
        rollout.step("ADD: " + "notes " * (rollout.config.budget // 6))  # full notes, and a full list of facts
    return True


def evaluate(job: Job, folder: RunFolder, lock: int) -> None:
    """Play what has no row yet and append its rows, batch by batch."""
    rows = folder.read()
    kept = [row for row in rows if "traceback" not in row]  # a memory that failed is tried again
    if len(kept) < len(rows):
        folder.replace(kept)
    done = {(row["id"], row["sample"]) for row in kept}
    folder.append(row for row in no_gold_rows(job.info) if (row["id"], row["sample"]) not in done)
    tasks = [(e, s) for e in job.episodes for s in range(job.info.samples)]
    if all((episode.id, sample) in done for episode, sample in tasks):
        return
    policy = load_policy(job.options)
    # longest first: a batch is as wide as its longest member, and the time left is never underestimated
    tasks.sort(key=lambda task: -sum(len(t.content) for s in task[0].sessions for t in s.turns))
    total = job.info.n * job.info.samples
    with Progress("rollouts", total) as progress:
        for batch in _batches(tasks, done, job.options):
            progress.show(len(done))
            rows = [row for row in play(batch, policy, job) if (row["id"], row["sample"]) not in done]
            folder.append(rows)
            done |= {(row["id"], row["sample"]) for row in rows}
        progress.show(total)


def _batches(
    tasks: Sequence[Task], done: Set[tuple[str, int]], options: argparse.Namespace
) -> Iterator[Sequence[Task]]:
    """What is to be played, in batches. A sampled batch is played whole, whatever of it is done: its seed belongs to
    all of it, and so a resumed run samples as an uninterrupted one does."""
    left = [(episode, sample) for episode, sample in tasks if (episode.id, sample) not in done]
    cut = tasks if options.temperature else left
    for start in range(0, len(cut), options.batch_size):
        batch = cut[start : start + options.batch_size]
        if any((episode.id, sample) not in done for episode, sample in batch):
            yield batch


def play(tasks: Sequence[Task], policy: LocalPolicy, job: Job) -> list[dict[str, Any]]:
    """Rows of a batch of rollouts played in lock-step; a prompt over the window ends its rollout as unscored."""
    rows: list[dict[str, Any]] = []
    begun: list[Task] = []
    rollouts: list[NotesRollout] = []
    for episode, sample in tasks:
        try:
            rollouts.append(job.start(episode.view, job.protocol))
            begun.append((episode, sample))
        except Failed as error:
            rows.append(unscored_row(episode, sample, str(error)) | {"traceback": error.trace})
    return rows + _played(begun, rollouts, policy, job)


def _played(
    tasks: Sequence[Task], rollouts: Sequence[NotesRollout], policy: LocalPolicy, job: Job
) -> list[dict[str, Any]]:
    over: set[int] = set()
    tokens = [0] * len(tasks)
    started = time.monotonic()
    while True:
        active = [i for i, rollout in enumerate(rollouts) if not rollout.done and i not in over]
        prompts = {i: rollouts[i].prompt() for i in active}
        over |= {i for i in active if not policy.fits(prompts[i], job.options.max_tokens)}
        active = [i for i in active if i not in over]
        if not active:
            break
        turn = max(len(rollouts[i].history) for i in active)
        replies = policy.generate(
            [prompts[i] for i in active],
            max_new_tokens=job.options.max_tokens,
            temperature=job.options.temperature,
            seed=_seed(job.options.seed, [tasks[i] for i in active], turn),
        )
        for i, reply in zip(active, replies, strict=True):
            rollouts[i].step(reply.text)
            tokens[i] += len(reply.token_ids)
    seconds = (time.monotonic() - started) / max(1, len(tasks))
    rows = []
    for i, (episode, sample) in enumerate(tasks):
        if i in over:
            rows.append(unscored_row(episode, sample, OVER_WINDOW))
            continue
        extra = {"seconds": seconds, "timestamp_utc": at(time.time()), "calls": rollouts[i].num_turns}
        extra |= {"new_tokens": tokens[i]} | row_fields(rollouts[i])
        rows.append(scored_row(episode, sample, outcome(rollouts[i]), job.info.stale_weight, extra))
    return rows


def _seed(seed: int, tasks: Sequence[Task], turn: int) -> int:
    """A seed of the batch's content, so that a resumed run samples as an uninterrupted one does."""
    key = f"{seed}:{turn}:" + ",".join(f"{episode.id}/{sample}" for episode, sample in tasks)
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")


def load_policy(options: argparse.Namespace) -> LocalPolicy:
    """The policy that `options` names. Raises `UserError` when torch or the model is missing."""
    try:
        from train.policy import LocalPolicy
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return LocalPolicy.load(options.model, adapter=options.adapter)


def machine() -> dict[str, str]:
    """What else shapes a local model's numbers: the device's type and the data type that are chosen here."""
    try:
        from train.weights import choose_device, choose_dtype
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    device = choose_device("auto")
    return {"device": device.type, "dtype": str(choose_dtype("auto", device)).removeprefix("torch.")}


def _missing(error: ModuleNotFoundError) -> UserError:
    return UserError(
        f"a local model needs {error.name}: run `make setup`, or pip install 'supersede-envs[local]'; "
        "for an endpoint give --base-url"
    )


def adapter_sha256(adapter: str | None) -> str | None:
    """First 12 hex digits of the adapter's weights. Raises `UserError` when there are none."""
    if adapter is None:
        return None
    weights = Path(adapter) / "adapter_model.safetensors"
    if not weights.is_file():
        raise UserError(f"--adapter {adapter}: no adapter_model.safetensors in it")
    return hashlib.sha256(weights.read_bytes()).hexdigest()[:12]
