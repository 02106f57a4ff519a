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

from rewards import strict_json
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

CONTENT: Mapping[str, str] = {
    "web": "415e014b69a75ed0838b770741c0d41dc738f20f462fc90d983c049de3e15b2f",
    "enterprise": "9d04ec652fbd94b4bd7a33253b37ed4d0322a74ea2e13065ff6fbba04580a9db",
}
"""Per domain the sha256 that `content_hash` gives for the official questions (same file and revision)."""

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


KINDS = {
    "gotchas": ("errors-gotchas",),
    **{name: (f"{name}-environment", f"{name}-environment-abs") for name in ("static", "dynamic")},
    "procedure": ("procedure", "procedure-abs"),
}
"""Types of questions by metric category, the wrong premises behind the plain ones."""

CATEGORIES = (
    ("non_abstention_by_category", "gotchas"),
    *(("combined_abstention_by_category", name) for name in ("static", "dynamic", "procedure")),
)
"""Section and category of the accuracies in a leaderboard row."""


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
        return strict_json.loads(file.read_bytes())
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
        *_input_problems(questions, ids, haystack, domain),
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
            row = strict_json.loads(line)
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


def _official(ids: Sequence[str], domain: str) -> bool:
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest() == ALL_IDS[domain][1]


def content_hash(questions: Sequence[Mapping[str, Any]]) -> str:
    """Over what was asked and how it is graded; a question is a text, or an object with its text and its picture."""
    listed = []
    for row in questions:
        asked = row.get("question")
        text = asked.get("text") if isinstance(asked, dict) else asked
        fields = [row.get("id") or row.get("question_id"), row.get("question_type"), text]
        listed.append([str(field) for field in (*fields, row.get("answer"), row.get("eval_function"))])
    return hashlib.sha256(json.dumps(sorted(listed)).encode()).hexdigest()


def _input_problems(
    questions: Sequence[Mapping[str, Any]], ids: Sequence[str], haystack: Any, domain: str
) -> list[str]:
    """Questions that are not those published, and haystacks that are no lists of trajectories."""
    problems = []
    if _official(ids, domain) and content_hash(questions) != CONTENT[domain]:
        problems.append("runtime_inputs/questions.json: a text, type, answer or grader is not the published one")
    lists = haystack if isinstance(haystack, dict) else {}
    bad = [key for key in ids if not _is_haystack(lists.get(key))]
    if bad:
        problems.append(f"runtime_inputs/haystack.json: {len(bad)} questions without a haystack, among them {bad[0]}")
    return problems


def _is_haystack(value: Any) -> bool:
    texts = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return texts and 0 < len(value) == len(set(value))


def all_questions(ids: Sequence[str], types: Mapping[str, int], domain: str) -> list[str]:
    """The check that the published scripts lack: every official question of the domain, and no other."""
    number, _ = ALL_IDS[domain]
    if _official(ids, domain):
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
        problems += _mean_problem("overall", stated.get("overall_full_set"), [row["score"] for row in rows])
        for section, name in CATEGORIES:
            part = metrics.get(section)
            entry = part.get(name) if isinstance(part, dict) else None
            said = entry.get("pct_correct") if isinstance(entry, dict) else None
            kinds = KINDS[name] if section.startswith("combined") else KINDS[name][:1]
            problems += _mean_problem(name, said, [row["score"] for row in rows if row.get("question_type") in kinds])
    timing = metrics.get("memory_query")
    average = timing.get("avg_seconds") if isinstance(timing, dict) else None
    seconds: list[Any] = [row.get("memory_query_duration_seconds") for row in rows]
    untimed = [key for key, value in zip(ids, seconds, strict=True) if type(value) not in (int, float)]
    if untimed:
        problems.append(f"per_question.jsonl: {len(untimed)} rows without a latency, among them {untimed[0]}")
    else:
        problems += _mean_problem("mean latency", average, seconds)
    return problems


def _mean_problem(what: str, stated: Any, values: Sequence[float]) -> list[str]:
    mean = sum(values) / len(values) if values else None
    if stated is mean is None or (mean is not None and _near(stated, mean)):
        return []
    given = "none" if mean is None else f"{mean:.6f}"
    return [f"aggregated_metrics.json: {what} {stated}, the rows give {given}"]


def _near(value: Any, expected: float) -> bool:
    return isinstance(value, (int, float)) and math.isclose(value, expected, rel_tol=1e-6, abs_tol=1e-9)
