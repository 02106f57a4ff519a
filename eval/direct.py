"""An OpenAI-compatible endpoint, played by this process: for systems that verifiers' evaluator does not know.

Rollouts run side by side, each turn one request. Rows are appended as they are finished; a start after a crash or an
outage redoes what is missing or failed.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

from eval import endpoint
from eval.baselines.facts import outcome
from eval.baselines.note_takers import row_fields
from eval.baselines.own import Failed
from eval.progress import Progress
from eval.rows import OVER_WINDOW, RunFolder, at, no_gold_rows, scored_row, unscored_row
from lme_v2_env.chat import Endpoint, EndpointError, OverLong
from supersede_env.episode import Episode
from supersede_env.protocol import NoReply, visible_reply

if TYPE_CHECKING:
    from eval.heldout import Job

NAME = endpoint.NAME

select = endpoint.select


def evaluate(job: Job, folder: RunFolder, lock: int) -> None:
    """Play every task that has no scored row."""
    unscorable = no_gold_rows(job.info)
    kept = [row for row in folder.read() if row["scored"]]
    folder.replace(unscorable + kept)
    done = {(row["id"], row["sample"]) for row in kept}
    order = [(episode, sample) for episode in job.episodes for sample in range(job.info.samples)]
    tasks = [(episode, sample) for episode, sample in order if (episode.id, sample) not in done]
    options = job.options
    client = Endpoint(options.base_url, options.model, options.api_key_var, timeout=options.timeout)
    pool = ThreadPoolExecutor(options.max_concurrent)
    waiting = {pool.submit(_row, job, client, *task) for task in tasks}
    try:
        with Progress("rollouts", len(order)) as progress:
            for future in as_completed(list(waiting)):
                waiting.remove(future)
                folder.append([future.result()])
                progress.show(len(order) - len(waiting))
    finally:  # without waiting: on Ctrl-C nothing more is paid for, and what was finished meanwhile is kept
        pool.shutdown(wait=False, cancel_futures=True)
        paid = [future for future in waiting if future.done() and not future.cancelled()]
        folder.append(future.result() for future in paid if future.exception() is None)
    place = {(episode.id, sample): number for number, (episode, sample) in enumerate(order)}
    folder.replace(sorted(folder.read(), key=lambda row: place.get((row["id"], row["sample"]), -1)))


def _row(job: Job, client: Endpoint, episode: Episode, sample: int) -> dict[str, Any]:
    finished: list[str | None] = []
    usage: Counter[str] = Counter()
    started = time.monotonic()
    try:
        rollout = job.start(episode.view, job.protocol)
        while not rollout.done:
            reply = client.exchange(
                [dict(message) for message in rollout.prompt()],
                temperature=job.options.temperature,
                max_tokens=job.options.max_tokens,
            )
            rollout.step(_text(reply.message))
            finished.append(reply.finish_reason)
            usage.update(reply.usage)
    except Failed as error:
        return unscored_row(episode, sample, str(error)) | {"traceback": error.trace}
    except OverLong:
        return unscored_row(episode, sample, OVER_WINDOW)
    except (EndpointError, NoReply) as error:
        return unscored_row(episode, sample, str(error))
    extra = {
        "seconds": time.monotonic() - started,
        "timestamp_utc": at(time.time()),
        "calls": len(finished),
        "finish_reasons": finished,
        "usage": dict(usage),
        **row_fields(rollout),
    }
    return scored_row(episode, sample, outcome(rollout), job.info.stale_weight, extra)


def _text(message: dict[str, Any]) -> str:
    """What the protocol takes of a message, the empty text included. Raises `NoReply`."""
    content = message.get("content")
    reasoning = message.get("reasoning") or message.get("reasoning_content")
    return visible_reply(content if isinstance(content, str) else None, reasoning)
