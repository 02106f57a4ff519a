"""A run in the layout that the published LongMemEval-V2 leaderboard scripts read: one folder a domain.

Only scored rows are written, so that a run with unscored rows is refused by the packaging (its ids differ from those of
the runtime inputs) instead of being scored with silent zeros.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.lme_rows import LmeRun, context_file, percentiles
from eval.rows import write_atomic
from lme_v2_env.dataset import Dataset
from lme_v2_env.trajectory import DOMAINS, Question

PLAIN = ("static", "dynamic", "procedure", "gotchas")
WRONG_PREMISE = ("static-abs", "dynamic-abs", "procedure-abs")

Record = Mapping[str, Any]


def category(question_type: str) -> str:
    """The published metric category: `static-environment-abs` -> `static-abs`, `errors-gotchas` -> `gotchas`."""
    return question_type.replace("-environment", "").replace("errors-", "")


def breakdown(records: Sequence[Record]) -> dict[str, Any]:
    """Shares of correct, wrong and unknown; None where there is no record."""
    n = len(records)
    unknown = sum(record["is_unknown"] for record in records)
    right = sum(record["score_bool"] and not record["is_unknown"] for record in records)
    return {
        "count": n,
        "pct_correct": right / n if n else None,
        "pct_answered_wrong": (n - unknown - right) / n if n else None,
        "pct_unknown": unknown / n if n else None,
    }


def aggregate(records: Sequence[Record]) -> dict[str, Any]:
    """The scores of `aggregated_metrics.json` from published per-question records."""
    plain = [record for record in records if not record["is_abstention_problem"]]
    premise = [record for record in records if record["is_abstention_problem"]]

    def of(*names: str) -> dict[str, Any]:
        return breakdown([record for record in records if record["category"] in names])

    return {
        "overall": {
            "overall_full_set": _mean(record["score"] for record in records),
            "overall_non_abstention_only": _mean(record["score"] for record in plain),
            "overall_abstention_only": _mean(record["score"] for record in premise),
            "count_all_questions": len(records),
            "count_non_abstention": len(plain),
            "count_abstention": len(premise),
        },
        "non_abstention_by_category": {name: of(name) for name in PLAIN},
        "abstention_by_category": {name: of(name) for name in WRONG_PREMISE},
        "combined_abstention_by_category": {name: of(name, f"{name}-abs") for name in PLAIN[:3]},
        "abstention_overall": breakdown(premise),
    }


def export(folder: Path, info: LmeRun, dataset: Dataset, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write `<system>_<domain>_<tier>/` for every domain that has questions in the run."""
    by_id = {question.id: question for question in dataset.questions}
    for domain in DOMAINS:
        asked = [(number, row) for number, row in enumerate(rows) if row["domain"] == domain]
        if not asked:
            continue
        target = folder / f"{info.system}_{domain}_{info.tier}"
        (target / "runtime_inputs").mkdir(parents=True, exist_ok=True)
        records = [_record(folder, by_id[row["id"]], dataset, number, row) for number, row in asked if row["scored"]]
        _jsonl(target / "per_question.jsonl", records)
        _json(target / "aggregated_metrics.json", _metrics(records, dataset))
        _json(
            target / "run_args.json",
            {
                "domain": domain,
                "model": info.reader.get("model", info.reader["reader"]),
                "evaluator_model": info.judge["model"] if info.judge else None,
                "tier": info.tier,
                "system": info.system,
                "settings": info.settings,
                "reader": info.reader,
                "started_at_utc": min((row.get("timestamp_utc") or "" for _, row in asked), default=""),
            },
        )
        questions = [by_id[row["id"]] for _, row in asked]
        inputs = target / "runtime_inputs"
        _json(inputs / "questions.json", [_question(question) for question in questions])
        _json(inputs / "haystack.json", {question.id: list(dataset.haystacks[question.id]) for question in questions})
        _json(inputs / "memory_config.json", {"memory_type": info.system, "memory_params": info.settings})


def _record(folder: Path, question: Question, dataset: Dataset, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    with gzip.open(folder / context_file(question.id), "rt", encoding="utf-8") as handle:
        context = json.load(handle)
    return {
        "index": number,
        "stream_index": number,
        "question_id": question.id,
        "question_type": question.question_type,
        "category": category(question.question_type),
        "is_abstention_problem": question.eval_function.startswith("llm_abstention"),
        "eval_function": question.eval_function,
        "question_text": question.text,
        "question_image": question.image.name if question.image else None,
        "haystack_ids": list(dataset.haystacks[question.id]),
        "memory_context": context,
        "memory_query_duration_seconds": row["query_seconds"] or 0.0,
        "memory_post_query_duration_seconds": 0.0,
        "memory_post_query_metadata": None,
        "memory_context_original_token_count": row["context_tokens"],
        "memory_context_token_count": row["context_tokens_shown"],
        "memory_context_was_truncated": row["context_tokens_shown"] < row["context_tokens"],
        "prompt_messages": None,
        "answer_gold": question.gold,
        "response_raw": row["response"],
        "response_parsed_boxed": row["answer"],
        "is_unknown": row["unknown"],
        "score": 1.0 if row["correct"] else 0.0,
        "score_bool": row["correct"],
        "usage": row["usage"],
        "timestamp_utc": row["timestamp_utc"],
    }


def _metrics(records: Sequence[Record], dataset: Dataset) -> dict[str, Any]:
    usage = {
        name: sum(record["usage"].get(name, 0) for record in records)
        for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    }
    lists = {tuple(record["haystack_ids"]) for record in records}
    shared = len(lists) == 1
    seconds = [record["memory_query_duration_seconds"] for record in records]
    middle, high = percentiles(seconds) or (None, None)
    return {
        **aggregate(records),
        "tokens": usage | {"avg_prompt_tokens": usage["prompt_tokens"] / max(len(records), 1)},
        "memory_context": {
            "avg_original_tokens": _mean(record["memory_context_original_token_count"] for record in records),
            "avg_final_tokens": _mean(record["memory_context_token_count"] for record in records),
            "num_truncated_sequences": sum(record["memory_context_was_truncated"] for record in records),
        },
        "memory_query": {
            "avg_seconds": _mean(seconds),
            "p50_seconds": middle,
            "p95_seconds": high,
            "max_seconds": max(seconds, default=None),
            "total_seconds": sum(seconds),
        },
        "memory_post_query": {"avg_seconds": 0.0, "max_seconds": 0.0, "total_seconds": 0.0},
        "completed_at_utc": max((record["timestamp_utc"] for record in records), default=None),
        "shared_haystack": shared,
        "shared_haystack_ids": list(next(iter(lists))) if shared else None,
    }


def _question(question: Question) -> dict[str, Any]:
    text: Any = question.text
    if question.image:
        text = {"text": question.text, "image": f"question_screenshots/{question.image.name}"}
    return {
        "id": question.id,
        "domain": question.domain,
        "environment": question.environment,
        "question_type": question.question_type,
        "question": text,
        "answer": question.gold,
        "eval_function": question.eval_function,
    }


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) / len(listed) if listed else None


def _json(file: Path, value: Any) -> None:
    write_atomic(file, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def _jsonl(file: Path, rows: Sequence[Record]) -> None:
    # ASCII: the published scripts cut lines at every Unicode line end, also at one inside an answer
    write_atomic(file, "".join(json.dumps(row) + "\n" for row in rows))
