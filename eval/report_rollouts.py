"""What the report's viewer steps through: rows as a short index and, apart, what is read when one of them is opened.

Rows keep notes and answers, not sessions. Sessions are made again (generated data) or read (LongMemEval, own files)
and shown only when the hash over all tasks equals the run's `task_set`, so that no other text can pass for the one
that was played. Contexts of LongMemEval-V2 lie beside their rows. Nothing is ever downloaded.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.lme_rows import context_file
from eval.progress import Progress
from eval.report_figures import LOST_WORDS, VERDICT_WORDS, ending, lost, verdict
from eval.report_runs import Evaluated, Row
from lme_v2_env.trajectory import QUESTION_ID
from rewards.currency import mentions_value
from rewards.errors import UserError
from rewards.options import build
from supersede_env.data import DataConfig, load_episodes, task_set_hash
from supersede_env.diagnosis import lost_turn
from supersede_env.episode import Episode, Session
from supersede_env.protocol import split_session
from supersede_env.scoring import Outcome

CHUNK = 100
"""Rows whose details lie together in the page: what is parsed when one of them is opened."""

EPISODE_CHUNK = 8
"""Episodes whose sessions lie together."""

INDEXED = 300
"""Characters of an answer in the index, which lists and search read; the viewer shows all of it."""

GOLD, SUPERSEDED = 1, 2
"""Bits of a turn's mark: its notes hold the gold, a superseded value."""


@dataclass(frozen=True, slots=True)
class Rollouts:
    """JSON-ready parts of the page. `notes` says what is not shown, and why."""

    index: dict[str, Any]
    details: list[list[Any]]
    episodes: list[list[Any]]
    notes: list[str]


@dataclass(slots=True)
class _Block:
    """A long text that is embedded while there is room; blocks with evidence come first."""

    size: int
    evidence: bool
    shown: bool = False


def rollouts(runs: Sequence[Evaluated], *, path: str | None, text_limit: int) -> Rollouts:
    """Index and details of all rows. `text_limit` bounds the characters of sessions or contexts in the page."""
    notes: list[str] = []
    if not runs:
        return Rollouts({"rows": []}, [], [], notes)
    kind = runs[0].kind
    shelf = _Shelf(path)
    index: list[list[Any]] = []
    details: list[Any] = []
    with Progress("rows", sum(len(run.rows) for run in runs)) as progress:
        for number, run in enumerate(runs):
            episodes, why = shelf.episodes(run) if kind == "supersede" and text_limit else ({}, "")
            notes += [f"{run.label}: sessions are not shown: {why}"] if why else []
            for row in run.rows:
                index.append([number, *_head(kind, row)])
                if kind == "supersede":
                    details.append(_detail(run, row, episodes.get(row["id"]), shelf))
                else:
                    details.append(_lme_detail(row) | {"context": list(_context(run, row, shelf))})
                progress.show(len(index))
    shelf.fill(text_limit)
    for detail in details if kind == "lme-v2" else ():
        detail["context"] = [[title, text if block.shown else None, e] for title, text, e, block in detail["context"]]
    hidden = sum(not block.shown for block in shelf.blocks)
    if hidden:
        what = "sessions" if kind == "supersede" else "context items"
        notes.append(f"{hidden:,} of {len(shelf.blocks):,} {what} are left out to keep the page small (--text)")
    head = {
        "kind": kind,
        "runs": [run.label for run in runs],
        "budgets": [run.info.get("protocol", {}).get("budget") for run in runs],
        "verdicts": [*VERDICT_WORDS[kind], "unscored"],
        "lost": LOST_WORDS[kind],
        "chunk": CHUNK,
        "episode_chunk": EPISODE_CHUNK,
        "rows": index,
    }
    return Rollouts(head, _chunks(details, CHUNK), _chunks(shelf.written(), EPISODE_CHUNK), notes)


def _head(kind: str, row: Row) -> list[Any]:
    """What lists and search read of a row."""
    texts = [str(row.get(name) or "") for name in ("question", "gold", "answer")]
    texts[-1] = texts[-1][:INDEXED]
    return [verdict(kind, row) or "unscored", lost(kind, row) or "", row["id"], row.get("sample", 0), *texts]


def _chunks(items: Sequence[Any], size: int) -> list[list[Any]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


class _Shelf:
    """Episodes of the runs, each read and embedded once; and all long texts, to share out the room."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.blocks: list[_Block] = []
        self._loaded: dict[str, tuple[dict[str, Episode], str]] = {}
        self._places: dict[tuple[str, str, int | None], int] = {}
        self._sessions: list[list[tuple[Session, frozenset[int], _Block]]] = []

    def episodes(self, run: Evaluated) -> tuple[dict[str, Episode], str]:
        """The run's episodes by id; without them the reason."""
        ids = {row["id"] for row in run.rows}
        key = json.dumps([run.info["data"], run.info["task_set"], sorted(ids)], sort_keys=True)
        if key not in self._loaded:
            self._loaded[key] = self._load(run, ids)
        return self._loaded[key]

    def _load(self, run: Evaluated, ids: set[str]) -> tuple[dict[str, Episode], str]:
        data = run.info["data"] | {"path": self.path}
        if data.get("data") in ("oracle", "s") and not (self.path or os.environ.get("LONGMEMEVAL_DIR")):
            return {}, "give --path, or set LONGMEMEVAL_DIR"
        try:
            found = [episode for episode in load_episodes(build(DataConfig, data)).episodes if episode.id in ids]
        except UserError as error:
            reason = str(error)
            for place in filter(None, (data.get("data"), self.path, os.environ.get("LONGMEMEVAL_DIR"))):
                reason = reason.replace(str(place), ending(str(place)))  # pages are passed on
            return {}, reason
        if task_set_hash(found) != run.info["task_set"]:
            return {}, "the data or the generator here makes other episodes than the run played"
        return {episode.id: episode for episode in found}, ""

    def place(self, run: Evaluated, episode: Episode) -> int:
        """Where in the page the episode's sessions are, one entry a turn of the rollout."""
        split = run.info["protocol"].get("max_session_chars")
        key = (run.info["task_set"], episode.id, split)
        if key not in self._places:
            self._places[key] = len(self._sessions)
            told: dict[int, set[int]] = {}
            for session, turn in episode.evidence:
                told.setdefault(session, set()).add(turn)
            parts = []
            for number, session in enumerate(episode.sessions):
                cut = split_session(session, split)
                lines = told.get(number, set()) if len(cut) == 1 else set()  # split: the turn lies in one of the parts
                for part in cut:
                    size = sum(len(turn.content) for turn in part.turns)
                    parts.append((part, frozenset(lines), self.block(size, number in told)))
            self._sessions.append(parts)
        return self._places[key]

    def block(self, size: int, evidence: bool) -> _Block:
        made = _Block(size, evidence)
        self.blocks.append(made)
        return made

    def fill(self, room: int) -> None:
        """Share out the room, evidence first."""
        for block in sorted(self.blocks, key=lambda block: not block.evidence):
            block.shown = block.size <= room
            room -= block.size if block.shown else 0

    def written(self) -> list[Any]:
        """[date, evidence, turns] a session; turns are [role, text, tells the fact], or null where no room was left."""
        return [[_session(*part) for part in parts] for parts in self._sessions]


def _session(session: Session, told: frozenset[int], block: _Block) -> list[Any]:
    turns = [[turn.role, turn.content, int(i in told)] for i, turn in enumerate(session.turns)]
    return [session.date, int(block.evidence), turns if block.shown else None]


def _detail(run: Evaluated, row: Row, episode: Episode | None, shelf: _Shelf) -> dict[str, Any]:
    if not row["scored"]:
        found: dict[str, Any] = {"explanation": str(row.get("unscored_reason")), "notes": []}
        return found | ({"episode": shelf.place(run, episode)} if episode else {})
    outcome = Outcome(row["answer"], tuple(row["notes"]), 0, 0, 0, tuple(row.get("cut_off") or ()))
    played = episode or _bare(row)
    found = {
        "answer": row["answer"],
        "explanation": row["explanation"],
        "stale": row["stale"],
        "notes": row["notes"],
        "marks": _marks(row),
        "facts": _facts(row, ("seconds", "calls", "new_tokens"), row["metrics"]),
    }
    found |= {"cut": row["cut_off"]} if any(row.get("cut_off") or ()) else {}
    at = lost_turn(played, outcome, row.get("diagnosis") or "")
    found |= {"lost_at": at} if at is not None else {}
    return found | ({"episode": shelf.place(run, episode)} if episode else {})


def _bare(row: Row) -> Episode:
    """What is known of a row's episode without its sessions."""
    return Episode(row["id"], (), row["question"], "", row["gold"], tuple(row["stale"]), "current", False)


def _marks(row: Row) -> list[int]:
    """A mark a turn. Superseded values are looked up only where the answer went wrong: there they explain it."""
    seen: dict[str, int] = {}
    for text in row["notes"]:
        if text not in seen:
            gold = GOLD * (not row.get("abstain") and mentions_value(text, row["gold"]))
            held = row["verdict"] != "correct" and any(mentions_value(text, value) for value in row["stale"])
            seen[text] = gold | SUPERSEDED * held
    return [seen[text] for text in row["notes"]]


def _facts(row: Row, names: Sequence[str], more: Mapping[str, float]) -> dict[str, float]:
    shown = {name: row[name] for name in names if row.get(name) is not None}
    return shown | {name: more[name] for name in ("notes_chars", "overflows", "empty_notes") if more.get(name)}


def _lme_detail(row: Row) -> dict[str, Any]:
    if not row["scored"]:
        return {"explanation": str(row.get("unscored_reason"))}
    retrieved = {tuple(pair) for pair in row.get("retrieved") or ()}
    needed = sorted({tuple(pair) for pair in row.get("evidence_states") or ()})
    evidence = [[*pair, int(pair in retrieved)] for pair in needed]
    rollout = (row.get("gathered") or {}).get("rollout")
    actions = rollout.get("actions") if isinstance(rollout, dict) else None
    return {
        "answer": row["response"],
        "explanation": row["explanation"],
        "strict": [int(row["strict_correct"]), str(row.get("strict_explanation") or "")],
        "type": row["question_type"],
        "evidence": evidence,
        "actions": [str(action) for action in actions] if isinstance(actions, list) else [],
        "facts": _facts(row, ("query_seconds", "context_tokens_shown"), {}),
    }


def _context(run: Evaluated, row: Row, shelf: _Shelf) -> Iterator[tuple[str, str, int, _Block]]:
    """(title, text, holds evidence, block) of every item that the reader was given, from the run's own files."""
    if not QUESTION_ID.fullmatch(row["id"]):
        return  # no name of a file
    file = run.folder / context_file(row["id"])
    outlines = row.get("context") or []
    if not file.is_file() or not outlines:
        return
    evidence = {tuple(pair) for pair in row.get("evidence_states") or ()}
    for item, outline in zip(_items(file), outlines, strict=False):
        pairs = outline.get("shows") if isinstance(outline, dict) else None
        states = [tuple(pair) for pair in pairs or () if isinstance(pair, list) and len(pair) == 2]
        name = ", ".join(f"{trajectory} state {state}" for trajectory, state in states[:3])
        name += f" and {len(states) - 3} more" if len(states) > 3 else ""
        held = bool(evidence & set(states))
        text = item["value"] if item["type"] == "text" else "(a picture)"
        yield name or "no state named", text, int(held), shelf.block(len(text), held)


def _items(file: Path) -> list[dict[str, Any]]:
    try:
        items = json.loads(gzip.decompress(file.read_bytes()))
    except (ValueError, EOFError, gzip.BadGzipFile, RecursionError):
        raise UserError(f"{file} is damaged: the same `eval lme-v2` command makes it again") from None
    good = isinstance(items, list) and all(
        isinstance(item, dict) and isinstance(item.get("value"), str) and "type" in item for item in items
    )
    if not good:
        raise UserError(f"{file}: expected a list of items with 'type' and 'value'")
    return items
