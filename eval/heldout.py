"""Supersede on held-out episodes: `python -m eval supersede`.

An OpenAI-compatible endpoint is evaluated by verifiers' own evaluator (started as a program; its traces become rows);
a local model is evaluated in lock-step batches. Both write the same rows and resume when started again.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eval import direct, endpoint, local_model, recite
from eval.baselines import OWN
from eval.baselines.facts import facts_hash, operations
from eval.baselines.note_takers import SYSTEMS, Start, refuse_unknown_system, starter
from eval.baselines.own import find, source_hash
from eval.locks import only_writer
from eval.rows import RunFolder, RunInfo, code_version, describe, summarise
from eval.stats import INVALID_EXIT
from rewards.address import refuse_secrets
from rewards.commands import Parser, answered
from rewards.currency import GRADER_VERSION
from rewards.errors import UserError
from rewards.options import build
from supersede_env.data import DataConfig, load_episodes, task_set_hash
from supersede_env.episode import Episode
from supersede_env.longmemeval import Loaded
from supersede_env.protocol import NotesRollout, ProtocolConfig

EXAMPLE = """examples:
  python -m eval supersede --model smollm2-135m --data validation --preset quick --n 60 --out runs/base
  python -m eval supersede --model Qwen/Qwen2.5-3B-Instruct --base-url http://localhost:8000/v1 --data oracle \\
      --condition both --out runs/qwen
  python -m eval supersede --model Qwen/Qwen2.5-3B-Instruct --base-url http://localhost:8000/v1 --data oracle \\
      --system facts --out runs/qwen
  python -m eval supersede --model none --data oracle --system my_notes:remember --out runs/mine
  python -m eval compare runs/qwen/full runs/qwen/bounded

Rows go to OUT/<condition>/rows.jsonl; the same command again resumes. Exit status: 0 done, 2 refused, 3 INVALID."""

CHARS_PER_TOKEN = 4
"""A common rule of thumb for English, used for the estimate before a run and nowhere else."""


WRITERS = ("notes", "facts")
"""Systems whose notes the model writes: one call a session. Of the others only the answer is the model's."""


@dataclass(frozen=True, slots=True)
class Job:
    """One condition of one evaluation: everything an engine needs."""

    info: RunInfo
    episodes: tuple[Episode, ...]
    protocol: ProtocolConfig
    options: argparse.Namespace
    start: Start


def parser() -> Parser:
    top = Parser("python -m eval supersede", "Evaluate a model on held-out Supersede episodes.", EXAMPLE)
    add = top.add_argument
    add(
        "--model",
        required=True,
        help="name at the endpoint; without --base-url a local model (smollm2-135m, folder), or none: the final notes "
        "are the answer",
    )
    add("--out", required=True, type=Path, help="run folder; started again, the run resumes")
    add("--base-url", help="OpenAI-compatible endpoint, such as http://localhost:8000/v1")
    add("--api-key-var", default="OPENAI_API_KEY", help="environment variable that holds the endpoint's key")
    add("--adapter", help="LoRA adapter folder (local model only)")
    add(
        "--system",
        default="notes",
        metavar="NAME",
        help="who keeps the notes: the model (notes), the model as a list that it adds to and updates (facts), or a "
        "rule: no_memory, copy_last (the last session), oracle_notes (generated data), or your own, "
        "package.module:function, (notes, session) -> notes",
    )
    add("--condition", choices=("bounded", "full", "both"), default="bounded")
    add("--data", default="oracle", help="oracle, s, train, validation, or a .jsonl file (default oracle)")
    add("--preset", help="generator preset for train/validation; without it the fixed sets")
    add("--n", type=int, help="take this many episodes from the start")
    add("--first-seed", type=int, default=0, help="first generator seed of a preset")
    add("--path", help="where LongMemEval lies; otherwise LONGMEMEVAL_DIR or a download")
    add("--exclusions", default="default", help="LongMemEval rows to leave out: default, none, or a JSON file")
    add("--budget", type=int, default=300, help="B, characters of the notes (default 300)")
    add("--wording", default="standard", help="prompt texts: standard, or plain for small models")
    add("--no-dates", action="store_true", help="show no dates, as the paper's code does")
    add("--max-session-chars", type=int, help="split longer sessions at turn boundaries (bounded only)")
    add("--fitting", action="store_true", help="local: leave out (and list) episodes with a prompt over the window")
    add("--samples", type=int, default=1, help="rollouts a task (default 1)")
    add("--temperature", type=float, default=0.0, help="default 0 (greedy)")
    add("--max-tokens", type=int, default=512, help="most new tokens a call (default 512)")
    add("--seed", type=int, default=0, help="local: sampling seed")
    add("--batch-size", type=int, default=16, help="local: rollouts in lock-step (default 16)")
    add("--max-concurrent", type=int, default=16, help="endpoint: rollouts at once (default 16)")
    add("--timeout", type=float, default=600.0, help="endpoint: seconds for one request (default 600)")
    add("--max-calls", type=int, help="refuse a run that needs more model calls than this")
    add("--stale-weight", type=float, default=0.5, help="lambda of the reward column (default 0.5)")
    return top


def run(args: list[str]) -> int:
    """Entry of `python -m eval supersede`. 0: done; 2: refused; 3: INVALID."""
    options = parser().read(args)
    return answered("eval", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    _check(options)
    data = build(
        DataConfig,
        {
            "data": options.data,
            "preset": options.preset,
            "num_episodes": None if options.fitting else options.n,  # --fitting counts what fits
            "first_seed": options.first_seed,
            "path": options.path,
            "exclusions": options.exclusions,
        },
    )
    # verifiers' evaluator plays the notes protocol and no other
    served = endpoint if options.system == "notes" else direct
    engine = served if options.base_url else recite if options.model == recite.NAME else local_model
    conditions = ("bounded", "full") if options.condition == "both" else (options.condition,)
    protocols = [_protocol(options, condition) for condition in conditions]
    start = starter(options.system, data)
    loaded = engine.select(options, load_episodes(data), protocols, start)
    if not loaded.episodes:
        raise UserError("no episode is left to evaluate" + (f": {loaded.summary()}" if loaded.excluded else ""))
    print(f"{options.data}: {loaded.summary()}")
    _estimate(loaded.episodes, protocols, options)
    invalid = False
    for protocol in protocols:
        info = _info(options, engine.NAME, data, protocol, loaded)
        folder = options.out / info.condition
        with only_writer(folder) as lock:
            run_folder = RunFolder.open(folder, info)
            started = time.monotonic()
            engine.evaluate(Job(info, loaded.episodes, protocol, options, start), run_folder, lock)
            rows = run_folder.read()
        summary = summarise(rows)
        print("\n".join(describe(f"{options.model} {info.condition}", summary, info.excluded)))
        if options.system == "facts":
            print(f"  {operations(rows)}")
        print(f"  {folder / 'rows.jsonl'} ({time.monotonic() - started:.0f} s)")
        invalid |= summary.invalid
    return INVALID_EXIT if invalid else 0


def _check(options: argparse.Namespace) -> None:
    for name in ("samples", "max_tokens", "batch_size", "max_concurrent", "n"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UserError(f"--{name.replace('_', '-')} is {value}: give a positive number")
    if not 0 <= options.temperature < math.inf:
        raise UserError(f"--temperature is {options.temperature}: give 0 (greedy) or more")
    if not 0 < options.timeout < math.inf:
        raise UserError(f"--timeout is {options.timeout}: give a positive number of seconds")
    if not math.isfinite(options.stale_weight):
        raise UserError(f"--stale-weight is {options.stale_weight}: give a number")
    refuse_unknown_system(options.system)
    if options.system != "notes" and options.condition != "bounded":
        raise UserError(f"--system {options.system} has no full-context condition: leave out --condition")
    if options.system not in WRITERS and options.max_session_chars:
        raise UserError(f"--system {options.system} has one note a session: leave out --max-session-chars")
    if options.base_url and options.adapter:
        raise UserError("--adapter is for local models; an endpoint serves an adapter under a model name of its own")
    if options.base_url:
        _check_url(options.base_url)


def _check_url(url: str) -> None:
    refuse_secrets(url, "--base-url")
    if not url.startswith(("http://", "https://")):
        raise UserError(f"--base-url '{url}' does not begin with http:// or https://")
    try:
        parts = urlsplit(url)
        good = bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port: no number, or over 65535
        good = False
    if not good:
        raise UserError(f"--base-url '{url}' names no host and port, as http://localhost:8000/v1 does")


def _protocol(options: argparse.Namespace, condition: str) -> ProtocolConfig:
    values: dict[str, Any] = {
        "condition": condition,
        "budget": options.budget,
        "wording": options.wording,
        "show_dates": not options.no_dates,
    }
    if condition == "bounded":
        values["max_session_chars"] = options.max_session_chars
    return build(ProtocolConfig, values)


def _estimate(episodes: tuple[Episode, ...], protocols: list[ProtocolConfig], options: argparse.Namespace) -> None:
    if not options.base_url and options.model == recite.NAME:
        return
    plays = [NotesRollout(episode.view, protocol) for episode in episodes for protocol in protocols]
    turns = (play.num_turns for play in plays) if options.system in WRITERS else (1 for _ in plays)
    calls = sum(turns) * options.samples
    chars = sum(len(turn.content) for episode in episodes for s in episode.sessions for turn in s.turns)
    tokens = chars * len(protocols) * options.samples // CHARS_PER_TOKEN
    print(
        f"about {calls:,} calls, {tokens:,} prompt tokens (estimated at {CHARS_PER_TOKEN} characters a token), "
        f"at most {calls * options.max_tokens:,} new tokens"
    )
    if options.max_calls is not None and calls > options.max_calls:
        raise UserError(f"{calls} calls are needed, --max-calls allows {options.max_calls}: take a smaller --n")


def _named(system: str) -> str:
    """A system as run folders and reports call it. A function that is called like something of ours (`full`) keeps its
    module's name: full would be read as the condition."""
    name = system.rpartition(":")[2]
    return system.replace(":", ".") if name != system and name in (*SYSTEMS, "bounded", "full") else name


def _info(
    options: argparse.Namespace, engine: str, data: DataConfig, protocol: ProtocolConfig, loaded: Loaded
) -> RunInfo:
    system, own = options.system, OWN.fullmatch(options.system)
    shaped = {} if system == "notes" else {"system": system}
    shaped |= {"system_sha256": source_hash(find(system, "notes", "session"))} if own else {}
    sampling: dict[str, Any] = {"temperature": options.temperature, "max_tokens": options.max_tokens}
    if engine == local_model.NAME:
        sampling |= {"seed": options.seed, "batch_size": options.batch_size} | local_model.machine()
    return RunInfo(
        model=options.model,
        adapter=options.adapter,
        adapter_sha256=local_model.adapter_sha256(options.adapter),
        condition=protocol.condition if system == "notes" else _named(system),
        engine=engine,
        # where the file lies does not shape a result; the task set's hash stands for its content
        data={key: value for key, value in asdict(data).items() if key != "path"},
        protocol=asdict(protocol) | shaped,
        sampling=sampling,
        samples=options.samples,
        n=len(loaded.episodes) + len(loaded.unscorable),
        task_set=task_set_hash(loaded.episodes),
        prompt_hash=facts_hash(protocol) if system == "facts" else protocol.hash,
        grader_version=GRADER_VERSION,
        code_version=code_version(),
        stale_weight=options.stale_weight,
        excluded=[list(pair) for pair in loaded.excluded],
        unscorable=[list(pair) for pair in loaded.unscorable],
    )
