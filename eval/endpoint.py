"""An OpenAI-compatible endpoint, evaluated by verifiers' own evaluator as a program.

The evaluator writes `traces.jsonl` below the run folder and can resume it; rows are made from the traces, never beside
them, so that running again after a crash or an outage redoes exactly what is missing or failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from eval.baselines.note_takers import Start
from eval.progress import Progress
from eval.rows import OVER_WINDOW, RunFolder, at, no_gold_rows, scored_row, unscored_row, write_atomic
from rewards.errors import UserError
from supersede_env.episode import Episode
from supersede_env.longmemeval import Loaded
from supersede_env.protocol import ProtocolConfig
from supersede_env.scoring import Outcome

if TYPE_CHECKING:
    from eval.heldout import Job

NAME = "endpoint"
TRACES = "traces"

CONTEXT_LENGTH = re.compile(r"context[ _-]?(length|window)|maximum context|too many tokens", re.IGNORECASE)
"""How endpoints word a refusal of a prompt that is longer than their window."""


def select(options: argparse.Namespace, loaded: Loaded, protocols: list[ProtocolConfig], start: Start) -> Loaded:
    """All episodes: the endpoint knows its window, not we. Raises `UserError` without a key."""
    if options.fitting:
        raise UserError("--fitting needs a local model: an endpoint's window and tokenizer are not known here")
    _have_key(options)
    return loaded


def evaluate(job: Job, folder: RunFolder, lock: int) -> None:
    """Run or resume the evaluator, then write the rows of its traces. Raises `UserError` when it cannot start."""
    rows = folder.read()
    complete = len(rows) == job.info.n * job.info.samples  # fewer: the file was cut, and is made anew from the traces
    if complete and _settled(rows):
        return
    traces = folder.folder / TRACES / "traces.jsonl"
    total = len(job.episodes) * job.info.samples
    command, log = evaluator_command(job, folder.folder), folder.folder / "evaluator.log"
    with Progress("rollouts", total) as progress, log.open("ab") as output:
        # Standard error has its messages; standard output repeats every trace, which would double the disk's load.
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=output, stdin=subprocess.DEVNULL, pass_fds=(lock,)
        )
        try:
            while True:
                try:
                    process.wait(timeout=1.0)
                    break
                except subprocess.TimeoutExpired:
                    progress.show(_count_lines(traces))
        except KeyboardInterrupt:
            process.terminate()  # not SIGINT: a shell may have left that ignored; the evaluator takes no harm from both
            process.wait()
            folder.replace(rows_of(traces, job))
            raise
        progress.show(_count_lines(traces))
    rows = rows_of(traces, job)
    folder.replace(rows)
    if process.returncode != 0 and not _settled(rows):
        raise UserError(
            f"the evaluator failed (exit {process.returncode}): {_last_line(log)} — see {log}; the same command resumes"
        )


def _settled(rows: list[dict[str, Any]]) -> bool:
    """Is there nothing left to play? Rows without gold are never played."""
    return all(row["scored"] for row in rows if row["gold"] is not None)


def evaluator_command(job: Job, folder: Path) -> list[str]:
    """The evaluator's command line: a fresh run, or the resumption of the one in `folder`."""
    old_api = version("verifiers").startswith("0.3.")
    program = Path(sys.executable).parent / ("eval" if old_api else "vf-eval")
    if not program.is_file():
        raise UserError(f"verifiers' evaluator '{program.name}' is not installed beside {Path(sys.executable).name}")
    flags = ["--no-rich", "--no-push"]
    resolved = folder / TRACES / "configs" / "resolved" / "eval.json"
    if resolved.is_file() and (folder / TRACES / "traces.jsonl").is_file():
        _take_up(resolved, job, folder)
        return [str(program), "@", str(resolved), "--resume"]
    if old_api:
        flags.append("--no-serve")
    options, info = job.options, job.info
    settings: dict[str, Any] = {
        "model": options.model,
        "client.base-url": options.base_url,
        "client.api-key-var": options.api_key_var,
        "sampling.temperature": options.temperature,
        "sampling.max-tokens": options.max_tokens,
        "num-rollouts": info.samples,
        "max-concurrent": options.max_concurrent,
        "output-dir": folder.resolve(),
        "run.dir": TRACES,
        "env.taskset.task.stale-weight": info.stale_weight,
        "env.taskset.path": Path(options.path).resolve() if options.path else None,
        **{f"env.taskset.{name.replace('_', '-')}": value for name, value in info.data.items()},
        **{f"env.taskset.{name.replace('_', '-')}": value for name, value in info.protocol.items()},
    }
    pairs = [part for name, value in settings.items() if value is not None for part in (f"--{name}", str(value))]
    return [str(program), "supersede-env", *pairs, *flags]


def _take_up(resolved: Path, job: Job, folder: Path) -> None:
    """Put what may differ from the last time into the saved configuration, from which alone the evaluator resumes.

    These shape no result: where the endpoint, its key, the data and the run folder are, and how much runs at once.
    """
    options = job.options
    try:
        config = json.loads(resolved.read_text("utf-8"))
        config["client"] |= {"base_url": options.base_url, "api_key_var": options.api_key_var}
        config["env"]["taskset"]["path"] = str(Path(options.path).resolve()) if options.path else None
        config |= {"max_concurrent": options.max_concurrent, "output_dir": str(folder.resolve())}
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{resolved} is damaged: give another --out, or delete {folder}") from None
    write_atomic(resolved, json.dumps(config, indent=2))


def _have_key(options: argparse.Namespace) -> None:
    """The evaluator's client insists on a key. A server on this machine takes any; elsewhere it must be there."""
    if os.environ.get(options.api_key_var):
        return
    if urlsplit(options.base_url).hostname not in ("localhost", "127.0.0.1", "::1"):
        raise UserError(f"{options.api_key_var} is not set: export the endpoint's key, or name --api-key-var")
    os.environ[options.api_key_var] = "none"


def rows_of(traces: Path, job: Job) -> list[dict[str, Any]]:
    """One row a task and sample, in task order; what has no trace yet is unscored as not run."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in read_traces(traces):
        found.setdefault(record["task"]["data"]["episode"]["id"], []).append(record)
    rows = no_gold_rows(job.info)
    for episode in job.episodes:
        records = found.get(episode.id, [])
        records.sort(key=lambda record: not record["ok"])  # after a resume a failed attempt may lie beside a good one
        for sample in range(job.info.samples):
            if sample < len(records):
                rows.append(_row(episode, sample, records[sample], job.info.stale_weight))
            else:
                rows.append(unscored_row(episode, sample, "not run"))
    return rows


def read_traces(file: Path) -> Iterator[dict[str, Any]]:
    """The episodes of a `traces.jsonl`; a line that a crash left in pieces is passed over (the evaluator redoes it)."""
    if not file.is_file():
        return
    with file.open("rb") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _row(episode: Episode, sample: int, record: dict[str, Any], stale_weight: float) -> dict[str, Any]:
    trace = record["traces"][-1] if record["traces"] else None
    outcome = trace["info"].get("outcome") if trace else None
    if not record["ok"] or trace is None or outcome is None:
        return unscored_row(episode, sample, _reason(record))
    agent = trace["timing"]["agent"]
    calls = trace.get("calls") or []
    extra = {
        "seconds": agent["end"] - agent["start"],
        "timestamp_utc": at(agent["end"]),
        "calls": len(calls),
        "finish_reasons": [call.get("finish_reason") for call in calls],
    }
    return scored_row(episode, sample, Outcome.from_record(outcome), stale_weight, extra)


def _reason(record: dict[str, Any]) -> str:
    errors = [error for trace in record["traces"] for error in trace.get("errors") or ()] + (record.get("errors") or [])
    stops = [trace.get("stop_condition") for trace in record["traces"]]
    text = f"{errors[-1]['type']}: {errors[-1]['message']}" if errors else "failed without a reason"
    if "context_length" in stops or CONTEXT_LENGTH.search(text):
        return OVER_WINDOW
    return " ".join(text.split())[:300]


def _count_lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.is_file() else 0


def _last_line(log: Path) -> str:
    lines = [line.strip(" │╭╮╰╯─") for line in log.read_text("utf-8", errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "no output")
