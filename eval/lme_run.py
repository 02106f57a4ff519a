"""Playing one system over its questions: insert, query, read, grade. Each row is on disk before the next is needed."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from eval.baselines import System
from eval.baselines.own import RAISED, blamed, traced
from eval.lme_rows import context_file, recalled
from eval.progress import Progress
from eval.row_shape import READ, fits
from eval.rows import ROWS_FILE, RunFolder, write_atomic
from lme_v2_env.chat import EndpointError
from lme_v2_env.dataset import Dataset
from lme_v2_env.judge import LmeJudge
from lme_v2_env.memory import snapshot
from lme_v2_env.memory.api import ContextItem, Gathered, Memory, Prepared, RetrievalMemory, checked
from lme_v2_env.memory.embed import BadVectors
from lme_v2_env.memory.store import signature
from lme_v2_env.reader import Reader, Reading
from lme_v2_env.trajectory import Question, QuestionView
from rewards import lme_v2, strict_json
from rewards.errors import UserError

MEMORIES = "memories.json"
"""What building each haystack's memory cost, in the order built."""

BATCH = 16
"""Trajectories read at once, and whose notes a model writes at once."""


@dataclass(frozen=True)
class Job:
    """One system's evaluation."""

    system: System
    dataset: Dataset
    questions: Sequence[Question]
    reader: Reader
    judge: LmeJudge | None
    cache: Path
    concurrency: int
    pictures: bool = False
    readers: int = 1
    """Answers that are read and judged at once while no query runs; only where `concurrency` is 1."""


def play(job: Job, folder: RunFolder) -> None:
    """Ask every question that has no scored row yet. Unscored rows of an earlier start are asked again.

    Where only the judge failed, only the judge is asked again: the reader's answer is kept.
    """
    found = folder.read()
    known = {question.id for question in job.questions}
    stray = next((row["id"] for row in found if row["id"] not in known), None)
    if stray is not None:
        raise UserError(f"{folder.folder}: row '{stray}' in {ROWS_FILE} is of no question of this run: delete its line")
    kept = [row for row in found if row["scored"]]
    unjudged = [row for row in found if not row["scored"] and job.judge and fits(row, READ)]
    if len(kept) + len(unjudged) < len(found):
        folder.replace([*kept, *unjudged])
    with Progress(f"questions ({job.system.name})", len(job.questions)) as progress:
        progress.show(len(kept))
        _judge_again(job, folder, kept, unjudged)
        done = {row["id"] for row in kept}
        failed = {row["id"] for row in unjudged} - done
        wanted = {question.id for question in job.questions} - done - failed
        for row in _played(job, _Memories(job, folder), wanted, folder.folder):
            folder.append([row])
            done.add(row["id"])
            progress.show(len(done))
    order = {question.id: number for number, question in enumerate(job.questions)}
    folder.replace(sorted(folder.read(), key=lambda row: order[row["id"]]))


def _played(job: Job, memories: _Memories, wanted: set[str], folder: Path) -> Iterator[dict[str, Any]]:
    """Rows as they are finished.

    With several readers, queries are made one at a time, twice as many as there are readers, and then read together:
    no query competes with another or with a reading, and the medium tier's single questions are read together, too.
    """
    batch = 2 * job.readers if job.readers > 1 else 1
    asked: list[_Asked] = []
    # a domain after the other: each has one large memory, and the files mix the domains
    for haystack, group in sorted(job.dataset.groups(), key=lambda pair: pair[1][0].domain):
        left = [question for question in group if question.id in wanted]
        memory = memories.of(haystack, left[0].domain) if left else None
        if memory and job.concurrency > 1:
            yield from _pooled(job.concurrency, [partial(_row, job, memory, question, folder) for question in left])
            continue
        for question in left:
            assert memory is not None
            asked.append(_ask(job, memory, question, folder))
            if len(asked) == batch:
                yield from _pooled(job.readers, [partial(_finish, job, one) for one in asked])
                asked = []
    yield from _pooled(job.readers, [partial(_finish, job, one) for one in asked])


def _judge_again(job: Job, folder: RunFolder, kept: list[dict[str, Any]], unjudged: list[dict[str, Any]]) -> None:
    """Rows that got a verdict now move from `unjudged` to `kept`."""
    questions = {question.id: question for question in job.questions}
    waiting = {row["id"]: row for row in unjudged}
    tasks = [partial(_judged, job, questions[row["id"]], row) for row in unjudged]
    for row in _pooled(max(job.concurrency, job.readers), tasks):
        if row["scored"]:
            kept.append(row)
            del waiting[row["id"]]
        else:
            waiting[row["id"]] = row
        folder.replace([*kept, *waiting.values()])
    unjudged[:] = waiting.values()


def _judged(job: Job, question: Question, row: dict[str, Any]) -> dict[str, Any]:
    assert job.judge is not None  # a run with another judge, or none, is another run
    graded = job.judge.graded(question, row["response"])
    return row | {"unscored_reason": None} | graded | {"timestamp_utc": _now()}


class _Memories:
    """Memories of haystacks. Retrieval memories of a domain are parts of one that holds all of its trajectories.

    Medium haystacks are hundreds of lists from one pool: so each trajectory is read once, not hundreds of times. The
    whole memory is kept as a snapshot for the next start.
    """

    def __init__(self, job: Job, folder: RunFolder) -> None:
        self.job, self.folder = job, folder
        self._domain: str | None = None
        self._whole: RetrievalMemory | None = None

    def of(self, haystack: tuple[str, ...], domain: str) -> Memory:
        memory = self.job.system.memory()
        if not isinstance(memory, RetrievalMemory):
            if self.job.system.inserts:
                _fill(self.job, memory, haystack, domain, self.folder)
            return memory
        if self._whole is None or self._domain != domain:
            self._whole, self._domain = None, domain  # the old one goes before the new one comes
            self._whole = self._built(memory, domain)
        return self._whole.subset(haystack)

    def _built(self, memory: RetrievalMemory, domain: str) -> RetrievalMemory:
        lists = {self.job.dataset.haystacks[q.id] for q in self.job.dataset.questions if q.domain == domain}
        ids = sorted({name for haystack in lists for name in haystack}) if len(lists) > 1 else next(iter(lists))
        # what shapes a memory, not what is done with it: a run with another controller opens the same snapshot
        key = {
            "ids": ids,
            "file": self.job.dataset.trajectories.sha256,
            "memory": snapshot.settings_of(memory.library, memory.config),
            "pictures": memory.picture is not None,
        }
        kept = self.job.cache / "memories" / signature(key)
        started = time.perf_counter()
        if snapshot.load(memory, kept):
            _note_memory(self.folder, memory, len(ids), started, "snapshot")
        else:
            _fill(self.job, memory, ids, domain, self.folder)
            snapshot.save(memory, kept)
        memory.prepare()
        return memory


def _fill(job: Job, memory: Memory, haystack: Sequence[str], domain: str, folder: RunFolder) -> None:
    started = time.perf_counter()
    with Progress("trajectories inserted", len(haystack)) as progress:
        progress.show(0)
        for start in range(0, len(haystack), BATCH):
            names = haystack[start : start + BATCH]
            try:
                batch = list(job.dataset.trajectories.read(names))
                if isinstance(memory, RetrievalMemory):
                    memory.warm(batch)
                stray = next((row for row in batch if row.domain != domain), None)
                if stray:
                    raise UserError(
                        f"trajectory '{stray.id}' of domain '{stray.domain}' is in a haystack of '{domain}'"
                    )
                for trajectory in batch:
                    _guarded(memory, f"inserting {trajectory.id}", partial(memory.insert, trajectory), folder)
            except (EndpointError, BadVectors) as error:
                raise UserError(f"inserting {names[0]} to {names[-1]}: {error}; the same command resumes") from error
            progress.show(start + len(names))
    if isinstance(memory, Prepared):
        _guarded(memory, "preparing the memory", memory.prepare, folder)
    _note_memory(folder, memory, len(haystack), started, "inserted")


def _guarded(memory: Memory, doing: str, work: Callable[[], object], folder: RunFolder) -> None:
    """Anybody's code, while a memory is built. What it raises ends the run: every question would be asked in vain."""
    try:
        work()
    except (EndpointError, BadVectors, UserError):
        raise
    except RAISED as error:
        if isinstance(memory, RetrievalMemory):
            raise  # our own mistake
        file = folder.folder / "memory_error.txt"
        write_atomic(file, traced(error))
        raise UserError(f"{doing}: {blamed(error)}; the traceback is in {file}") from error


def _note_memory(folder: RunFolder, memory: Memory, trajectories: int, started: float, how: str) -> None:
    entry = {"trajectories": trajectories, "how": how, "seconds": time.perf_counter() - started}
    if isinstance(memory, RetrievalMemory):
        # events and notes that the model did not write although it was asked
        written = [row for kept in memory.inserted.values() for rows in kept.records.values() for row in rows]
        entry["template_fallbacks"] = sum(row.get("fallback", False) for row in written)
    file = folder.folder / MEMORIES
    try:
        entries = list(strict_json.loads(file.read_bytes())) if file.is_file() else []
    except (ValueError, TypeError):
        raise UserError(f"{file} is damaged: delete it") from None
    write_atomic(file, json.dumps([*entries, entry], indent=1) + "\n")


def _pooled(workers: int, tasks: Sequence[Callable[[], dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Rows as they are finished."""
    if workers == 1:
        for task in tasks:
            yield task()
        return
    pool = ThreadPoolExecutor(workers)
    try:
        for future in as_completed([pool.submit(task) for task in tasks]):
            yield future.result()
    finally:  # without waiting: on Ctrl-C a request may hang for an hour
        pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question whose memory has answered; `items` is None where it failed, and the row says why."""

    row: dict[str, Any]
    question: Question
    view: QuestionView
    items: list[ContextItem] | None


def _row(job: Job, memory: Memory, question: Question, folder: Path) -> dict[str, Any]:
    return _finish(job, _ask(job, memory, question, folder))


def _ask(job: Job, memory: Memory, question: Question, folder: Path) -> _Asked:
    row: dict[str, Any] = {
        "id": question.id,
        "scored": False,
        "unscored_reason": None,
        "correct": None,
        "strict_correct": None,
        "domain": question.domain,
        "question_type": question.question_type,
        "eval_function": question.eval_function,
        "question": question.text,
        "gold": question.gold,
        "response": None,
        "concurrency": job.concurrency,
    }
    view = QuestionView(question.text)
    try:
        # without a reader that takes pictures none is needed, and the row says that it was withheld
        view = question.view() if job.pictures else view
    except UserError as error:
        return _Asked(row | {"unscored_reason": str(error)}, question, view, None)
    started = time.perf_counter()
    try:
        found = memory.query(view.text, view.image)
        items = checked(found)
    except RAISED as error:  # a memory system is anybody's code: what it raises concerns this question alone
        reason = f"memory: {type(error).__name__}: {_one_line(error)}"
        return _Asked(row | {"unscored_reason": reason, "traceback": traced(error)}, question, view, None)
    seconds = time.perf_counter() - started
    row |= {
        "query_seconds": seconds if job.system.queries else None,
        "gathered": found.report if isinstance(found, Gathered) else None,
        "context": [_outline(item) for item in items],
        "evidence": _evidence(job, question, items),
        "evidence_states": [list(point[:2]) for point in job.dataset.evidence.get(question.id, ())] or None,
    }
    _keep_context(folder / context_file(question.id), items)
    return _Asked(row, question, view, items)


def _finish(job: Job, asked: _Asked) -> dict[str, Any]:
    row, question = asked.row, asked.question
    if asked.items is None:
        return row
    try:
        reading = job.reader.read(asked.view, question.domain, asked.items)
    except (EndpointError, OSError) as error:
        return row | {"unscored_reason": f"reader: {_one_line(error)}"}
    return row | _read(reading, question) | _graded(job, question, reading) | {"timestamp_utc": _now()}


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _keep_context(file: Path, items: Sequence[ContextItem]) -> None:
    """In full, before it is read: a row's number has its file. The same context makes the same bytes."""
    file.parent.mkdir(exist_ok=True)
    text = json.dumps([{"type": item.type, "value": item.value} for item in items], ensure_ascii=False)
    temporary = file.with_name(f".{file.name}")
    temporary.write_bytes(gzip.compress(text.encode(), 6, mtime=0))
    os.replace(temporary, file)


def _outline(item: ContextItem) -> dict[str, Any]:
    return {"type": item.type, "chars": len(item.value), "shows": [list(pair) for pair in item.shows]}


def _evidence(job: Job, question: Question, items: Sequence[ContextItem]) -> dict[str, float] | None:
    points = job.dataset.evidence.get(question.id)
    return recalled(points, items) if points else None


def _read(reading: Reading, question: Question) -> dict[str, Any]:
    return {
        "response": reading.text,
        "finish_reason": reading.finish_reason,
        "from_reasoning": reading.from_reasoning,
        "usage": dict(reading.usage),
        "context_items_shown": len(reading.shown),
        "retrieved": sorted({pair for item in reading.shown if item.type == "text" for pair in item.shows}),
        "context_tokens": reading.tokens,
        "context_tokens_shown": reading.tokens_shown,
        "image_withheld": question.image is not None and not reading.image_shown,
    }


def _graded(job: Job, question: Question, reading: Reading) -> dict[str, Any]:
    if question.needs_judge:
        assert job.judge is not None  # without one such questions are left out before the run
        return job.judge.graded(question, reading.text)
    grades = [
        lme_v2.grade(question.eval_function, reading.text, question.gold, question=question.text, strict=strict)
        for strict in (False, True)
    ]
    return {
        "scored": True,
        "correct": grades[0].correct,
        "strict_correct": grades[1].correct,
        "unknown": grades[0].unknown,
        "answer": grades[0].answer,
        "explanation": grades[0].explanation,
        "strict_explanation": grades[1].explanation,
        "grader_version": lme_v2.GRADER_VERSION,
    }


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or "no message"
