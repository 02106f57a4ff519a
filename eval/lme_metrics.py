"""Joining the web and the enterprise half of a LongMemEval-V2 run, as the published leaderboard does.

Input are two `aggregated_metrics.json`. Shares and means are weighted by their own counts, totals are added (a missing
total is mean times count), maxima are kept; medians and 95th percentiles cannot be joined and are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewards.errors import UserError

Metrics = Mapping[str, Any]

SCORES = {
    "overall_full_set": "count_all_questions",
    "overall_non_abstention_only": "count_non_abstention",
    "overall_abstention_only": "count_abstention",
}
"""Overall scores and the counts that they are means over."""

SHARES = ("pct_correct", "pct_answered_wrong", "pct_unknown")
SECTIONS = ("non_abstention_by_category", "abstention_by_category", "combined_abstention_by_category")
TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")

OVERVIEW: Mapping[str, tuple[str, ...]] = {
    "overall_full_set": ("overall", "overall_full_set"),
    "gotchas_accuracy": ("non_abstention_by_category", "gotchas", "pct_correct"),
    "static_accuracy": ("combined_abstention_by_category", "static", "pct_correct"),
    "dynamic_accuracy": ("combined_abstention_by_category", "dynamic", "pct_correct"),
    "procedure_accuracy": ("combined_abstention_by_category", "procedure", "pct_correct"),
    "memory_query_avg_seconds": ("memory_query", "avg_seconds"),
}
"""The numbers of a leaderboard row and where they stand in joined metrics."""


def join(parts: Sequence[Metrics]) -> dict[str, Any]:
    """The metrics of all parts together. Raises `UserError` for a part without questions or with a malformed number."""
    counts = [_count(_section(part, "overall").get("count_all_questions")) for part in parts]
    if not all(counts):
        raise UserError("aggregated_metrics.json: overall.count_all_questions must be positive")
    total = sum(counts)
    contexts = [_section(part, "memory_context") for part in parts]
    joined: dict[str, Any] = {
        "overall": _overall([_section(part, "overall") for part in parts]),
        "abstention_overall": _breakdown([_section(part, "abstention_overall") for part in parts]),
        "tokens": _tokens([_section(part, "tokens") for part in parts], counts),
        "memory_context": {
            **{
                key: _mean([(context.get(key), count) for context, count in zip(contexts, counts, strict=True)])
                for key in ("avg_original_tokens", "avg_final_tokens")
            },
            "num_truncated_sequences": sum(_count(context.get("num_truncated_sequences")) for context in contexts),
        },
    }
    for key in ("memory_query", "memory_post_query"):
        timings = [_section(part, key) for part in parts]
        seconds = _sum(
            [_total(timing, "total_seconds", "avg_seconds", n) for timing, n in zip(timings, counts, strict=True)]
        )
        longest = [value for timing in timings if (value := _number(timing.get("max_seconds"))) is not None]
        joined[key] = {
            "avg_seconds": None if seconds is None else seconds / total,
            "max_seconds": max(longest, default=None),
            "total_seconds": seconds,
        }
    for name in SECTIONS:
        sections = [_section(part, name) for part in parts]
        names = dict.fromkeys(key for section in sections for key in section)
        joined[name] = {key: _breakdown([_section(section, key) for section in sections]) for key in names}
    return joined


def overview(joined: Metrics) -> dict[str, Any]:
    """The numbers of a leaderboard row. Raises `UserError` when one is not there."""
    row: dict[str, Any] = {}
    for name, path in OVERVIEW.items():
        value: Any = joined
        for key in path:
            if not isinstance(value, Mapping) or key not in value:
                raise UserError(f"aggregated_metrics.json: {'.'.join(path)} is missing")
            value = value[key]
        row[name] = value
    return row


def _section(part: Metrics, key: str) -> Metrics:
    value = part.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UserError(f"aggregated_metrics.json: '{key}' is not an object")
    return value


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"aggregated_metrics.json: {value!r} is not a number")
    return float(value)


def _count(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UserError(f"aggregated_metrics.json: {value!r} is not a count")
    return value


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Sequence[tuple[Any, int]]) -> float | None:
    """Mean weighted by counts; what has no value or no rows does not count."""
    known = [(number, count) for value, count in values if count and (number := _number(value)) is not None]
    return sum(number * count for number, count in known) / sum(count for _, count in known) if known else None


def _total(section: Metrics, total: str, mean: str, count: int) -> float | None:
    if (value := _number(section.get(total))) is not None:
        return value
    average = _number(section.get(mean))
    return None if average is None else average * count


def _overall(parts: Sequence[Metrics]) -> dict[str, Any]:
    means = {
        score: _mean([(part.get(score), _count(part.get(count))) for part in parts]) for score, count in SCORES.items()
    }
    return means | {count: sum(_count(part.get(count)) for part in parts) for count in SCORES.values()}


def _breakdown(parts: Sequence[Metrics]) -> dict[str, Any]:
    counts = [_count(part.get("count")) for part in parts]
    shares = {key: _mean([(part.get(key), count) for part, count in zip(parts, counts, strict=True)]) for key in SHARES}
    return {"count": sum(counts), **shares}


def _tokens(parts: Sequence[Metrics], counts: Sequence[int]) -> dict[str, Any]:
    totals = {
        key: _sum([_total(part, key, f"avg_{key}", count) for part, count in zip(parts, counts, strict=True)])
        for key in TOKENS
    }
    prompt, completion = totals["prompt_tokens"], totals["completion_tokens"]
    if totals["total_tokens"] is None and prompt is not None and completion is not None:
        totals["total_tokens"] = prompt + completion
    whole = {key: int(value) if value is not None and value == int(value) else value for key, value in totals.items()}
    return whole | {f"avg_{key}": None if value is None else value / sum(counts) for key, value in totals.items()}
