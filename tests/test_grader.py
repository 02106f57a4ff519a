"""The currency grader against labelled cases, real golds and real answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval.grader_report import agreement, by_kind, check_golds, disagreements, grade_case, read_lines, run, stale_forms
from generators.timelines import generate
from rewards.currency import grade, mentions_value
from tests.conftest import SHARED

VARIATIONS = Path(__file__).parent / "data" / "grader_variations.jsonl"
OWN_SUITE = VARIATIONS.with_name("grader_own_suite.jsonl")
CHATTY = VARIATIONS.with_name("grader_fresh_suite.jsonl")
REASONED = VARIATIONS.with_name("grader_reasoned_suite.jsonl")
CASES = SHARED / "cases" / "answers.jsonl"
NEVER_REWARDED = {"hedge_list", "echo_gaming", "digit_boundary", "compound_fragment", "negation_past", "two_entity"}
GAMED = {"reward_hacking", "generated"}


def suite(path: Path) -> list[dict]:
    if not path.is_file():
        pytest.skip(f"no cases at {path}: set SUPERSEDE_SHARED")
    return read_lines(path)


@pytest.mark.parametrize(
    ("path", "verdicts", "rewards"),
    [
        (CASES, 0.99, 0.99),
        (VARIATIONS, 0.99, 0.995),
        (OWN_SUITE, 0.98, 0.99),
        (CHATTY, 0.97, 0.985),
        (REASONED, 0.96, 0.98),
    ],
    ids=["given", "variations", "own suite", "chatty", "reasoned"],
)
def test_labelled_cases(path: Path, verdicts: float, rewards: float) -> None:
    lines = by_kind(suite(path))
    n = sum(line.n for line in lines)
    assert sum(line.verdict for line in lines) >= verdicts * n
    assert sum(line.r_cur for line in lines) >= rewards * n
    assert {line.kind for line in lines} >= NEVER_REWARDED
    assert not [line.kind for line in lines if line.kind in NEVER_REWARDED | GAMED and line.false_positive]


def test_answer_templates_over_generated_questions() -> None:
    """Ways to commit, to deny, to take back and to offer everything, filled with the values of generated questions."""
    templates = read_lines(VARIATIONS.with_name("grader_templates.jsonl"))
    rows = [generate(seed) for seed in range(7000, 7060)]
    rows = [
        r
        for r in rows
        if r["asks"] == "current" and r["stale"] and not r["abstain"] and r["tags"]["person"] == "user"
        if r["gold"] not in ("Yes", "No", "cancelled") and "before" not in r["question"].lower()
    ][:12]
    assert len(rows) == 12
    agreed, paid = 0, []
    for row in rows:
        for t in templates:
            old, older = row["stale"][0], row["stale"][-1]
            answer = t["template"].format(G=row["gold"], S=old, T=older, D=row["sessions"][-1]["date"])
            graded = grade(answer, row["gold"], row["stale"], question=row["question"])
            same = graded.verdict == t["verdict"] or (
                t["verdict"] == "wrong" and graded.verdict in ("hedged", "refused")
            )
            agreed += same
            paid += [answer] if graded.r_cur and t["verdict"] != "correct" else []
    assert not paid
    assert agreed >= 0.96 * len(rows) * len(templates)


def test_rewards_follow_the_verdict() -> None:
    for row in suite(VARIATIONS):
        graded = grade_case(row)
        assert graded.r_cur == (graded.verdict == "correct")
        assert graded.r_stale in (0, -1)
        assert (graded.r_stale == -1) >= (graded.verdict == "stale")
        assert graded.verdict in ("stale", "hedged") or graded.r_stale == 0
        assert graded.explanation


def test_golds_and_stale_forms(oracle_dir: Path) -> None:
    annotated = read_lines(SHARED / "data" / "longmemeval_stale" / "stale_annotations.jsonl")
    found = check_golds(json.loads((oracle_dir / "longmemeval_oracle.json").read_text()), annotated)
    failed = {check: [(x.row, x.answer) for x in bad] for check, (_, bad) in found.items()}
    n, others = found["another row's gold is not correct"]
    assert len(others) <= 0.01 * n
    assert not failed["gold in its own words"]
    assert not failed["gold in a sentence"]
    assert not failed["stale form"]


def test_judged_answers() -> None:
    folder = SHARED / "data" / "longmemeval_judged_answers"
    if not folder.is_dir():
        pytest.skip(f"no judged answers at {folder}: set SUPERSEDE_SHARED")
    rows = [r for r in read_lines(folder / "judged_answers.jsonl.xz") if r["question_type"] == "knowledge-update"]
    stale = stale_forms(SHARED / "data" / "longmemeval_stale")
    found = list(disagreements(rows, stale))
    assert all(note.get("finding") for _, _, note in found), "a disagreement that nobody has read"
    aside = sum(note["finding"] != "we are wrong" for _, _, note in found)
    assert 1 - (len(found) - aside) / (len(rows) - aside) >= 0.95
    assert not any(graded.r_cur for _, graded, _ in found), "accepted what the judge rejects"


def test_the_report_prints_the_given_cases(capsys: pytest.CaptureFixture[str]) -> None:
    suite(CASES)
    assert run(["--cases", str(CASES)]) == 0
    assert "all" in capsys.readouterr().out
    assert run(["--cases", "no-such-file"]) == 2


def test_agreement_counts() -> None:
    found = agreement([(True, True), (True, False), (False, True), (False, False)])
    assert (found.both, found.only_ours, found.only_judge, found.neither, found.share) == (1, 1, 1, 1, 0.5)


@pytest.mark.parametrize(
    ("answer", "gold", "verdict"),
    [
        ("I have 100 of them", "10", "wrong"),
        ("Boston, then Denver, then Austin", "Austin", "hedged"),
        ("You no longer live in Austin", "Austin", "wrong"),
        ("Kiarostami", "Kia", "wrong"),
        ("12 minutes and 50 seconds", "25 minutes and 50 seconds", "wrong"),
        ("four", "4", "correct"),
        ("$1,200", "$1200", "correct"),
        ("four", 4, "correct"),
    ],
)
def test_where_the_published_rule_errs(answer: str, gold: str | int, verdict: str) -> None:
    assert grade(answer, gold).verdict == verdict


def test_an_empty_gold_is_refused() -> None:
    with pytest.raises(ValueError, match="empty gold"):
        grade("anything", "  ")


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("has four cats", "4", True),
        ("has 14 cats", "4", False),
        ("rent is $1,350", "$1350", True),
        ("lives in Zurich", "Zürich", True),
        ("Savanna called", "Ana", False),
        ("used to live in Porto", "Porto", True),
        ("", "Porto", False),
    ],
)
def test_mentions_value(text: str, value: str, found: bool) -> None:
    assert mentions_value(text, value) is found
