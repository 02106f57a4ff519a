"""One finished LongMemEval-V2 run as the leaderboard wants it: read, and everything named that is wrong with it."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewards.errors import UserError

DOMAINS = ("web", "enterprise")
RUN_FILES = ("aggregated_metrics.json", "per_question.jsonl", "run_args.json")
READER, JUDGE = "qwen3.5-9b", "gpt-5.2"
"""What the names of the reader and of the judge must contain, in lower case."""

ALL_IDS: Mapping[str, tuple[int, str]] = {
    "web": (240, "722e229628b3ff716afe6eb6de3f8449b66c609eb29ef4e781caff560b0c6e13"),
    "enterprise": (211, "f8cd3eb0e32c32b21868b2e94401a60a3912e9c036bf0b90f9fd2704aa7ef6b0"),
}
"""Per domain the number of official questions and the sha256 over their sorted ids joined by line breaks
(questions.jsonl, dataset revision f152293e235517d504809563c833d7190b8c713b)."""

TYPES: Mapping[str, Mapping[str, int]] = {
    "web": {
        "dynamic-environment": 51,
        "dynamic-environment-abs": 21,
        "errors-gotchas": 15,
        "procedure": 42,
        "procedure-abs": 20,
        "static-environment": 60,
        "static-environment-abs": 31,
    },
    "enterprise": {
        "dynamic-environment": 35,
        "dynamic-environment-abs": 20,
        "errors-gotchas": 14,
        "procedure": 32,
        "procedure-abs": 12,
        "static-environment": 74,
        "static-environment-abs": 24,
    },
}
"""Official questions of each type, to say what is missing."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of one domain; `problems` is empty when it may be submitted."""

    folder: Path
    domain: str
    method: str
    ids: tuple[str, ...]
    type_counts: dict[str, int]
    haystack: Any
    args: dict[str, Any]
    metrics: dict[str, Any]
    problems: tuple[str, ...]


def read_json(file: Path) -> dict[str, Any]:
    """A file that holds one JSON object."""
    value = _load(file)
    if not isinstance(value, dict):
        raise UserError(f"{file}: expected an object")
    return value


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{file}: no such file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}") from None


def load_run(folder: Path, domain: str, tier: str, method: str | None) -> Run:
    """Read one run. Raises `UserError` for a missing or damaged file; everything else becomes a problem."""
    args, metrics = read_json(folder / "run_args.json"), read_json(folder / "aggregated_metrics.json")
    inputs = folder / "runtime_inputs"
    questions, haystack = _load(inputs / "questions.json"), _load(inputs / "haystack.json")
    if not isinstance(questions, list) or not all(isinstance(row, dict) for row in questions):
        raise UserError(f"{inputs / 'questions.json'}: expected a list of objects")
    rows = read_rows(folder / "per_question.jsonl")
    ids = [_id(row, inputs / "questions.json") for row in questions]
    answered = [_id(row, folder / "per_question.jsonl") for row in rows]
    name, named = _method(folder, args, domain, tier, method)
    problems = [
        *named,
        *_model_problems(args, questions, domain),
        *_id_problems(ids, answered),
        *_type_problems(questions, rows),
        *all_questions(ids, Counter(str(row.get("question_type")) for row in questions), domain),
        *_score_problems(rows, answered, metrics, len(questions)),
    ]
    counts = Counter(str(row.get("question_type")) for row in questions)
    return Run(
        folder, domain, name, tuple(sorted(ids)), dict(sorted(counts.items())), haystack, args, metrics, tuple(problems)
    )


def read_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a per_question.jsonl, cut into lines as the published scripts do."""
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        raise UserError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    rows: list[dict[str, Any]] = []
    # The published scripts split at every Unicode line end: an unescaped U+2028 inside an answer breaks their reading.
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise UserError(f"{file}, line {number}: no valid JSON (cut, or an unescaped line separator)") from None
        if not isinstance(row, dict):
            raise UserError(f"{file}, line {number}: expected an object")
        rows.append(row)
    return rows


def _id(row: Mapping[str, Any], file: Path) -> str:
    value = row.get("id") if row.get("id") is not None else row.get("question_id")
    if value is None:
        raise UserError(f"{file}: a row has no question id")
    return str(value)


def _method(folder: Path, args: Mapping[str, Any], domain: str, tier: str, given: str | None) -> tuple[str, list[str]]:
    """The method's name, from the option, run_args.json or the folder, and what contradicts it."""
    suffix = f"_{domain}_{tier}"
    inferred = folder.name.removesuffix(suffix) if folder.name.endswith(suffix) else ""
    stated = str(args.get("method") or "")
    method = given or stated or inferred
    problems = []
    if not method:
        problems.append(f"no method: give --method or name the folder <method>{suffix}")
    if stated and stated != method:
        problems.append(f"run_args.json says method '{stated}', not '{method}'")
    if not given and stated and inferred and stated != inferred:
        problems.append(f"run_args.json says method '{stated}', the folder '{inferred}'")
    if args.get("tier") and args["tier"] != tier:
        problems.append(f"run_args.json says tier '{args['tier']}', not '{tier}'")
    return method, problems


def _model_problems(args: Mapping[str, Any], questions: Sequence[Mapping[str, Any]], domain: str) -> list[str]:
    problems = []
    if args.get("domain") != domain:
        problems.append(f"run_args.json says domain {args.get('domain')!r}, not '{domain}'")
    foreign = {str(row.get("domain")) for row in questions} - {domain}
    if foreign:
        problems.append(f"questions of domain {', '.join(sorted(foreign))}")
    for key, part in (("model", READER), ("evaluator_model", JUDGE)):
        if part not in str(args.get(key, "")).lower():
            problems.append(f"run_args.json: {key} is {args.get(key)!r}; the leaderboard takes {part} only")
    return problems


def _id_problems(ids: Sequence[str], answered: Sequence[str]) -> list[str]:
    problems = []
    for what, given in (("runtime_inputs/questions.json", ids), ("per_question.jsonl", answered)):
        twice = sorted(key for key, count in Counter(given).items() if count > 1)
        if twice:
            problems.append(f"{what}: {len(twice)} ids twice, among them {twice[0]}")
    missing, extra = sorted({*ids} - {*answered}), sorted({*answered} - {*ids})
    if missing:
        problems.append(f"per_question.jsonl: {len(missing)} questions without a row, among them {missing[0]}")
    if extra:
        problems.append(f"per_question.jsonl: {len(extra)} rows of no question, among them {extra[0]}")
    return problems


def _type_problems(questions: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    one, two = (Counter(str(row.get("question_type") or "none") for row in side) for side in (questions, rows))
    problems = [f"{side['none']} rows without a question_type" for side in (one, two) if side["none"]]
    if one != two:
        problems.append(
            f"question types differ: {dict(sorted(one.items()))} asked, {dict(sorted(two.items()))} answered"
        )
    return problems


def all_questions(ids: Sequence[str], types: Mapping[str, int], domain: str) -> list[str]:
    """The check that the published scripts lack: every official question of the domain, and no other."""
    number, digest = ALL_IDS[domain]
    if hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest() == digest:
        return []
    if len(ids) == number:
        return [f"{number} questions, but not the {number} official ones"]
    short = [
        f"{kind} {types.get(kind, 0)} of {count}"
        for kind, count in TYPES[domain].items()
        if types.get(kind, 0) != count
    ]
    return [f"{len(ids)} of {number} questions ({', '.join(short) or 'not the official ones'})"]


def _score_problems(
    rows: Sequence[Mapping[str, Any]], ids: Sequence[str], metrics: Mapping[str, Any], asked: int
) -> list[str]:
    """Rows without a score, and metrics that are not those of the rows."""
    problems = []
    unscored = [
        key
        for key, row in zip(ids, rows, strict=True)
        if row.get("scored") is False or isinstance(row.get("score"), bool) or row.get("score") not in (0, 1)
    ]
    if unscored:
        problems.append(f"per_question.jsonl: {len(unscored)} rows are unscored, among them {unscored[0]}")
    overall = metrics.get("overall")
    stated = overall if isinstance(overall, dict) else {}
    if stated.get("count_all_questions") != asked or asked != len(rows):
        problems.append(
            f"counts differ: {stated.get('count_all_questions')} in aggregated_metrics.json, {asked} questions, "
            f"{len(rows)} rows"
        )
    if not unscored and rows:
        mean = sum(row["score"] for row in rows) / len(rows)
        if not _near(stated.get("overall_full_set"), mean):
            problems.append(
                f"aggregated_metrics.json: overall {stated.get('overall_full_set')}, the rows give {mean:.6f}"
            )
    seconds = [row.get("memory_query_duration_seconds") for row in rows]
    timing = metrics.get("memory_query")
    if rows and all(isinstance(value, (int, float)) for value in seconds):
        mean = sum(value for value in seconds if value is not None) / len(rows)
        average = timing.get("avg_seconds") if isinstance(timing, dict) else None
        if not _near(average, mean):
            problems.append(f"aggregated_metrics.json: mean latency {average}, the rows give {mean:.6f}")
    return problems


def _near(value: Any, expected: float) -> bool:
    return isinstance(value, (int, float)) and math.isclose(value, expected, rel_tol=1e-6, abs_tol=1e-9)
