"""Generated timelines beside LongMemEval's 78 knowledge-update rows: length, turns, and how updates are told.

    python -m eval.timelines_report --shared ../shared

An update counts as implicit when the sentence that tells it has no word of change or of the present in it; the same
test is applied to the annotated quotes of the real rows and to the evidence sentences of the generated ones.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

from generators.timelines import generate
from rewards.commands import Parser, answered

CHANGE = re.compile(
    r"\b(now|nowadays|currently|current|these days|moved|moving|update|updated|chang\w+|switch\w*|start\w*|recently|"
    r"just|finally|since|again|anymore|no longer|official|ended up|went (?:back )?to|relocated|so far|already|"
    r"forget the earlier|correction|misspoke|mistake|got|this week|up to)\b",
    re.I,
)
PRESETS = ("control", "quick", "curriculum", "hard", "longmemeval")


def quantiles(values: Iterable[int]) -> str:
    """5th, 50th and 95th percentile."""
    data = sorted(values)
    return " / ".join(str(data[int(q * (len(data) - 1))]) for q in (0.05, 0.5, 0.95))


def shape(sessions: list[list[dict[str, Any]]]) -> dict[str, str]:
    """Turns and words of a list of sessions (each a list of turns)."""
    words = {
        role: [len(t["content"].split()) for s in sessions for t in s if t["role"] == role]
        for role in ("user", "assistant")
    }
    return {
        "turns a session, mean": f"{mean(len(s) for s in sessions):.1f}",
        "turns a session, 5/50/95 %": quantiles(len(s) for s in sessions),
        "words a session, mean": f"{mean(sum(len(t['content'].split()) for t in s) for s in sessions):.0f}",
        "words a session, 5/50/95 %": quantiles(sum(len(t["content"].split()) for t in s) for s in sessions),
        "words a user turn, mean": f"{mean(words['user']):.1f}",
        "words a user turn, 5/50/95 %": quantiles(words["user"]),
        "words an assistant turn, mean": f"{mean(words['assistant']):.0f}",
        "words an assistant turn, 5/50/95 %": quantiles(words["assistant"]),
    }


def _implicit(sentences: list[str]) -> str:
    share = sum(not CHANGE.search(s) for s in sentences) / len(sentences)
    return f"{100 * share:.0f} % of {len(sentences)}"


def generated(preset: str, episodes: int) -> dict[str, str]:
    records = [generate(seed, preset) for seed in range(episodes)]
    out = {"rows": str(len(records)), "sessions a row, mean": f"{mean(len(r['sessions']) for r in records):.1f}"}
    out |= shape([s["turns"] for r in records for s in r["sessions"]])
    updates = [
        e
        for r in records
        for e in r["history"]["events"]
        if e["asked_slot"] and e["session"] is not None and e["kind"] in ("change", "correct", "revert", "increment")
    ]
    out["updates told without a word of change"] = _implicit([e["text"] for e in updates])
    told_so = sum(e["style"] == "implicit" for e in updates) / len(updates)
    out["updates labelled implicit"] = f"{100 * told_so:.0f} %"
    return out


def real(shared: Path) -> dict[str, str]:
    rows = json.loads((shared / "data/longmemeval_oracle/knowledge_update_78.json").read_text(encoding="utf-8"))
    notes = (shared / "data/longmemeval_stale/stale_annotations.jsonl").read_text(encoding="utf-8").splitlines()
    out = {"rows": str(len(rows)), "sessions a row, mean": f"{mean(len(r['haystack_sessions']) for r in rows):.1f}"}
    out |= shape([s for r in rows for s in r["haystack_sessions"]])
    text = {r["question_id"]: r["haystack_sessions"] for r in rows}
    sentences = []
    for note in map(json.loads, notes):
        # The newer value is `current`, except where the question asks for the previous one.
        quoted = note["stale_evidence" if note["asks"] == "previous" else "current_evidence"]
        if quoted:
            session, turn, quote = quoted
            sentences.append(_sentence(text[note["question_id"]][session][turn]["content"], quote))
    out["updates told without a word of change"] = _implicit(sentences)
    out["updates labelled implicit"] = "not labelled"
    return out


def _sentence(content: str, quote: str) -> str:
    """The whole sentence around a quote."""
    at = content.find(quote)
    start = max(content.rfind(mark, 0, at) for mark in (". ", "! ", "? ", "\n")) + 1
    ends = [content.find(mark, at + len(quote)) for mark in (". ", "! ", "? ", "\n")]
    end = min([e for e in ends if e >= 0], default=len(content))
    return content[start:end].strip()


EXAMPLE = """example:
  python -m eval.timelines_report --episodes 500"""


def main(argv: list[str] | None = None) -> int:
    p = Parser("python -m eval.timelines_report", __doc__ or "", EXAMPLE)
    p.add_argument("--shared", type=Path, default=Path("../shared"), help="the folder that holds data/")
    p.add_argument("--episodes", type=int, default=500)
    args = p.read(argv)
    return answered("timelines-report", lambda: _run(args), "start it again")


def _run(args: argparse.Namespace) -> int:
    columns: dict[str, dict[str, str]] = {}
    if (args.shared / "data").exists():
        columns["LongMemEval"] = real(args.shared)
    else:
        print(f"(no real rows: {args.shared}/data is not there)")
    columns |= {name: generated(name, args.episodes) for name in PRESETS}
    print("| | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for key in columns[PRESETS[0]]:
        print(f"| {key} | " + " | ".join(column[key] for column in columns.values()) + " |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
