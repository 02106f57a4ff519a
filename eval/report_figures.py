"""The figures of a report, recomputed from rows: JSON-ready, so that the page embeds what it shows.

Rates are over scored rows, in [0, 1]; intervals are Wilson's at 95 %, over tasks (repeats of a task do not narrow
them). Pairs are compared by `eval.compare`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import combinations, takewhile
from pathlib import Path
from typing import Any

from eval import lme_rows, rows
from eval.compare import MUST_MATCH, compare
from eval.lme_errors import Cause, cause, of_row
from eval.lme_rows import percentiles
from eval.report_runs import Evaluated, Loaded, Row, Trained
from eval.stats import UNSCORED_LIMIT, wilson
from supersede_env.diagnosis import DIAGNOSES
from supersede_env.scoring import VERDICTS

VERDICT_WORDS = {"supersede": VERDICTS, "lme-v2": ("correct", "unknown", "wrong")}
"""How an answer may end, best first for charts. `unknown`: a wrong answer that says that it does not know."""

LOST_WORDS = {
    "supersede": tuple(word for word in DIAGNOSES if word != "answered"),
    "lme-v2": tuple(str(kind) for kind in Cause),
}
"""Where the fact was lost: `supersede_env.diagnosis` and `eval.lme_errors` say what the words mean."""

LME_MAY_DIFFER = ("system", "settings", "reader", "judge", "code_version")
"""What a comparison of LongMemEval-V2 runs may be about; `eval.compare` has Supersede's list."""

MOST_DRAWS = 10_000_000
"""Tasks times bootstrap resamples: what fits into memory; above 1,000 tasks fewer than 10,000 resamples are drawn."""

MOST_PAIRS = 15
"""All pairs of up to six runs; of more runs, each is compared with the first of the same tasks and grader."""


def figures(loaded: Loaded) -> dict[str, Any]:
    """Everything that the overview shows."""
    return {
        "runs": [_run(run) for run in loaded.evaluated],
        "pairs": pairs(loaded.evaluated),
        "budgets": budgets(loaded.evaluated),
        "training": [_training(run, loaded.trained, loaded.evaluated) for run in loaded.trained],
    }


def verdict(kind: str, row: Row) -> str | None:
    """One of `VERDICT_WORDS`; None for an unscored row."""
    if not row["scored"]:
        return None
    if kind == "supersede":
        return row["verdict"]
    return "correct" if row["correct"] else "unknown" if row.get("unknown") else "wrong"


def lost(kind: str, row: Row) -> str | None:
    """One of `LOST_WORDS`; None for an answer that is right or unscored, or where rows are too old to say."""
    if kind == "supersede":
        word = row.get("diagnosis") if row["scored"] else None
        return None if word == "answered" else word
    found = cause(of_row(row))
    return None if found is None else str(found)


def _run(run: Evaluated) -> dict[str, Any]:
    scored = [row for row in run.rows if row["scored"]]
    dates = sorted(row["timestamp_utc"] for row in run.rows if row.get("timestamp_utc"))
    found: dict[str, Any] = {
        "label": run.label,
        "kind": run.kind,
        "made_by": _made_by(run),
        "rows": len(run.rows),
        "scored": len(scored),
        "dates": [dates[0], dates[-1]] if dates else [],
        "excluded": Counter(str(pair[-1]) for pair in run.info.get("excluded") or ()),
        "unscored": Counter(str(row.get("unscored_reason")) for row in run.rows if not row["scored"]),
        "invalid": len(run.rows) - len(scored) > UNSCORED_LIMIT * len(run.rows),
        "verdicts": _counted(VERDICT_WORDS[run.kind], (verdict(run.kind, row) for row in run.rows)),
        "lost": _counted(LOST_WORDS[run.kind], (lost(run.kind, row) for row in run.rows)),
        "sources": Counter(row.get("source") or "unnamed" for row in run.rows) if run.kind == "supersede" else {},
        "cost": _cost(run),
    }
    if run.kind == "supersede":
        summary = rows.summarise(run.rows)
        found |= {"accuracy": summary.accuracy, "low": summary.low, "high": summary.high, "rates": summary.rates}
        after = _grouped(scored, lambda row: (row.get("tags") or {}).get("sessions_after_update"), _right)
        return found | {"after": after, "types": []}
    of_lme = lme_rows.summarise(run.rows)
    found |= {"accuracy": of_lme.accuracy, "low": of_lme.interval.low, "high": of_lme.interval.high}
    found["rates"] = {"strict": of_lme.strict, "unknown": of_lme.unknown, **of_lme.evidence}
    return found | {"after": [], "types": _grouped(scored, lambda row: row["question_type"], _right)}


def _right(row: Row) -> int:
    return int(row["r_cur"] if "r_cur" in row else row["correct"])


def _counted(words: Sequence[str], found: Iterable[str | None]) -> dict[str, int]:
    counts = Counter(found)
    strange = sorted(str(word) for word in counts if word is not None and word not in words)
    return {word: counts[word] for word in (*words, *strange) if counts[word]}


def _grouped(scored: Sequence[Row], key: Callable[[Row], Any], right: Callable[[Row], int]) -> list[dict[str, Any]]:
    """Accuracy by a value of the rows, in its order; rows without the value are left out."""
    groups: dict[Any, list[Row]] = {}
    for row in scored:
        if key(row) is not None:
            groups.setdefault(key(row), []).append(row)
    return [{"key": name, **_share(groups[name], right)} for name in sorted(groups)]


def _share(group: Sequence[Row], right: Callable[[Row], int]) -> dict[str, Any]:
    hits, tasks = sum(map(right, group)), len({row["id"] for row in group})
    interval = wilson(hits / len(group) * tasks, tasks)
    return {
        "n": len(group),
        "right": hits,
        "accuracy": hits / len(group),
        "low": interval.low,
        "high": interval.high,
    }


def _made_by(run: Evaluated) -> dict[str, str]:
    """What made the run, in words. Only named fields: no address of an endpoint, no path but its last two parts."""
    info = run.info
    versions = {"grader": str(info.get("grader_version")), "code": str(info.get("code_version"))}
    if run.kind == "lme-v2":
        reader = info["reader"]
        judge = info.get("judge") or {}
        return {
            "system": info["system"],
            "reader": str(reader.get("model") or reader.get("reader")),
            "judge": str(judge.get("model") or "none"),
            "data": f"tier {info['tier']}, questions {info['data']}",
            "sampling": _pairs({k: reader[k] for k in ("temperature", "top_p", "max_tokens") if k in reader}),
            **versions,
        }
    adapter = info.get("adapter")
    protocol = info["protocol"]
    return {
        "model": ending(info["model"]) if Path(info["model"]).is_absolute() else info["model"],
        "adapter": ending(adapter) if adapter else "none",
        "engine": info["engine"],
        "condition": info["condition"],
        "data": _pairs(
            {
                name: ending(value) if isinstance(value, str) else value
                for name, value in info["data"].items()
                if value is not None and name not in ("first_seed", "path")
            }
        ),
        "budget": f"{protocol.get('budget')} characters" if info["condition"] != "full" else "none (full context)",
        "wording": str(protocol.get("wording")),
        "sampling": _pairs(info["sampling"]),
        "samples": str(info.get("samples", 1)),
        "stale weight": str(info.get("stale_weight")),
        "task set": str(info.get("task_set")),
        **versions,
    }


def ending(path: str) -> str:
    """A path's last two parts."""
    return "/".join(path.replace("\\", "/").rstrip("/").split("/")[-2:])


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items()) or "-"


def _cost(run: Evaluated) -> dict[str, float]:
    """Means over the rows that recorded the quantity; absent where none did. Seconds are per row (Supersede: a whole
    rollout, for local engines its share of a batch) or per query (LongMemEval-V2)."""
    timed = "seconds" if run.kind == "supersede" else "query_seconds"
    seconds = [row[timed] for row in run.rows if row.get(timed) is not None]
    found: dict[str, float] = {}
    if middle := percentiles(seconds):
        found |= {"seconds_mean": sum(seconds) / len(seconds), "seconds_p50": middle[0], "seconds_p95": middle[1]}
        found["seconds_total"] = sum(seconds)
    for name in ("calls", "new_tokens", "context_tokens_shown"):
        values = [row[name] for row in run.rows if row.get(name) is not None]
        found |= {name: sum(values) / len(values)} if values else {}
    for name in ("prompt_tokens", "completion_tokens"):
        values = [row["usage"][name] for row in run.rows if name in (row.get("usage") or {})]
        found |= {name: sum(values) / len(values)} if values else {}
    return found


def pairs(runs: Sequence[Evaluated]) -> list[dict[str, Any]]:
    """Comparisons of runs over the same tasks under the same grader, the earlier one first."""
    alike: dict[Any, list[Evaluated]] = {}
    for run in runs:
        key = (*(str(run.paired.info.get(key)) for key in MUST_MATCH), frozenset(run.paired.tasks))
        alike.setdefault(key, []).append(run)
    chosen = [pair for group in alike.values() for pair in combinations(group, 2)]
    if len(chosen) > MOST_PAIRS:
        chosen = [(group[0], run) for group in alike.values() for run in group[1:]]
    found = []
    for a, b in chosen:
        resamples = max(1_000, min(10_000, MOST_DRAWS // len(a.paired.tasks)))
        result = compare(a.paired, b.paired, resamples=resamples, seed=0)
        if result is not None:
            whole = asdict(result)
            del whole["discordant"]
            if a.kind == "lme-v2":
                whole["differs_in"] = [key for key in LME_MAY_DIFFER if a.info.get(key) != b.info.get(key)]
            for side in ("a", "b"):
                whole[side] = {name: whole[side][name] for name in ("run", "accuracy", "low", "high")}
            found.append(whole | {"resamples": resamples})
    return found


def budgets(runs: Sequence[Evaluated]) -> list[dict[str, Any]]:
    """Accuracy against the budget, for runs that differ in nothing else that shapes an answer."""
    groups: dict[str, dict[int, Evaluated]] = {}
    for run in runs:
        budget = run.info.get("protocol", {}).get("budget")
        if run.kind != "supersede" or run.info["condition"] == "full" or type(budget) is not int:
            continue
        rest = {name: value for name, value in run.info["protocol"].items() if name != "budget"}
        names = ("model", "adapter_sha256", "condition", "task_set", "sampling", "grader_version")
        key = repr([rest, [run.info.get(name) for name in names]])
        groups.setdefault(key, {}).setdefault(budget, run)
    found = []
    for members in groups.values():
        if len(members) > 1:
            points = []
            for budget, run in sorted(members.items()):
                scored = [row for row in run.rows if row["scored"]]
                points += [{"key": budget, **_share(scored, _right)}] if scored else []
            found.append({"label": next(iter(members.values())).label, "points": points})
    return found


def _training(run: Trained, runs: Sequence[Trained], evaluated: Sequence[Evaluated]) -> dict[str, Any]:
    """The curve of one run, and the evaluations of its checkpoints where they are given too."""
    steps = []
    for row in run.steps:
        counts = row.get("verdicts") or {}
        scored = sum(counts.values())
        share = {word: counts.get(word, 0) / scored for word in ("correct", "stale")} if scored else {}
        share |= {"reward": row["reward"]} if row.get("reward") is not None else {}
        groups = row.get("groups") or 0
        varied = {"varied": (row.get("varied_groups") or 0) / groups} if groups else {}
        steps.append({"step": row["step"], **share, **varied})
    config = run.config
    words = ("env", "model", "seed", "steps", "groups", "group_size", "lr", "stale_weight", "kl_weight")
    held = [point for one in evaluated if (point := _checkpoint(run, runs, one))]
    seconds = [row["seconds"] for row in run.steps if isinstance(row.get("seconds"), int | float)]
    return {
        "label": run.label,
        "made_by": {word.replace("_", " "): str(config[word]) for word in words if word in config},
        "steps": steps,
        "checkpoints": sorted(held, key=lambda point: point["step"]),
        "seconds": sum(seconds),
    }


def _checkpoint(run: Trained, runs: Sequence[Trained], one: Evaluated) -> dict[str, Any] | None:
    """An evaluation of an adapter that lies in the training folder: its step, what it played, and accuracy.

    Folders may have been moved since: of the training runs the one counts whose path ends most like the adapter's, and
    none where two do.
    """
    *home, name = str(one.info.get("adapter") or "").replace("\\", "/").rstrip("/").split("/")
    alike = {other.folder: _common_end(home, other.folder.parts) for other in runs}
    best = max(alike.values())
    if not best or alike[run.folder] < best or list(alike.values()).count(best) > 1:
        return None
    last = run.steps[-1]["step"]
    number = name.removeprefix("step_")
    step = 0 if name == "warm" else last if name == "adapter" else int(number) if number.isdecimal() else None
    scored = [row for row in one.rows if row["scored"]]
    if step is None or not scored:
        return None
    played = str((one.info.get("data") or {}).get("data") or "held out")
    return {"step": step, "label": one.label, "tasks": one.info["task_set"], "data": played, **_share(scored, _right)}


def _common_end(one: Sequence[str], other: Sequence[str]) -> int:
    """Equal last parts of two paths."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
