"""The grader against people's cases, against an LLM judge's labels, and against its own golds.

    python -m eval grader-report                      tables on the shared data, if it is there
    python -m eval grader-report --cases FILE.jsonl   any suite with the same fields
    python -m eval grader-report --disagreements      every row where grader and judge differ, in full

The paper's rule is re-stated here for comparison only (normalised substring, else 60 % of the gold's tokens); nothing
else uses it. Disagreements with the judge are read: `docs/grader_annotations.jsonl` keeps the finding, row by row.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewards.commands import Parser, answered
from rewards.currency import GRADER_VERSION, Grade, grade
from rewards.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
ANNOTATIONS = ROOT / "docs" / "grader_annotations.jsonl"
FINDINGS = ("judge wrong", "gold wrong", "we are wrong")


def shared() -> Path:
    """The folder that holds the data: SUPERSEDE_SHARED, or ../shared beside the repository."""
    return Path(os.environ.get("SUPERSEDE_SHARED", ROOT.parent / "shared"))


def read_lines(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def published_rule(answer: str, gold: str) -> bool:
    """The matcher of the paper's repository, re-stated: the normalised gold inside the normalised answer, else at least
    60 % of the gold's tokens among the answer's."""
    a, g = (re.sub(r"[^\w\s]", " ", text.lower()).split() for text in (answer, gold))
    if " ".join(g) in " ".join(a):
        return True
    return bool(g) and sum(token in set(a) for token in g) / len(g) >= 0.6


# -- people's cases ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KindLine:
    """One line of the table by kind; counts of cases."""

    kind: str
    n: int
    verdict: int
    r_cur: int
    r_stale: int
    false_positive: int
    published_r_cur: int
    published_false_positive: int


def grade_case(row: Mapping[str, Any]) -> Grade:
    return grade(row["answer"], row["gold"], row["stale"], question=row["question"], abstain=row["abstain"])


def wanted_rewards(row: Mapping[str, Any]) -> tuple[int, int]:
    """(r_cur, r_stale) of a labelled case. A hedge that names no superseded value costs nothing."""
    verdict = row["verdict"]
    names_none = verdict == "hedged" and not any(str(s).lower() in row["answer"].lower() for s in row["stale"])
    penal = verdict == "stale" or (verdict == "hedged" and bool(row["stale"]) and not names_none)
    return int(verdict == "correct"), -int(penal)


def by_kind(rows: Sequence[Mapping[str, Any]]) -> list[KindLine]:
    lines = []
    for kind in sorted({row["kind"] for row in rows}):
        c: Counter[str] = Counter()
        for row in (r for r in rows if r["kind"] == kind):
            ours, right = grade_case(row), row["verdict"] == "correct"
            theirs = published_rule(row["answer"], str(row["gold"]))
            c["n"] += 1
            c["verdict"] += ours.verdict == row["verdict"]
            c["r_cur"] += bool(ours.r_cur) == right
            c["r_stale"] += ours.r_stale == wanted_rewards(row)[1] or (ours.verdict == row["verdict"] == "hedged")
            c["fp"] += bool(ours.r_cur) and not right
            c["theirs"] += theirs == right
            c["theirs_fp"] += theirs and not right
        lines.append(
            KindLine(kind, c["n"], c["verdict"], c["r_cur"], c["r_stale"], c["fp"], c["theirs"], c["theirs_fp"])
        )
    return lines


def print_cases(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    lines = by_kind(rows)
    total = [sum(getattr(line, f) for line in lines) for f in KindLine.__dataclass_fields__ if f != "kind"]
    lines.append(KindLine("all", *total))
    print(f"\n{name}: {len(rows)} cases, grader {GRADER_VERSION}")
    print(
        f"{'kind':<22} {'n':>4} {'verdict':>8} {'r_cur':>7} {'r_stale':>8} {'FP':>4}   published: "
        f"{'r_cur':>7} {'FP':>4}"
    )
    for x in lines:
        print(
            f"{x.kind:<22} {x.n:>4} {x.verdict / x.n:>8.1%} {x.r_cur / x.n:>7.1%} {x.r_stale / x.n:>8.1%} "
            f"{x.false_positive:>4}   {'':>10} {x.published_r_cur / x.n:>7.1%} {x.published_false_positive:>4}"
        )
    for row in rows:
        ours = grade_case(row)
        if ours.verdict != row["verdict"]:
            print(f"  {row['id']}: labelled {row['verdict']}, graded {ours.verdict}: {ours.explanation[:140]}")


# -- the judge's labels ------------------------------------------------------------------------------------------------


def row_hash(row: Mapping[str, Any]) -> str:
    """A row's name in the annotations: first 12 hex digits of sha256 over question id, judge and answer."""
    key = f"{row['question_id']}\n{row['judge']}\n{row['hypothesis']}"
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def grade_judged(row: Mapping[str, Any], stale: Mapping[str, Sequence[str]]) -> Grade:
    return grade(
        row["hypothesis"],
        row["gold"],
        stale.get(row["question_id"], ()),
        question=row["question"],
        abstain=row["is_abstention"],
    )


def stale_forms(folder: Path) -> dict[str, list[str]]:
    return {row["question_id"]: row["stale"] for row in read_lines(folder / "stale_annotations.jsonl")}


def annotations() -> dict[str, dict[str, str]]:
    """row hash -> {finding, note}: what a person found on reading a disagreement."""
    return {row["hash"]: row for row in read_lines(ANNOTATIONS)} if ANNOTATIONS.is_file() else {}


@dataclass(frozen=True)
class Agreement:
    n: int
    both: int
    neither: int
    only_ours: int
    only_judge: int

    @property
    def share(self) -> float:
        return (self.both + self.neither) / self.n if self.n else 0.0

    def line(self, name: str) -> str:
        precision = self.both / max(1, self.both + self.only_ours)
        recall = self.both / max(1, self.both + self.only_judge)
        return (
            f"{name:<34} n {self.n:>4}  agreement {self.share:.1%}  precision {precision:.1%}  recall {recall:.1%}"
            f"  (ours only {self.only_ours}, judge only {self.only_judge})"
        )


def agreement(pairs: Sequence[tuple[bool, bool]]) -> Agreement:
    """Pairs are (ours says correct, the judge says correct)."""
    c = Counter(pairs)
    return Agreement(len(pairs), c[True, True], c[False, False], c[True, False], c[False, True])


def disagreements(
    rows: Sequence[Mapping[str, Any]], stale: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Mapping[str, Any], Grade, dict[str, str]]]:
    notes = annotations()
    for row in rows:
        ours = grade_judged(row, stale)
        if bool(ours.r_cur) != row["label"]:
            yield row, ours, notes.get(row_hash(row), {})


def print_judged(rows: Sequence[Mapping[str, Any]], stale: Mapping[str, Sequence[str]], *, full: bool) -> None:
    print("\nAgainst an LLM judge, LongMemEval knowledge-update (labels are judgements, not truth)")
    ours = [(bool(grade_judged(row, stale).r_cur), row["label"]) for row in rows]
    theirs = [(published_rule(row["hypothesis"], str(row["gold"])), row["label"]) for row in rows]
    print(agreement(theirs).line("published rule, every row"))
    print(agreement(ours).line("this grader, every row"))
    found = list(disagreements(rows, stale))
    aside = {row_hash(row) for row, _, note in found if note.get("finding") in ("judge wrong", "gold wrong")}
    kept = [pair for row, pair in zip(rows, ours, strict=True) if row_hash(row) not in aside]
    print(agreement(kept).line("this grader, wrong labels aside"))
    counts = Counter(note.get("finding", "not read yet") for _, _, note in found)
    print("disagreements: " + (", ".join(f"{name} {n}" for name, n in counts.items()) or "none"))
    for row, graded, note in found:
        print(
            f"  {row_hash(row)} {row['question_id']}: judge {row['label']}, ours {graded.verdict}; "
            f"{note.get('finding', 'NOT READ')}: {note.get('note', '')}"
        )
        if full:
            print(f"    question: {row['question']}\n    gold: {row['gold']}\n    why: {graded.explanation}")
            print("    answer: " + row["hypothesis"].replace("\n", "\n            "))


# -- golds and stale forms ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exception_:
    """A gold or stale form that is not graded as it should be."""

    row: str
    check: str
    answer: str
    graded: str


def check_golds(
    rows: Sequence[Mapping[str, Any]], annotated: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[int, list[Exception_]]]:
    """check -> (how many were made, those that failed)."""
    found: dict[str, tuple[int, list[Exception_]]] = {}

    def record(check: str, row: str, answer: str, graded: Grade, ok: bool) -> None:
        n, bad = found.setdefault(check, (0, []))
        if not ok:
            bad.append(Exception_(row, check, answer, graded.verdict))
        found[check] = (n + 1, bad)

    by_id = {row["question_id"]: row for row in rows}
    for i, row in enumerate(rows):
        abstain, gold = row["question_id"].endswith("_abs"), str(row["answer"])
        for check, answer in (("gold in its own words", gold), ("gold in a sentence", f"I think it is {gold}.")):
            graded = grade(answer, gold, question=row["question"], abstain=abstain)
            record(check, row["question_id"], answer, graded, graded.verdict == "correct")
        if abstain:
            continue
        for step in (1, 7, 50, 133):
            other = str(rows[(i + step) % len(rows)]["answer"])
            if other.strip().casefold() != gold.strip().casefold():
                graded = grade(other, gold, question=row["question"])
                record("another row's gold is not correct", row["question_id"], other, graded, not graded.r_cur)
    for note in annotated:
        row = by_id[note["question_id"]]
        for form in note["stale"]:
            graded = grade(form, row["answer"], note["stale"], question=row["question"])
            record("stale form", row["question_id"], form, graded, graded.verdict == "stale")
    return found


EXAMPLE = """examples:
  python -m eval grader-report
  python -m eval grader-report --disagreements
  python -m eval grader-report --cases answers.jsonl"""


def print_golds(found: Mapping[str, tuple[int, list[Exception_]]]) -> None:
    print("\nGolds of the 500 oracle rows, and the annotated stale forms")
    for check, (n, bad) in found.items():
        print(f"{check:<36} {n - len(bad)} of {n}")
        for x in bad:
            print(f"  {x.row}: {x.answer[:90]!r} graded {x.graded}")


def run(args: list[str]) -> int:
    """Entry of ``python -m eval grader-report``. 0: printed; 2: the data is not there."""
    parser = Parser("python -m eval grader-report", __doc__ or "", EXAMPLE)
    parser.add_argument("--cases", type=Path, help="a suite of labelled cases (default: the shared one)")
    parser.add_argument("--disagreements", action="store_true", help="print every disagreement with the judge in full")
    options = parser.read(args)
    return answered("grader-report", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    data = shared()
    cases = options.cases or data / "cases" / "answers.jsonl"
    if not cases.is_file():
        raise UserError(
            f"no cases at {cases}; set SUPERSEDE_SHARED, or give --cases tests/data/grader_fresh_suite.jsonl"
        )
    print_cases(cases.name, read_lines(cases))
    if options.cases:
        return 0
    judged = data / "data" / "longmemeval_judged_answers" / "judged_answers.jsonl.xz"
    notes = data / "data" / "longmemeval_stale"
    oracle = data / "data" / "longmemeval_oracle" / "longmemeval_oracle.json"
    if judged.is_file() and notes.is_dir():
        rows = [row for row in read_lines(judged) if row["question_type"] == "knowledge-update"]
        print_judged(rows, stale_forms(notes), full=options.disagreements)
    if oracle.is_file() and notes.is_dir():
        rows = json.loads(oracle.read_text(encoding="utf-8"))
        print_golds(check_golds(rows, read_lines(notes / "stale_annotations.jsonl")))
    return 0
