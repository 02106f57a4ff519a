"""LongMemEval-V2: `python -m eval lme-v2`. Insert, query, read, grade; every step resumable.

One folder a system below --out. `run.json` says what made it, `rows.jsonl` has a row a question, `contexts/` what each
memory returned, `memories.json` what building cost; `<system>_<domain>_<tier>/` is the layout that the published
leaderboard scripts read.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from fnmatch import filter as matching
from functools import partial
from pathlib import Path
from typing import Any, get_args

from eval.arguments import picture
from eval.baselines import AGENTS, OWN, SYSTEMS, Kit, System, build
from eval.baselines.coding.options import add_agent_options, agent_from
from eval.baselines.policy import add_policy_options, policy_from
from eval.lme_export import export
from eval.lme_rows import LmeRun, code_version, data_hash, open_run, summarise
from eval.lme_run import Job, play
from eval.lme_table import causes, plot, render
from eval.locks import only_writer
from eval.rows import ROWS_FILE
from eval.stats import INVALID_EXIT
from lme_v2_env.chat import Endpoint
from lme_v2_env.dataset import TIERS, Dataset, open_dataset
from lme_v2_env.extractive import ExtractiveReader
from lme_v2_env.judge import LmeJudge
from lme_v2_env.memory.api import Mode, RetrievalConfig
from lme_v2_env.memory.embed import Embedder, embedder_from
from lme_v2_env.memory.library import Library, TemplateWriter, Writer
from lme_v2_env.memory.store import Store
from lme_v2_env.memory.writer import ModelWriter
from lme_v2_env.reader import PUBLISHED_CONTEXT_TOKENS, EndpointReader, Reader, Sampling, load_prompts
from lme_v2_env.tokens import counter_for
from lme_v2_env.trajectory import DOMAINS, Question
from rewards.commands import Parser, answered
from rewards.errors import UserError, refuse_unknown
from rewards.lme_v2 import GRADER_VERSION

EXAMPLE = """examples:
  # a smoke test on real ServiceNow runs, without a model or a network; not a LongMemEval-V2 score
  python -m eval lme-v2 --system all --data workarena_trajectories --questions longmemeval_v2/questions.jsonl \\
      --tier whole --reader extractive --no-judge --out runs/lme-smoke

  # the benchmark
  python -m eval lme-v2 --system rag_slice_notes --data longmemeval-v2 --tier small --out runs/lme \\
      --embedder Qwen/Qwen3-Embedding-8B --embed-base-url http://localhost:8001/v1 \\
      --reader Qwen/Qwen3.5-9B --base-url http://localhost:8000/v1 --judge gpt-5.2 --judge-base-url https://...

The same command again resumes. Exit status: 0 done, 2 refused, 3 INVALID (over 2 % of the rows are unscored)."""

PUBLISHED_SAMPLING = Sampling()

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "lme_v2_env"


def parser() -> Parser:
    top = Parser("python -m eval lme-v2", "Evaluate memory systems on LongMemEval-V2 data.", EXAMPLE)
    add = top.add_argument
    add(
        "--system",
        required=True,
        help=f"names or patterns, comma-separated, or all: {', '.join(SYSTEMS)}; or package.module:Class",
    )
    add("--data", required=True, type=Path, help="folder of the dataset")
    add("--out", required=True, type=Path, help="run folder; started again, the run resumes")
    add("--tier", default="small", help=f"{', '.join(TIERS)} (whole: every trajectory of the file in one haystack)")
    add("--questions", type=Path, help="another questions.jsonl")
    add("--domain", choices=DOMAINS, help="only this domain")
    add("--question-ids", default="", help="only these, comma-separated")
    add("--limit", type=int, help="this many questions a domain, from the start")
    add("--cache", type=Path, default=CACHE, help="what is computed once for every trajectory is kept here")
    add("--concurrency", type=int, default=1, help="questions at once; 1 (default) gives comparable latencies")
    add("--readers", type=int, default=1, help="answers read and judged at once, between queries (default 1)")

    memory = top.add_argument_group("memory").add_argument
    memory("--embedder", default="minilm", help="minilm, hashing, or a model name with --embed-base-url")
    memory("--embed-base-url", help="OpenAI-compatible endpoint of the embedder")
    memory("--embed-api-key-var", default="OPENAI_API_KEY")
    memory("--retrieval", choices=get_args(Mode), default="hybrid", help="dense, bm25 or their fusion (default)")
    memory("--slices", type=int, default=6, help="slices a question (default 6)")
    memory("--published-rag", action="store_true", help="dense alone, question verbatim, overlapping slices kept")

    memory("--writer", help="model that writes the notes and events (default: a template)")
    memory("--writer-base-url", help="its OpenAI-compatible endpoint")
    memory("--writer-api-key-var", default="OPENAI_API_KEY")
    memory("--writer-images", action="store_true", help="show it the screenshots, too")

    runbook = top.add_argument_group("AgentRunbook-R").add_argument
    runbook("--controller", default="rules", help="model that writes the queries, or rules (default; no model)")
    runbook("--controller-base-url", help="its OpenAI-compatible endpoint")
    runbook("--controller-api-key-var", default="OPENAI_API_KEY")
    runbook("--parity", action="store_true", help="as the published code does where it differs from the paper")

    add_agent_options(top)
    add_policy_options(top)

    read = top.add_argument_group("reader").add_argument
    read("--reader", default="Qwen/Qwen3.5-9B", help="model at --base-url, or extractive (no model)")
    read("--base-url", help="OpenAI-compatible endpoint of the reader")
    read("--api-key-var", default="OPENAI_API_KEY", help="environment variable that holds the endpoint's key")
    read("--reader-prompts", type=Path, help="JSON file with other wording")
    read("--reader-tokenizer", help="name or folder for counting the context, or estimate (default: the reader's own)")
    read("--context-tokens", type=int, default=PUBLISHED_CONTEXT_TOKENS, help="the context is cut to this")
    read("--images", action="store_true", help="the reader takes pictures: send screenshots and question pictures")
    read("--temperature", type=float, default=PUBLISHED_SAMPLING.temperature)
    read("--top-p", type=float, default=PUBLISHED_SAMPLING.top_p)
    read("--top-k", type=int, default=PUBLISHED_SAMPLING.top_k)
    read("--max-tokens", type=int, default=PUBLISHED_SAMPLING.max_tokens)
    read("--no-thinking", action="store_true")
    read("--timeout", type=float, default=3600.0, help="seconds for one request to the reader (default 3600)")

    judge = top.add_argument_group("judge, for wrong premises and gotchas").add_argument
    judge("--judge", help="model that grades them (published: gpt-5.2)")
    judge("--judge-base-url", help="its OpenAI-compatible endpoint")
    judge("--judge-api-key-var", default="OPENAI_API_KEY")
    judge("--no-judge", action="store_true", help="leave out the questions that need one, and say so")
    add("--plot", type=picture, help="draw accuracy against latency, with the published points (.png, .svg or .pdf)")
    return top


def run(args: list[str]) -> int:
    """Entry of `python -m eval lme-v2`. 0: done; 2: refused; 3: INVALID."""
    options = parser().read(args)
    return answered("eval", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    _check(options)
    names = _systems(options.system)
    agent, policy = agent_from(options), policy_from(options)
    if agent is None and options.system == "all":
        names = [name for name in names if name not in AGENTS]
        print(f"left out for want of --agent: {', '.join(AGENTS)}", file=sys.stderr)
    cache = options.cache.expanduser()
    dataset = open_dataset(
        options.data,
        options.tier,
        cache,
        questions=options.questions,
        domain=options.domain,
        question_ids=[name for name in options.question_ids.split(",") if name],
        limit=options.limit,
    )
    retrieval = _retrieval(options)
    kit = Kit(
        dataset,
        _library(options, cache, dataset),
        retrieval,
        options.images,
        controller=_controller(options),
        parity=options.parity,
        agent=agent,
        files=cache / "files",
        policy=policy,
    )
    systems = [build(name, kit) for name in names]
    reader, judge = _reader(options), _judge(options, dataset)
    needed = [*kit.library().endpoints, *reader.endpoints, kit.controller, judge.endpoint if judge else None]
    needed += [policy.endpoint] if "policy" in names else []
    for server in filter(None, needed):
        server.refuse_unreachable()  # now, and not after hours of inserting
    found: list[tuple[LmeRun, list[dict[str, Any]], Path]] = []
    invalid = False
    for system in systems:
        questions, excluded = _asked(system, dataset, options.no_judge)
        if not questions:
            print(f"{system.name}: no question can be asked ({excluded[0][1]})")
            continue
        info = _info(options, system, dataset, questions, excluded, reader, judge)
        folder = options.out / system.name
        started = time.monotonic()
        with only_writer(folder):
            run_folder = open_run(folder, info)
            job = Job(
                system,
                dataset,
                questions,
                reader,
                judge,
                cache,
                concurrency=options.concurrency,
                pictures=options.images,
                readers=options.readers,
            )
            play(job, run_folder)
            rows = run_folder.read()
            export(folder, info, dataset, rows)
        found.append((info, rows, folder))
        invalid |= summarise(rows).invalid
        print(f"{system.name}: {folder / ROWS_FILE} ({time.monotonic() - started:.0f} s)", file=sys.stderr)
    print("\n".join([*render(found), *causes(found)]))
    if options.plot:
        plot(found, options.plot, {question.environment for question in dataset.questions})
        print(f"plot: {options.plot}")
    return INVALID_EXIT if invalid else 0


def _check(options: argparse.Namespace) -> None:
    for name in ("concurrency", "readers", "slices", "context_tokens", "max_tokens", "limit", "policy_max_tokens"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UserError(f"--{name.replace('_', '-')} is {value}: give a positive number")
    if options.concurrency > 1 and options.readers > 1:
        raise UserError("--readers is for queries one at a time: leave out --concurrency")
    for name in ("temperature", "top_p", "top_k", "timeout"):
        if not 0 <= getattr(options, name) < math.inf:
            raise UserError(f"--{name.replace('_', '-')} is {getattr(options, name)}: give 0 or more")
    if options.reader != "extractive" and not options.base_url:
        raise UserError(f"reader '{options.reader}' needs --base-url; without a model take --reader extractive")
    if options.reader == "extractive" and options.images:
        raise UserError("the extractive reader takes no pictures: leave out --images")


def _systems(asked: str) -> list[str]:
    """The names in a list of names and patterns; `all` is every system but `policy`, which needs a model."""
    patterns = [part.strip() for part in asked.split(",")]
    whole = [name for name in SYSTEMS if name != "policy"]
    names = [name for part in patterns for name in (whole if part == "all" else matching(SYSTEMS, part) or [part])]
    refuse_unknown([name for name in names if not OWN.fullmatch(name)], SYSTEMS, "system")
    return list(dict.fromkeys(names))


def _controller(options: argparse.Namespace) -> Endpoint | None:
    if options.controller == "rules":
        if options.controller_base_url:
            raise UserError("--controller-base-url goes with a model: name it with --controller")
        return None
    if not options.controller_base_url:
        raise UserError(f"controller '{options.controller}' needs --controller-base-url; without a model take rules")
    return Endpoint(options.controller_base_url, options.controller, options.controller_api_key_var)


def _retrieval(options: argparse.Namespace) -> RetrievalConfig:
    if options.published_rag:
        return RetrievalConfig(mode="dense", slices=options.slices, skip_shown=False, strip_instruction=False)
    return RetrievalConfig(mode=options.retrieval, slices=options.slices)


def _library(options: argparse.Namespace, cache: Path, dataset: Dataset) -> Callable[[], Library]:
    if (options.writer is None) != (options.writer_base_url is None):
        raise UserError("--writer and --writer-base-url go together")
    if options.writer_images and not options.writer:
        raise UserError("--writer-images needs --writer: the template takes no pictures")
    writer: Writer = TemplateWriter()
    if options.writer:
        picture = dataset.trajectories.screenshot if options.writer_images else None
        server = Endpoint(options.writer_base_url, options.writer, options.writer_api_key_var)
        writer = ModelWriter(server, picture=picture)
    return partial(Library, Store(cache / "store"), _embedder(options), writer)


def _embedder(options: argparse.Namespace) -> Embedder | None:
    if options.retrieval == "bm25" and not options.published_rag:
        return None
    return embedder_from(options.embedder, base_url=options.embed_base_url, api_key_var=options.embed_api_key_var)


def _reader(options: argparse.Namespace) -> Reader:
    if options.reader == "extractive":
        return ExtractiveReader()
    return EndpointReader(
        Endpoint(options.base_url, options.reader, options.api_key_var, timeout=options.timeout, retries=5),
        sampling=Sampling(
            options.temperature, options.top_p, options.top_k, options.max_tokens, not options.no_thinking
        ),
        prompts=load_prompts(options.reader_prompts),
        context_tokens=options.context_tokens,
        counter=counter_for(options.reader_tokenizer or options.reader),
        images=options.images,
    )


def _judge(options: argparse.Namespace, dataset: Dataset) -> LmeJudge | None:
    if options.judge:
        if not options.judge_base_url:
            raise UserError("--judge needs --judge-base-url")
        return LmeJudge(Endpoint(options.judge_base_url, options.judge, options.judge_api_key_var, timeout=300.0))
    if options.no_judge or not any(question.needs_judge for question in dataset.questions):
        return None
    number = sum(question.needs_judge for question in dataset.questions)
    raise UserError(
        f"{number} of {len(dataset.questions)} questions need a judge: give --judge and --judge-base-url, or leave "
        "them out with --no-judge"
    )


def _asked(system: System, dataset: Dataset, no_judge: bool) -> tuple[list[Question], list[list[str]]]:
    """The questions of a run, and (id, reason) of those left out."""
    asked, excluded = [], []
    for question in dataset.questions:
        if not system.covers(question):
            excluded.append([question.id, "its evidence is not known"])
        elif no_judge and question.needs_judge:
            excluded.append([question.id, "needs a judge (--no-judge)"])
        else:
            asked.append(question)
    return asked, excluded


def _info(
    options: argparse.Namespace,
    system: System,
    dataset: Dataset,
    questions: Sequence[Question],
    excluded: list[list[str]],
    reader: Reader,
    judge: LmeJudge | None,
) -> LmeRun:
    return LmeRun(
        system=system.name,
        settings=system.settings,
        queries=system.queries,
        tier=dataset.tier,
        data=data_hash(dataset, questions),
        reader=reader.settings,
        judge=judge.settings if judge else None,
        n=len(questions),
        excluded=excluded,
        grader_version=GRADER_VERSION,
        code_version=code_version(),
    )
