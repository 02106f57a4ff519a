"""The files of LongMemEval-V2 on disk, opened lazily: a haystack of the 1.2 GB file is read a trajectory at a time.

A folder holds `trajectories.jsonl` (or `.jsonl.xz`), `questions.jsonl`, `haystacks/lme_v2_<tier>.json` and pictures.
Tier `whole` needs no haystack file: every question's haystack is each trajectory of its domain in file order.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from lme_v2_env.trajectory import LARGEST_PICTURE, EvidencePoint, Question, Trajectory, question_from, trajectory_from
from rewards import strict_json
from rewards.errors import UserError, refuse_unknown

TIERS = ("small", "medium", "whole")

TRAJECTORY_NAMES = ("trajectories.jsonl", "trajectories.jsonl.xz")

EVIDENCE_NAMES = ("evidence.json", "official_questions_with_evidence.json")
"""Files `[{question_id, evidence: [{trajectory_id, state_index, line?}]}]`; the published data has none."""

MOST_STATES = 1 << 31

LEADING_ID = re.compile(rb'^\s*\{\s*"id"\s*:\s*"([ !#-\[\]-~]+)"\s*,')
"""A row that begins with its id, in plain ASCII, need not be parsed to be indexed; all published rows do."""


class Place(NamedTuple):
    """Where a row lies in its file: bytes, and the line's number from 1."""

    offset: int
    length: int
    line: int


class Scan(NamedTuple):
    """What one pass over a file of trajectories found."""

    size: int
    """Bytes."""
    sha256: str
    places: dict[str, Place]


class TrajectoryFile:
    """Random access to a file of trajectories by id.

    The byte offsets are kept in `cache` and made again when the file's size or time changes.
    """

    def __init__(self, file: Path, scan: Scan) -> None:
        self.file, self._places, self._size = file, scan.places, scan.size
        self.sha256 = scan.sha256
        self.folder = file.parent
        self.label = file.name

    @classmethod
    def open(cls, file: Path, cache: Path) -> TrajectoryFile:
        """Index the file, or take up the index of an earlier run. Raises `UserError`."""
        if not file.is_file():
            raise UserError(f"{file}: no such file")
        plain = _unpacked(file, cache) if file.suffix == ".xz" else file
        opened = cls(plain, _scanned(plain, file.name, cache))
        opened.folder, opened.label = file.parent, file.name
        return opened

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids, in file order."""
        return tuple(self._places)

    def __contains__(self, trajectory_id: object) -> bool:
        return trajectory_id in self._places

    def __len__(self) -> int:
        return len(self._places)

    def get(self, trajectory_id: str) -> Trajectory:
        """Read and check one row."""
        with self.file.open("rb") as handle:
            return self._read(handle, trajectory_id)

    def read(self, ids: Iterable[str]) -> Iterator[Trajectory]:
        """The rows of `ids`, one at a time, in the order asked."""
        with self.file.open("rb") as handle:
            for trajectory_id in ids:
                yield self._read(handle, trajectory_id)

    def _read(self, handle: Any, trajectory_id: str) -> Trajectory:
        place = self._places[trajectory_id]
        handle.seek(place.offset)
        where = f"{self.label} line {place.line}"
        data = handle.read(place.length)
        if handle.seek(0, os.SEEK_END) != self._size:
            raise UserError(f"{self.label} was changed while it was in use: start again")
        trajectory = trajectory_from(parsed(data, where), where)
        if trajectory.id != trajectory_id:
            raise UserError(f"{where}: expected '{trajectory_id}', found '{trajectory.id}': start again")
        return trajectory

    def screenshot(self, name: str) -> Path:
        """A state's picture, below the file's folder or in its screenshots/. Raises `UserError`.

        A path that leads elsewhere is refused: the file would be sent to a model.
        """
        given = PurePosixPath(name)
        if given.is_absolute() or ".." in given.parts or "\0" in name:
            raise UserError(f"{self.label}: screenshot {name!r} leaves the folder of the trajectories")
        candidates = (self.folder / given, self.folder / "screenshots" / given)
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            raise UserError(
                f"{self.label}: screenshot '{name}' is missing: fetch it (python -m lme_v2_env.download DIR "
                "--screenshots); without --images none is needed"
            )
        if found.stat().st_size > LARGEST_PICTURE:
            raise UserError(f"{self.label}: screenshot '{name}' is larger than {LARGEST_PICTURE >> 20} MiB")
        return found


@dataclass(frozen=True, slots=True)
class Dataset:
    """Questions, the haystack of each, and the trajectories. `evidence` may be empty: the published data has none."""

    tier: str
    questions: tuple[Question, ...]
    haystacks: Mapping[str, tuple[str, ...]]
    trajectories: TrajectoryFile
    evidence: Mapping[str, tuple[EvidencePoint, ...]]

    def groups(self) -> list[tuple[tuple[str, ...], list[Question]]]:
        """Questions that share one ordered haystack, so that its memory is built once. In order of first use."""
        found: dict[tuple[str, ...], list[Question]] = {}
        for question in self.questions:
            found.setdefault(self.haystacks[question.id], []).append(question)
        return list(found.items())


def open_dataset(
    folder: Path,
    tier: str,
    cache: Path,
    *,
    questions: Path | None = None,
    domain: str | None = None,
    question_ids: Sequence[str] = (),
    limit: int | None = None,
) -> Dataset:
    """Open and check a dataset folder. Raises `UserError`, naming the file, the row and the field.

    Args:
        folder: holds the trajectories, and unless `questions` is given the questions.
        tier: `small`, `medium` or `whole`.
        cache: byte offsets and unpacked files are kept here.
        questions: another questions file.
        domain: take only this domain's questions.
        question_ids: take only these.
        limit: then take this many from the start of each domain, as the published runner does.
    """
    refuse_unknown([tier], TIERS, "tier")
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    file = next((folder / name for name in TRAJECTORY_NAMES if (folder / name).is_file()), None)
    if file is None:
        raise UserError(f"{folder}: no {TRAJECTORY_NAMES[0]} in it (python -m lme_v2_env.download fetches it)")
    rows = load_questions(questions or folder / "questions.jsonl")
    evidence = load_evidence(folder)
    trajectories = TrajectoryFile.open(file, cache)
    _check_evidence(evidence, trajectories)
    if tier == "whole" and evidence:
        rows = tuple(row for row in rows if row.id in evidence)
    if question_ids:
        refuse_unknown(question_ids, [row.id for row in rows], "question id")
        rows = tuple(row for row in rows if row.id in question_ids)
    if domain is not None:
        rows = tuple(row for row in rows if row.domain == domain)
    rows = _first(rows, limit)
    if not rows:
        raise UserError("no question is left to answer")
    haystacks = _whole(rows, trajectories) if tier == "whole" else _haystacks(folder, tier, rows, trajectories)
    return Dataset(tier, rows, haystacks, trajectories, evidence)


def load_questions(file: Path) -> tuple[Question, ...]:
    """All rows of a questions file, in file order."""
    if not file.is_file():
        raise UserError(f"{file}: no such file; --questions names the dataset's questions.jsonl elsewhere")
    questions: dict[str, Question] = {}
    for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{file.name} line {number}"
        question = question_from(parsed(line, where), file.parent, where)
        if question.id in questions:
            raise UserError(f"{where}: id '{question.id}' is there twice")
        questions[question.id] = question
    return tuple(questions.values())


def parsed(data: bytes, where: str) -> Any:
    """JSON in UTF-8, with or without a byte order mark. Raises `UserError`."""
    try:
        return strict_json.loads(data)
    except ValueError as error:  # also bytes that are no UTF-8, and numbers of 5,000 digits
        raise UserError(f"{where}: not valid JSON ({error})") from error


def load_evidence(folder: Path) -> dict[str, tuple[EvidencePoint, ...]]:
    """Known evidence by question id, when the folder has a file of it."""
    file = next((folder / name for name in EVIDENCE_NAMES if (folder / name).is_file()), None)
    if file is None:
        return {}
    rows = parsed(file.read_bytes(), file.name)
    if not isinstance(rows, list):
        raise UserError(f"{file.name}: expected a list of questions with their evidence")
    found: dict[str, tuple[EvidencePoint, ...]] = {}
    for number, row in enumerate(rows):
        where = f"{file.name}, entry {number}"
        name, points = (row.get("question_id"), row.get("evidence")) if isinstance(row, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(points, list):
            raise UserError(f"{where}: expected an object with a text 'question_id' and a list 'evidence'")
        if name in found:
            raise UserError(f"{where}: question_id '{name}' is there twice")
        found[name] = tuple(_point(point, f"{where} ({name})") for point in points)
    return found


def _point(point: Any, where: str) -> EvidencePoint:
    if not isinstance(point, dict):
        raise UserError(f"{where}: 'evidence' holds {point!r}, not an object")
    name, index, line = point.get("trajectory_id"), point.get("state_index"), point.get("line")
    if not isinstance(name, str):
        raise UserError(f"{where}: trajectory_id {name!r} is no text")
    if type(index) is not int or not 0 <= index < MOST_STATES:
        raise UserError(f"{where}: state_index {index!r} is no index from 0")
    if line is not None and not isinstance(line, str):
        raise UserError(f"{where}: line {line!r} is no text")
    return EvidencePoint(name, index, line)


def _check_evidence(evidence: Mapping[str, Sequence[EvidencePoint]], trajectories: TrajectoryFile) -> None:
    for question_id, points in evidence.items():
        for point in points:
            if point.trajectory_id not in trajectories:
                raise UserError(
                    f"evidence of {question_id}: trajectory_id {point.trajectory_id!r} is not in {trajectories.label}"
                )


def _first(rows: tuple[Question, ...], limit: int | None) -> tuple[Question, ...]:
    if limit is None:
        return rows
    taken: dict[str, int] = {}
    kept = []
    for row in rows:
        taken[row.domain] = taken.get(row.domain, 0) + 1
        if taken[row.domain] <= limit:
            kept.append(row)
    return tuple(kept)


def _whole(rows: Sequence[Question], trajectories: TrajectoryFile) -> dict[str, tuple[str, ...]]:
    by_domain: dict[str, list[str]] = {}
    for trajectory in trajectories.read(trajectories.ids):
        by_domain.setdefault(trajectory.domain, []).append(trajectory.id)
    missing = next((row.domain for row in rows if row.domain not in by_domain), None)
    if missing:
        raise UserError(f"{trajectories.label}: no trajectory of domain '{missing}', which questions ask about")
    shared = {name: tuple(ids) for name, ids in by_domain.items()}
    return {row.id: shared[row.domain] for row in rows}


def _haystacks(
    folder: Path, tier: str, rows: Sequence[Question], trajectories: TrajectoryFile
) -> dict[str, tuple[str, ...]]:
    file = folder / "haystacks" / f"lme_v2_{tier}.json"
    if not file.is_file():
        raise UserError(f"{file}: no such file (tier '{tier}')")
    data = parsed(file.read_bytes(), file.name)
    if not isinstance(data, dict):
        raise UserError(f"{file.name}: expected an object of question id: list of trajectory ids")
    found: dict[str, tuple[str, ...]] = {}
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}  # two lists make up the whole small tier: keep each once
    for row in rows:
        ids = data.get(row.id)
        if not isinstance(ids, list) or not ids or not all(isinstance(name, str) for name in ids):
            raise UserError(f"{file.name}: question '{row.id}' has no list of trajectory ids")
        unknown = next((name for name in ids if name not in trajectories), None)
        if unknown is not None:
            raise UserError(
                f"{file.name}, question '{row.id}': trajectory '{unknown}' is not in {trajectories.label} "
                f"({len(trajectories)} rows)"
            )
        if len(set(ids)) < len(ids):
            twice = next(name for name in ids if ids.count(name) > 1)
            raise UserError(f"{file.name}, question '{row.id}': trajectory '{twice}' is listed twice")
        key = tuple(ids)
        found[row.id] = shared.setdefault(key, key)
    return found


def _scanned(file: Path, label: str, cache: Path) -> Scan:
    status = file.stat()
    # the inode too: a file that another replaced may have its size and its time
    stamp = [status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns]
    kept = cache / "offsets" / f"{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:24]}.json"
    known = _kept_scan(kept, stamp)
    if known:
        return known
    scan = _scan(file, label)
    kept.parent.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_name(f".{kept.name}.{os.getpid()}")
    temporary.write_text(json.dumps({"stamp": stamp, "scan": scan}), encoding="utf-8")
    os.replace(temporary, kept)
    return scan


def _kept_scan(kept: Path, stamp: list[int]) -> Scan | None:
    """What an earlier run found; None when there is nothing, or nothing usable: then the file is scanned again."""
    try:
        saved = json.loads(kept.read_text("utf-8"))
        if saved["stamp"] != stamp:
            return None
        size, digest, places = saved["scan"]
        return Scan(size, digest, {name: Place(*place) for name, place in places.items()})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _scan(file: Path, label: str) -> Scan:
    places: dict[str, Place] = {}
    offset, digest = 0, hashlib.sha256()
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{label} line {number}"
            digest.update(line)
            if line.strip():
                if not line.rstrip().endswith(b"}"):
                    raise UserError(f"{where}: cut off in the middle (a truncated download?)")
                name = _row_id(line, where)
                if name in places:
                    raise UserError(f"{where}: id '{name}' is there twice (first in line {places[name].line})")
                places[name] = Place(offset, len(line), number)
            offset += len(line)
    if not places:
        raise UserError(f"{label}: no rows")
    return Scan(offset, digest.hexdigest(), places)


def _row_id(line: bytes, where: str) -> str:
    quick = LEADING_ID.match(line)
    if quick:
        return quick.group(1).decode()
    row = parsed(line, where)
    if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not row["id"]:
        raise UserError(f"{where}: field 'id' should be a non-empty string")
    return row["id"]


def _unpacked(file: Path, cache: Path) -> Path:
    status = file.stat()
    key = hashlib.sha256(f"{file.resolve()} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:24]
    target = cache / "unpacked" / f"{key}.jsonl"
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with lzma.open(file) as source, temporary.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    except (lzma.LZMAError, EOFError) as error:
        temporary.unlink(missing_ok=True)
        raise UserError(f"{file.name} cannot be unpacked: {error}") from error
    os.replace(temporary, target)
    return target
