"""What the report reads: folders of evaluations and of training runs, checked before anything is drawn.

A folder with `run.json` is an evaluation (Supersede or LongMemEval-V2), one with `metrics.jsonl` a training run; a
folder that holds such folders stands for them all.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eval import compare
from eval.rows import ROWS_FILE, RUN_FILE
from rewards.errors import UserError

METRICS_FILE, CONFIG_FILE = "metrics.jsonl", "config.toml"

DEEPEST = 4
"""Parts of a path that a run's name may have."""

Kind = Literal["supersede", "lme-v2"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation. `paired` is the same run as `eval.compare` takes it."""

    kind: Kind
    label: str
    folder: Path
    info: dict[str, Any]
    rows: list[Row]
    paired: compare.Run


@dataclass(frozen=True, slots=True)
class Trained:
    """One training run: its configuration and a row a GRPO step."""

    label: str
    folder: Path
    config: dict[str, Any]
    steps: list[Row]


@dataclass(frozen=True, slots=True)
class Loaded:
    """All that one page is about; the evaluations are of one kind."""

    evaluated: list[Evaluated]
    trained: list[Trained]


Shape = Mapping[str, type | tuple[type, ...]]

SCORED: dict[Kind, Shape] = {
    "supersede": {
        "question": str,
        "gold": str,
        "stale": list,
        "verdict": str,
        "explanation": str,
        "answer": str,
        "notes": list,
        "metrics": dict,
    },
    "lme-v2": {
        "question": str,
        "gold": str,
        "question_type": str,
        "correct": bool,
        "strict_correct": bool,
        "unknown": bool,
        "explanation": str,
        "response": str,
        "context_tokens_shown": int,
    },
}
"""Fields of a scored row that the page reads, and their types."""

ALWAYS: dict[Kind, Shape] = {
    "supersede": {"id": str, "scored": bool},
    "lme-v2": {"id": str, "scored": bool, "concurrency": int},
}
"""Fields of every row."""

OPTIONAL: Shape = {
    "tags": dict,
    "cut_off": list,
    "diagnosis": str,
    "usage": dict,
    "context": list,
    "gathered": dict,
    "evidence": dict,
    "source": str,
    "timestamp_utc": str,
    "retrieved": list,
    "evidence_states": list,
    "seconds": (int, float),
    "query_seconds": (int, float),
    "new_tokens": int,
    "calls": int,
}
"""Fields that rows of some engines or versions lack, or hold null."""

INFO: dict[Kind, Shape] = {
    "supersede": {"model": str, "condition": str, "data": dict, "protocol": dict, "sampling": dict, "engine": str},
    "lme-v2": {"system": str, "settings": dict, "tier": str, "data": str, "reader": dict, "excluded": list},
}

INFO_OPTIONAL: Shape = {"adapter": str, "judge": dict, "excluded": list, "task_set": str, "samples": int}

STEP: Shape = {"step": int}
STEP_OPTIONAL: Shape = {
    "reward": (int, float),  # null where no rollout of the step was scored
    "verdicts": dict,
    "rollouts": int,
    "groups": int,
    "varied_groups": int,
    "seconds": (int, float),
}

LARGEST = 1e15
"""No quantity of a run is larger; more would break sums, charts or the page's numbers."""


def load(folders: Sequence[Path]) -> Loaded:
    """Read and check everything. Raises `UserError` that names folder, file and line."""
    places = [place for folder in folders for place in _places(folder)]
    names = labels(places)
    evaluated = [_evaluated(place, name) for place, name in zip(places, names, strict=True) if _is_run(place)]
    trained = [_trained(place, name) for place, name in zip(places, names, strict=True) if not _is_run(place)]
    kinds = {run.kind: run for run in evaluated}
    if len(kinds) > 1:
        first, second = kinds.values()
        raise UserError(
            f"{first.folder} is a run of {first.kind}, {second.folder} one of {second.kind}: give each its own report"
        )
    return Loaded(evaluated, trained)


def _is_run(folder: Path) -> bool:
    return (folder / RUN_FILE).is_file()


def _places(folder: Path) -> list[Path]:
    """The folder itself, or the runs in it."""
    folder = Path(os.path.abspath(folder))  # without `..`, which is no name for a run
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    if _is_run(folder) or (folder / METRICS_FILE).is_file():
        return [folder]
    found = sorted({file.parent for name in (RUN_FILE, METRICS_FILE) for file in folder.rglob(name)})
    # what lies in an evaluation's folder is its own: an evaluator's traces
    inside = [place for place in found if not any(_is_run(above) for above in place.parents if above in found)]
    if not inside:
        raise UserError(f"{folder} is no run: neither {RUN_FILE} nor {METRICS_FILE} is in it or in its folders")
    return inside


def labels(folders: Sequence[Path]) -> list[str]:
    """Names that tell the folders apart: below what they have in common, or, where that is long, the shortest ends of
    their paths; of one folder alone its last two parts. Raises `UserError` for a folder that is given twice."""
    same = [folder.resolve() for folder in folders]  # by another path, too
    twice = [folder for folder, real in zip(folders, same, strict=True) if same.count(real) > 1]
    if twice:
        raise UserError(f"{min(twice)} is given twice")
    if len(folders) > 1:
        shared = len(os.path.commonpath(folders).strip("/").split("/")) + 1
        below = [folder.parts[shared:] or folder.parts[-1:] for folder in folders]
        if max(map(len, below)) <= DEEPEST and len(set(below)) == len(below):
            return ["/".join(parts) for parts in below]
    depth = 2
    while len({folder.parts[-depth:] for folder in folders}) < len(folders):
        depth += 1
    return ["/".join(part for part in folder.parts[-depth:] if part != folder.anchor) for folder in folders]


def _evaluated(folder: Path, label: str) -> Evaluated:
    info = _object(folder / RUN_FILE)
    kind: Kind = "lme-v2" if "system" in info and "reader" in info else "supersede"
    _check(info, INFO[kind], str(folder / RUN_FILE))
    _check_present(info, INFO_OPTIONAL, str(folder / RUN_FILE))
    if any(not isinstance(pair, list) or not pair for pair in info.get("excluded") or ()):
        raise UserError(f"{folder / RUN_FILE}: 'excluded' is no list of pairs")
    file = folder / ROWS_FILE
    rows = _lines(file)
    if not rows:
        raise UserError(f"{file}: no rows; the run has not begun")
    for number, row in rows.items():
        where = f"{file}, line {number}"
        _check(row, ALWAYS[kind], where)
        _check(row, SCORED[kind] if row["scored"] else {}, where)
        _check_present(row, OPTIONAL, where)
        _refuse_odd(row, where)
    values = list(rows.values())
    if kind == "supersede":
        _refuse_other_metrics(rows, file)
        loaded = compare.load_run(folder)  # doubled, missing and malformed rows
        paired = compare.Run(label, loaded.info, loaded.tasks)
    else:
        paired = _pairable(label, info, values, file)
        if type(n := info.get("n")) is int and len(paired.tasks) != n:
            raise UserError(
                f"{file}: {len(paired.tasks)} of {n} questions; the run is not finished or the file was cut"
            )
    return Evaluated(kind, label, folder, info, values, paired)


def _refuse_other_metrics(rows: Mapping[int, Row], file: Path) -> None:
    """Rates are means of each metric over all scored rows: they must all have the same ones."""
    scored = {number: row["metrics"] for number, row in rows.items() if row["scored"]}
    names = set().union(*scored.values())
    for number, found in scored.items():
        if missing := names - set(found):
            raise UserError(f"{file}, line {number}: 'metrics' has no '{min(missing)}', which other rows have")


def _pairable(label: str, info: dict[str, Any], rows: Sequence[Row], file: Path) -> compare.Run:
    """A LongMemEval-V2 run as `eval.compare` takes runs: one sample a question, nothing is stale."""
    tasks: dict[str, list[compare.Row]] = {}
    for row in rows:
        if row["id"] in tasks:
            raise UserError(f"{file}: question '{row['id']}' occurs twice")
        right = int(row["correct"]) if row["scored"] else None
        reason, answer = str(row.get("unscored_reason") or ""), str(row.get("answer") or "")
        tasks[row["id"]] = [
            compare.Row(row["id"], 0, right, right and 0, False, False, reason, answer, str(row.get("gold")))
        ]
    same = {"task_set": info["data"], "grader_version": info.get("grader_version")}
    return compare.Run(label, info | same, tasks)


def _trained(folder: Path, label: str) -> Trained:
    file = folder / METRICS_FILE
    steps = _lines(file)
    if not steps:
        raise UserError(f"{file}: no rows; the training has not finished a step")
    for number, row in steps.items():
        _check(row, STEP, f"{file}, line {number}")
        _check_present(row, STEP_OPTIONAL, f"{file}, line {number}")
        _refuse_odd(row, f"{file}, line {number}")
    config: dict[str, Any] = {}
    if (folder / CONFIG_FILE).is_file():
        try:
            config = tomllib.loads(_text(folder / CONFIG_FILE))
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{folder / CONFIG_FILE} is damaged: {error}") from None
    return Trained(label, folder, config, list(steps.values()))


def _lines(file: Path) -> dict[int, Row]:
    """Objects by line number."""
    found: dict[int, Row] = {}
    for number, line in enumerate(_text(file).split("\n"), 1):  # not splitlines: answers may hold U+2028
        if line.strip():
            found[number] = _parsed(line, f"{file}, line {number}")
    return found


def _object(file: Path) -> dict[str, Any]:
    return _parsed(_text(file), str(file))


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f"{where}: no valid JSON; the file is cut or damaged") from None
    if not isinstance(value, dict):
        raise UserError(f"{where}: expected an object")
    return value


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        raise UserError(f"{file}: no such file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file} cannot be read: {error}") from error


def _types(kinds: type | tuple[type, ...]) -> tuple[type, ...]:
    return kinds if isinstance(kinds, tuple) else (kinds,)


def _check(record: Mapping[str, Any], shape: Shape, where: str) -> None:
    for name, kinds in shape.items():
        if name not in record:
            raise UserError(f"{where}: '{name}' is missing")
        value = record[name]
        wrong = not isinstance(value, kinds) or (isinstance(value, bool) and bool not in _types(kinds))
        if wrong or (isinstance(value, int | float) and not _countable(value)):
            raise UserError(f"{where}: '{name}' is {str(value)[:80]!r}, not {' or '.join(_words(kinds))}")


def _check_present(record: Mapping[str, Any], shape: Shape, where: str) -> None:
    """The same for fields that may be absent or null."""
    _check(record, {name: (*_types(kinds), type(None)) for name, kinds in shape.items() if name in record}, where)


def _countable(value: object) -> bool:
    """A number that sums and charts can take: neither NaN nor beyond all measure."""
    return isinstance(value, int | float) and abs(value) < LARGEST


def _words(kinds: type | tuple[type, ...]) -> list[str]:
    names = {str: "a text", list: "a list", dict: "an object", bool: "true or false", int: "a number"}
    return sorted({names[kind] for kind in _types(kinds) if kind in names})


def _refuse_odd(row: Row, where: str) -> None:
    """Members of lists and objects that the page counts or shows."""
    for name in ("stale", "notes", "cut_off"):
        if any(not isinstance(part, str) for part in row.get(name) or ()):
            raise UserError(f"{where}: '{name}' holds something that is no text")
    for name in ("metrics", "usage", "verdicts", "evidence"):
        for key, value in (row.get(name) or {}).items():
            if not _countable(value):
                raise UserError(f"{where}: '{name}' holds no number '{key}'")
    for name in ("retrieved", "evidence_states"):
        for pair in row.get(name) or ():
            if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and type(pair[1]) is int):
                raise UserError(f"{where}: '{name}' holds {pair!r}, not [trajectory, state]")
    position = (row.get("tags") or {}).get("sessions_after_update")
    if position is not None and type(position) is not int:
        raise UserError(f"{where}: 'tags' holds no number of sessions after the update")
