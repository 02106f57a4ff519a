"""LongMemEval's knowledge-update rows as episodes: find the file, check it, join the stale annotations.

Data: Wu et al., LongMemEval (arXiv 2410.10813, MIT), the cleaned release. Two splits are used: `oracle` (only the
evidence sessions, 2 a question) and `s` (about 48 sessions and 122k tokens a question). 78 of the 500 questions are
knowledge updates; 6 of these are abstention questions, which only their id tells (it ends in `_abs`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import lzma
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from rewards import strict_json
from rewards.errors import UserError
from supersede_env.episode import Episode, has_gold, parse_date, refuse_half_characters

Split = Literal["oracle", "s"]

HUB_DATASET = "xiaowu0162/longmemeval-cleaned"
HUB_REVISION = "98d7416c24c778c2fee6e6f3006e7a073259d48f"
"""The pinned revision of the published dataset."""

SHA256 = {
    "longmemeval_oracle.json": "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
    "longmemeval_s_cleaned.json": "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
}
"""Of the official files at `HUB_REVISION`. A file with another name is the user's own and is not compared."""

OFFICIAL: dict[Split, str] = {"oracle": "longmemeval_oracle.json", "s": "longmemeval_s_cleaned.json"}

LOCAL_NAMES: dict[Split, tuple[str, ...]] = {
    "oracle": ("longmemeval_oracle.json",),
    "s": ("longmemeval_s_cleaned.json", "longmemeval_s_knowledge_update_78.jsonl.xz"),
}
"""What is looked for in `LONGMEMEVAL_DIR` and the folders right below it, first match wins."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Episodes and what was left out, always both.

    `excluded` are rows that the exclusions file names; `unscorable` are rows that have no gold. Both are (id, reason).
    """

    episodes: tuple[Episode, ...]
    excluded: tuple[tuple[str, str], ...] = ()
    unscorable: tuple[tuple[str, str], ...] = ()

    def summary(self) -> str:
        """`n = 77 (1 excluded: 89941a94: false premise...)`."""
        parts = [
            f"{len(rows)} {label}: " + "; ".join(f"{row}: {reason}" for row, reason in rows)
            for label, rows in (("excluded", self.excluded), ("unscorable", self.unscorable))
            if rows
        ]
        return f"n = {len(self.episodes)}" + (f" ({', '.join(parts)})" if parts else "")


def load_longmemeval(split: Split, *, path: str | Path | None = None, exclusions: str = "default") -> Loaded:
    """The knowledge-update rows of one split, in file order.

    Args:
        split: `oracle` or `s`.
        path: a file or a folder; without it `LONGMEMEVAL_DIR`, then a download (about 15 MB or 277 MB).
        exclusions: `default` (the shipped file), `none`, or a JSON file `{question_id: reason}`.

    Raises:
        UserError: no data, a damaged file, a row that breaks the schema; the message names file, row and field.
    """
    file = find_file(split, path)
    rows = [row for row in read_rows(file) if row.get("question_type", "knowledge-update") == "knowledge-update"]
    if not rows:
        raise UserError(f"{file.name}: no knowledge-update rows")
    annotations = json.loads(files("supersede_env").joinpath("longmemeval_stale.json").read_text("utf-8"))["rows"]
    reasons = _exclusions(exclusions)
    episodes: list[Episode] = []
    excluded: list[tuple[str, str]] = []
    unscorable: list[tuple[str, str]] = []
    for index, row in enumerate(rows):
        row_id = str(row.get("question_id") or f"number {index}")
        refuse_half_characters(row, f"{file.name}, row {row_id}")
        if row_id in reasons:
            excluded.append((row_id, reasons[row_id]))
        elif not has_gold({"gold": row.get("answer")}):
            unscorable.append((row_id, "no gold answer"))
        else:
            where = f"{file.name}, row {row_id}"
            record = to_record(row, annotations.get(row_id, {}), split, where)
            try:
                episodes.append(Episode.from_record(record))
            except UserError as error:
                text = str(error).removeprefix(f"row {row_id}: ").replace("'gold'", "'answer'")
                raise UserError(f"{where}: {text}") from error
    refuse_doubled([*(e.id for e in episodes), *(row_id for row_id, _ in [*excluded, *unscorable])], file.name)
    return Loaded(tuple(episodes), tuple(excluded), tuple(unscorable))


def refuse_doubled(ids: Sequence[str], file_name: str) -> None:
    """Raise `UserError` when an id occurs twice: rows and traces are told apart by it."""
    doubled = [row_id for row_id, count in Counter(ids).items() if count > 1]
    if doubled:
        raise UserError(f"{file_name}: id '{doubled[0]}' occurs more than once")


def to_record(row: Mapping[str, Any], note: Mapping[str, Any], split: Split, where: str) -> dict[str, Any]:
    """One published row and its annotation as an episode record. `where` heads error messages."""
    dates, sessions = row.get("haystack_dates"), row.get("haystack_sessions")
    ids = row.get("haystack_session_ids")
    if not isinstance(dates, list) or not isinstance(sessions, list) or not isinstance(ids, list):
        raise UserError(f"{where}: haystack_dates, haystack_session_ids or haystack_sessions is missing or no list")
    if not len(dates) == len(sessions) == len(ids):
        raise UserError(
            f"{where}: {len(dates)} haystack_dates, {len(ids)} haystack_session_ids, {len(sessions)} haystack_sessions"
        )
    row_id = row.get("question_id")
    if not isinstance(row_id, str) or not row_id.strip():
        raise UserError(f"{where}: 'question_id' is {row_id!r}, not a text")
    for number, date in enumerate(dates):
        try:
            parse_date(str(date))
        except UserError as error:
            raise UserError(f"{where}: haystack_dates, entry {number}: {error}") from None
    abstain = row_id.endswith("_abs")
    evidence = [note[key] for key in ("evidence", "stale_evidence") if note.get(key)]
    gold_place = [[ids.index(s), t] for s, t in evidence[:1] if s in ids]
    order = sorted(range(len(dates)), key=lambda i: parse_date(str(dates[i])))
    places = [order.index(ids.index(s)) for s, _ in evidence if s in ids]
    return {
        "id": row_id,
        "sessions": [{"date": d, "turns": s} for d, s in zip(dates, sessions, strict=True)],
        "question": row.get("question"),
        "question_date": row.get("question_date"),
        "gold": row.get("answer"),
        "stale": list(note.get("stale", ())),
        "asks": "abstain" if abstain else note.get("asks", "current"),
        "abstain": abstain,
        "evidence": gold_place,
        "source": f"longmemeval-{split}",
        "tags": {"sessions_after_update": len(dates) - 1 - max(places)} if places else {},
    }


def find_file(split: Split, path: str | Path | None) -> Path:
    """The data file: `path`, else `LONGMEMEVAL_DIR`, else the download."""
    if path is not None:
        given = Path(path)
        if given.is_file():
            return given
        if not given.is_dir():
            raise UserError(f"{given}: no such file or folder")
        return _in_folder(split, given, str(given))
    folder = os.environ.get("LONGMEMEVAL_DIR")
    if not folder:
        return _download(split)
    if not Path(folder).is_dir():
        raise UserError(f"LONGMEMEVAL_DIR={folder}: no such folder")
    return _in_folder(split, Path(folder), f"LONGMEMEVAL_DIR={folder}")


def _in_folder(split: Split, folder: Path, name: str) -> Path:
    for file_name in LOCAL_NAMES[split]:
        for candidate in (folder / file_name, *sorted(folder.glob(f"*/{file_name}"))):
            if candidate.is_file():
                return candidate
    raise UserError(f"{name}: none of {', '.join(LOCAL_NAMES[split])} in it or in a folder right below")


def _download(split: Split) -> Path:
    """Fetch the official file into the Hub cache (temporary file and atomic rename are the client's)."""
    from huggingface_hub import hf_hub_download

    name = OFFICIAL[split]
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # its five retry lines would bury ours
    try:
        return Path(hf_hub_download(HUB_DATASET, name, repo_type="dataset", revision=HUB_REVISION, etag_timeout=10))
    except Exception as error:  # the client raises many kinds, of several libraries; all mean: not to be had
        reason = str(error).strip().splitlines()[0].split(". ")[0][:200] if str(error).strip() else type(error).__name__
        raise UserError(
            f"LongMemEval '{split}' was not found and the download failed ({reason}). Set LONGMEMEVAL_DIR to a folder "
            f"that holds {name}, or pass its path (--path)."
        ) from error


def read_rows(file: Path) -> list[dict[str, Any]]:
    """All rows of a .json, .jsonl or .jsonl.xz file; official files are compared with their sha256 first."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error
    expected = SHA256.get(file.name)
    if expected is not None and hashlib.sha256(data).hexdigest() != expected:
        raise UserError(
            f"{file.name} is not the published file (its sha256 differs: truncated or changed). Delete it and load "
            "again, or give your own version another name."
        )
    try:
        if file.suffix == ".xz":
            data = lzma.decompress(data)
        text = data.decode("utf-8-sig")  # editors on Windows put a byte order mark first
        lines = file.name.removesuffix(".xz").endswith(".jsonl")
        loads = strict_json.loads
        rows = [loads(line) for line in text.split("\n") if line.strip()] if lines else loads(text)
    except (lzma.LZMAError, EOFError, ValueError) as error:  # ValueError: not UTF-8, not JSON
        raise UserError(f"{file.name} cannot be read: {error}") from error
    if not isinstance(rows, Sequence) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{file.name}: expected a list of question objects")
    return list(rows)


def _exclusions(source: str) -> dict[str, str]:
    if source == "none":
        return {}
    if source == "default":
        return json.loads(files("supersede_env").joinpath("longmemeval_exclusions.json").read_text("utf-8"))
    file = Path(source)
    if not file.is_file():
        raise UserError(f"exclusions '{source}': no such file (use default, none, or a JSON file of id: reason)")
    try:
        reasons = json.loads(file.read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{file.name} cannot be read: {error}") from error
    if not isinstance(reasons, dict) or not all(isinstance(reason, str) and reason for reason in reasons.values()):
        raise UserError(f"{file.name}: expected an object of question id: reason")
    return reasons
