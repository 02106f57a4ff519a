"""LAFS equals the published numbers; error causes are told apart."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.lafs import T_MAX, T_MIN, Point, frontier, gain, lafs, published, reference, run, summary
from eval.lme_errors import Answered, Cause, analyse, cause, evidence_recall, of_row, render
from eval.lme_metrics import join, overview
from rewards.errors import UserError
from tests.conftest import SHARED

TOLERANCE = 1e-9


@pytest.fixture(scope="module")
def parity() -> dict[str, Any]:
    file = SHARED / "parity" / "lme_v2.json"
    if not file.is_file():
        pytest.skip("parity numbers are not at ../shared/parity/lme_v2.json")
    return json.loads(file.read_text("utf-8"))


def points_of(text: str) -> list[Point]:
    """The points in the name of a vector ("60@10+73@55")."""
    return [(float(a), float(s)) for a, s in re.findall(r"([\d.]+)@([\d.]+(?:e-\d+)?)", text)]


@pytest.mark.parametrize("tier", ["small", "medium"])
def test_every_lafs_vector(parity: dict[str, Any], tier: str) -> None:
    board = parity["leaderboard"]
    fixed = [system.point for system in reference(tier)]
    assert lafs(fixed) == pytest.approx(board["reference"][tier]["lafs"], abs=TOLERANCE)
    named = {system.point: system.name for system in reference(tier)}
    assert [named[point] for point in frontier(fixed)] == board["reference"][tier]["frontier"]
    for text, expected in board[f"gain_{tier}"].items():
        assert points_of(text), text
        assert gain(points_of(text), tier) == pytest.approx(expected, abs=TOLERANCE), text


def test_every_lafs_vector_of_single_systems(parity: dict[str, Any]) -> None:
    systems = {system.name.split("-")[-1]: system.point for system in reference("small")}
    for text, expected in parity["leaderboard"]["single"].items():
        alone = points_of(text) or ([systems[text.split()[0]]] if text != "empty" else [])
        assert lafs(alone) == pytest.approx(expected, abs=TOLERANCE), text


def test_a_system_without_queries_has_no_latency(parity: dict[str, Any]) -> None:
    assert "must be positive" in parity["leaderboard"]["zero_latency"]
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UserError, match="must be positive"):
            lafs([(50.0, seconds)])


POINTS = st.lists(st.tuples(st.floats(0, 100), st.floats(1e-3, 1e3)), max_size=6)


@given(points=POINTS, more=POINTS)
def test_more_points_never_score_less(points: list[Point], more: list[Point]) -> None:
    assert 0 <= lafs(points) <= 100 + TOLERANCE
    assert lafs(points + more) >= lafs(points) - TOLERANCE
    assert gain(points, "small") >= -TOLERANCE


@given(points=POINTS, seed=st.integers(0, 99))
def test_only_the_frontier_counts_and_order_does_not(points: list[Point], seed: int) -> None:
    mixed = random.Random(seed).sample(points, len(points))
    assert lafs(mixed) == pytest.approx(lafs(points), abs=TOLERANCE)
    assert lafs(frontier(points)) == pytest.approx(lafs(points), abs=TOLERANCE)
    steps = frontier(points)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(steps))


def test_published_points_are_those_of_the_paper() -> None:
    for tier, best in (("small", 74.9), ("medium", 70.1)):
        points = published(tier)
        assert len(points) == 6
        assert len(reference(tier)) == 4
        assert max(point.accuracy for point in points) == best
        assert summary([], tier)["lafs_gain"] == 0
    assert (T_MIN, T_MAX) == (1.0, 200.0)
    with pytest.raises(UserError, match="did you mean 'small'"):
        published("smal")


# --- joined metrics --------------------------------------------------------------------------------------------------


def without_provenance(metrics: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metrics.items() if not key.startswith("combined_from")}


def close(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(close(left[key], right[key]) for key in left)
    return left == (pytest.approx(right, abs=1e-12) if isinstance(right, float) else right)


def test_joined_metrics_equal_the_published_ones(parity: dict[str, Any]) -> None:
    vector = parity["combine"]
    joined = join([vector["A"], vector["B"]])
    expected = without_provenance(vector["result"])
    assert joined.keys() == expected.keys()
    for key in expected:
        assert close(joined[key], expected[key]), key
    assert close(overview(joined), parity["metric_overview"])


def test_metrics_that_lack_a_number_are_refused() -> None:
    with pytest.raises(UserError, match="must be positive"):
        join([{"overall": {"count_all_questions": 0}}])
    with pytest.raises(UserError, match=r"gotchas\.pct_correct is missing"):
        overview(join([{"overall": {"count_all_questions": 3, "overall_full_set": 0.5}}]))
    with pytest.raises(UserError, match="not a number"):
        join([{"overall": {"count_all_questions": 3, "overall_full_set": "0.5"}}])


# --- the command -----------------------------------------------------------------------------------------------------


def test_command_prints_the_gain(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--tier", "small", "--point", "62@15", "--point", "slow=70@150"]) == 0
    text = capsys.readouterr().out
    assert "LAFS gain       +2.106383" in text
    assert "slow: 70.00 at 150.00 s, dominated" in text
    assert run(["--tier", "small", "--point", "62@15", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lafs_gain"] == pytest.approx(2.106382898121801, abs=TOLERANCE)


def test_command_takes_runs_and_draws(
    tmp_path: Path, parity: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    for name in "AB":
        (tmp_path / name).mkdir()
        (tmp_path / name / "aggregated_metrics.json").write_text(json.dumps(parity["combine"][name]))
    file = tmp_path / "figure6.png"
    assert run(["--tier", "medium", "--run", f"mine={tmp_path / 'A'},{tmp_path / 'B'}", "--plot", str(file)]) == 0
    assert "mine: 46.67 at 2.53 s" in capsys.readouterr().out
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--point", "62"], "ACCURACY@SECONDS"),
        (["--point", "x@15"], "ACCURACY@SECONDS"),
        (["--point", "162@15"], "in percent"),
        (["--point", "62@0"], "must be positive"),
        (["--point", "nan@5"], "in percent"),
        (["--run", "mine"], "NAME=WEB,ENTERPRISE"),
        (["--run", "mine=nowhere,nowhere"], "nowhere"),
    ],
)
def test_command_refuses_with_one_line(args: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--tier", "small", *args]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


# --- causes of wrong answers -----------------------------------------------------------------------------------------

SETS = (frozenset({("t1", 2), ("t1", 3)}), frozenset({("t2", 0)}))


def row(key: str, *, kind: str = "static-environment", correct: bool | None = False, **fields: Any) -> Answered:
    seen = frozenset(fields.pop("retrieved", ()))
    return Answered(key, kind, correct, seen, fields.pop("evidence", SETS), **fields)


def test_causes_are_told_apart() -> None:
    rows = {
        Cause.MAJOR_MISS: row("a", retrieved=[("t1", 9)]),
        Cause.MINOR_MISS: row("b", retrieved=[("t1", 2)]),
        Cause.READING: row("c", retrieved=[("t2", 0)]),
        Cause.GOTCHA: row("d", kind="errors-gotchas", retrieved=[("t1", 2), ("t1", 3)]),
        Cause.PREMISE: row("e", kind="procedure-abs", unknown=True),
        Cause.NO_EVIDENCE: row("f", evidence=()),
    }
    extra = [row("g", correct=True), row("h", correct=True, retrieved=[("t2", 0)]), row("i", correct=None)]
    result = analyse([*rows.values(), *extra])
    assert dict(result.causes) == dict.fromkeys(Cause, 1)
    assert (result.scored, result.unscored, result.correct, result.wrong) == (8, 1, 2, 6)
    assert (result.unknown, result.lucky) == (1, 1)
    assert result.recall == pytest.approx((0 + 0.5 + 1 + 1 + 0 + 0 + 1 + 0) / 8)
    assert evidence_recall(rows[Cause.NO_EVIDENCE]) is None
    text = "\n".join(render({"mine": result}))
    assert "1 (12.5%)" in text
    with pytest.raises(ValueError, match="twice"):
        analyse([row("a"), row("a")])


def test_causes_of_a_runs_rows() -> None:
    record = {
        "id": "a",
        "question_type": "procedure",
        "scored": True,
        "correct": True,
        "strict_correct": False,
        "unknown": False,
        "retrieved": [["t1", 2]],
        "evidence_states": [["t1", 2], ["t1", 3]],
    }
    assert cause(of_row(record)) is None
    assert cause(of_row(record, strict=True)) is Cause.MINOR_MISS
    assert cause(of_row(record | {"evidence_states": None, "correct": False})) is Cause.NO_EVIDENCE
    unscored = of_row({"id": "b", "question_type": "procedure", "unscored_reason": "reader: down"})
    assert (unscored.correct, cause(unscored)) == (None, None)
