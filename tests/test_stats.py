"""Statistics against hand-computed values and properties; `eval compare` through its public entry."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval import compare, table
from eval.stats import (
    mcnemar_corrected,
    mcnemar_exact,
    paired_bootstrap,
    permutation_test,
    wilson,
)


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"),
    [
        (0, 0, 1.0),
        (0, 1, 1.0),  # 2 * 1/2
        (0, 5, 2 / 32),
        (1, 5, 2 * (1 + 6) / 64),
        (3, 3, 1.0),
        (19, 4, 2 * (1 + 23 + 253 + 1771 + 8855) / 2**23),  # the paper's table: 0.0026 where chi2 says 0.0035
    ],
)
def test_exact_mcnemar_by_hand(only_a: int, only_b: int, p: float) -> None:
    assert mcnemar_exact(only_a, only_b) == pytest.approx(p, abs=1e-15)
    assert mcnemar_exact(only_b, only_a) == mcnemar_exact(only_a, only_b)


def test_corrected_mcnemar_is_the_papers() -> None:
    chi2, p = mcnemar_corrected(19, 4)
    assert chi2 == pytest.approx(196 / 23)
    assert round(chi2, 2) == 8.52
    assert round(p, 4) == 0.0035
    assert mcnemar_corrected(0, 0) == (0.0, 1.0)
    assert mcnemar_corrected(5, 5) == (0.0, 1.0)  # the correction must not turn 0 into 1
    assert mcnemar_corrected(10, 0)[1] == pytest.approx(0.004427, abs=1e-6)  # chi2 8.1, table of chi2 with 1 df


def test_exact_mcnemar_is_finite_for_thousands_of_pairs() -> None:
    assert 0 < mcnemar_exact(2000, 2500) < 1e-12


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(5, 10, 0.2366, 0.7634), (0, 10, 0.0, 0.2775), (64, 78, 0.7210, 0.8900), (49, 78, 0.5173, 0.7271)],
)
def test_wilson_by_hand(k: int, n: int, low: float, high: float) -> None:
    interval = wilson(k, n)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@given(st.integers(1, 400), st.data())
def test_wilson_holds_the_proportion_and_mirrors(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    interval, mirror = wilson(k, n), wilson(n - k, n)
    assert 0 <= interval.low <= k / n <= interval.high <= 1
    assert math.isclose(interval.low, 1 - mirror.high, abs_tol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=14))
def test_permutation_of_one_seed_is_the_exact_mcnemar(pairs: list[tuple[bool, bool]]) -> None:
    a, b = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    only_a, only_b = sum(x > y for x, y in pairs), sum(y > x for x, y in pairs)
    assert permutation_test([a], [b]) == pytest.approx(mcnemar_exact(only_a, only_b), abs=1e-12)


def test_permutation_clusters_by_task() -> None:
    one_a, one_b = [0.0] * 6, [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    # Copies of the same seed are no new evidence.
    assert permutation_test([one_a] * 5, [one_b] * 5) == permutation_test([one_a], [one_b]) == 2 / 32


def test_permutation_sampled_agrees_with_exact() -> None:
    a, b = [[0.0] * 20 + [1.0] * 4], [[1.0] * 20 + [0.0] * 4]
    assert permutation_test(a, b) == pytest.approx(mcnemar_exact(4, 20), abs=5e-4)
    assert permutation_test([[0.0] * 40], [[1.0] * 40]) == 1 / 20_001


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40), st.integers(0, 9))
def test_bootstrap_is_seeded_and_swaps_sign(pairs: list[tuple[float, float]], seed: int) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    there = paired_bootstrap(a, b, resamples=200, seed=seed)
    assert there == paired_bootstrap(a, b, resamples=200, seed=seed)
    back = paired_bootstrap(b, a, resamples=200, seed=seed)
    assert back.low == pytest.approx(-there.high, abs=1e-12)
    differences = [y - x for x, y in pairs]
    assert min(differences) - 1e-12 <= there.low <= there.high <= max(differences) + 1e-12


def test_bootstrap_has_the_binomial_width() -> None:
    b = [1.0] * 50 + [0.0] * 50
    interval = paired_bootstrap([0.0] * 100, b, seed=3)
    assert interval.low == pytest.approx(0.402, abs=0.011)  # 0.5 -+ 1.96 * sqrt(0.25 / 100)
    assert interval.high == pytest.approx(0.598, abs=0.011)


# --- python -m eval compare -------------------------------------------------------------------------------------------

RUN: dict[str, Any] = {
    "model": "m",
    "adapter": None,
    "condition": "bounded",
    "data": "oracle",
    "task_set": "abc",
    "grader_version": "1",
    "prompt_hash": "p",
    "code_version": "c",
    "sampling": {"temperature": 0.0},
    "excluded": [["89941a94", "false premise"]],
}


def row(i: int, right: bool, sample: int = 0, **changes: Any) -> dict[str, Any]:
    verdict = "correct" if right else "wrong"
    return {
        "id": f"t{i}",
        "sample": sample,
        "scored": True,
        "unscored_reason": None,
        "r_cur": int(right),
        "r_stale": 0,
        "verdict": verdict,
        "answer": f"answer {i} {verdict}",
        "gold": f"gold {i}",
        "question": f"question {i}?",
    } | changes


def unscored(i: int, sample: int = 0) -> dict[str, Any]:
    blank = {"scored": False, "unscored_reason": "over window", "r_cur": None, "r_stale": None, "verdict": None}
    return row(i, False, sample, answer=None, **blank)


Writer = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    def writer(name: str, rows: list[dict[str, Any]], **changes: Any) -> str:
        folder = tmp_path / name
        folder.mkdir()
        run = RUN | {"n": len({r["id"] for r in rows})} | changes
        (folder / "run.json").write_text(json.dumps(run))
        (folder / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        return str(folder)

    return writer


def paper(write: Writer) -> tuple[str, str]:
    """The paper's table: 64 and 49 of 78 right, 19 against 4 discordant."""
    a = [row(i, i < 64) for i in range(78)]
    b = [row(i, i < 45 or 64 <= i < 68) for i in range(78)]
    return write("full", a, condition="full"), write("bounded", b)


def test_compare_reproduces_the_papers_table(write: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    full, bounded = paper(write)
    assert compare.run([full, bounded, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["n"], result["only_a"], result["only_b"]) == (78, 19, 4)
    assert result["a"]["accuracy"] == pytest.approx(64 / 78)
    assert result["b"]["accuracy"] == pytest.approx(49 / 78)
    assert round(result["mcnemar_exact_p"], 4) == 0.0026
    assert (round(result["mcnemar_chi2"], 2), round(result["mcnemar_chi2_p"], 4)) == (8.52, 0.0035)
    assert result["difference"] == pytest.approx(-15 / 78)
    assert result["difference_low"] < -15 / 78 < result["difference_high"] < 0
    assert result["verdict"] == "worse"
    assert result["differs_in"] == ["condition"]
    assert len(result["discordant"]) == 23

    assert compare.run([full, bounded]) == 0
    text = capsys.readouterr().out
    for part in ("n = 78", "82.1 %", "[72.1, 89.0]", "62.8 %", "p = 0.0026", "8.52", "p = 0.0035", "19", "t45"):
        assert part in text
    assert "89941a94" in text
    assert "answer 45 correct" in text
    assert "answer 45 wrong" in text
    assert "gold 45" in text


@pytest.mark.parametrize(
    ("gains", "losses", "verdict"),
    # 5 to 0 gives p = 0.0625: a rise of 5 in 20 that may not be called an improvement; 6 to 0 gives 0.03125.
    [(5, 0, "no difference shown"), (6, 0, "improved"), (0, 6, "worse"), (0, 0, "no difference shown")],
)
def test_improved_only_when_the_exact_test_says_so(
    write: Writer, capsys: pytest.CaptureFixture[str], gains: int, losses: int, verdict: str
) -> None:
    a = [row(i, i >= gains) for i in range(20)]
    b = [row(i, i < 20 - losses) for i in range(20)]
    runs = [write("a", a), write("b", b)]
    assert compare.run(runs) == 0
    text = capsys.readouterr().out.partition("n = ")[2]  # without the runs' names, which hold this test's
    assert ("improved" in text) == (verdict == "improved")
    compare.run([*runs, "--json"])
    assert json.loads(capsys.readouterr().out)["verdict"] == verdict


def test_repeats_average_for_the_bootstrap_and_first_for_mcnemar(
    write: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    a = [row(i, False, s) for i in range(4) for s in range(2)]
    b = [row(i, s == 1, s) for i in range(4) for s in range(2)]
    runs = [write("a", a), write("b", b)]
    compare.run([*runs, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert result["b"]["accuracy"] == 0.5
    assert result["difference_low"] == result["difference_high"] == 0.5
    assert (result["only_a"], result["only_b"]) == (0, 0)
    compare.run(runs)
    assert "first sample" in capsys.readouterr().out


def test_stale_and_hedge_rates(write: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    a = [row(0, False, verdict="stale", r_stale=-1), row(1, False, verdict="hedged", r_stale=-1), row(2, True)]
    compare.run([write("a", a), write("b", [row(i, True) for i in range(3)]), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert result["a"]["stale_rate"] == pytest.approx(1 / 3)  # a hedge that names a superseded value is a hedge
    assert result["a"]["hedge_rate"] == pytest.approx(1 / 3)
    assert result["b"]["stale_rate"] == result["b"]["hedge_rate"] == 0


def test_unscored_rows_leave_the_pair_and_are_named(write: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    a = [row(i, True) for i in range(100)]
    b = [unscored(i) if i < 2 else row(i, i != 2) for i in range(100)]
    runs = [write("a", a), write("b", b)]
    assert compare.run([*runs, "--json"]) == 0  # 2 of 100 is the limit, not above it
    result = json.loads(capsys.readouterr().out)
    assert result["n"] == 98
    assert result["only_a"] == 1
    assert result["b"]["unscored"] == [["t0", 0, "over window"], ["t1", 0, "over window"]]
    compare.run(runs)
    assert "t1" in capsys.readouterr().out


def test_above_two_percent_unscored_is_invalid(write: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    a = [row(i, False) for i in range(100)]
    b = [unscored(i) if i < 3 else row(i, True) for i in range(100)]
    runs = [write("a", a), write("b", b)]
    assert compare.run(runs) == 3
    text = capsys.readouterr().out
    assert "INVALID" in text
    assert "improved" not in text
    assert compare.run([*runs, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["verdict"] == "INVALID"


def test_nothing_scored_is_invalid_not_a_crash(write: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [write("a", [unscored(0)]), write("b", [row(0, True)])]
    assert compare.run(runs) == 3
    assert "INVALID" in capsys.readouterr().out


GOOD = [row(i, True) for i in range(3)]


@pytest.mark.parametrize(
    ("rows", "changes", "part"),
    [
        (GOOD, {"grader_version": "2"}, "grader_version"),
        (GOOD, {"task_set": "other"}, "task_set"),
        ([*GOOD, GOOD[0]], {}, "twice"),
        (GOOD[:2], {"n": 3}, "2 of 3 tasks"),
        ([*GOOD, row(0, True, 1)], {}, "sample"),
        ([*GOOD[:2], row(9, True)], {}, "t2"),
        ([{**GOOD[0], "r_cur": 0.5}, *GOOD[1:]], {}, "r_cur"),
        ([{k: v for k, v in GOOD[0].items() if k != "verdict"}, *GOOD[1:]], {}, "verdict"),
        (GOOD, {"grader_version": None}, "grader_version"),
        (GOOD, {"samples": "two"}, "'samples' is 'two'"),
        (GOOD, {"excluded": [3]}, "'excluded'"),
        ([GOOD[0] | {"id": 7}, *GOOD[1:]], {}, "'id' is 7"),
    ],
)
def test_refused_in_one_line(
    write: Writer, capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]], changes: dict[str, Any], part: str
) -> None:
    assert compare.run([write("a", GOOD), write("b", rows, **changes)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert part in captured.err


METRICS = {"is_stale": 0.0, "is_hedged": 0.0, "is_wrong": 0.0, "is_refused": 0.0, "gold_in_notes": 1.0}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({}, ""),
        ({"metrics": None}, "'metrics' holds no number 'gold_in_notes'"),
        ({"metrics": METRICS | {"is_stale": "0"}}, "'metrics' holds no number 'is_stale'"),
        ({"metrics": METRICS | {"turns": 1.0}}, "task 't2': 'metrics' holds no number 'turns'"),
        ({"tags": {"sessions_after_update": "1"}}, "'tags' holds no number"),
        ({"tags": [1]}, "'tags' holds no number"),
    ],
)
def test_the_table_refuses_tampered_rows_in_one_line(
    write: Writer, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], part: str
) -> None:
    rows = [one | {"metrics": METRICS, "tags": {"sessions_after_update": 1}} for one in GOOD]
    assert table.run([write("a", [rows[0], rows[1] | changes, rows[2]])]) == (2 if part else 0)
    captured = capsys.readouterr()
    assert part in captured.err
    assert captured.err.count("\n") == bool(part)


@pytest.mark.parametrize("damage", ["no rows", "no run", "cut", "cut at line", "list", "not utf-8", "no folder"])
def test_damaged_files_are_refused_in_one_line(write: Writer, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    a, b = write("a", GOOD), write("b", GOOD)
    rows, run = Path(b, "rows.jsonl"), Path(b, "run.json")
    if damage == "no rows":
        rows.unlink()
    elif damage == "no run":
        run.unlink()
    elif damage == "cut":
        rows.write_bytes(rows.read_bytes()[:-20])
    elif damage == "cut at line":
        rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
    elif damage == "list":
        run.write_text("[]")
    elif damage == "not utf-8":
        rows.write_bytes(b"\xff\xfe" + rows.read_bytes())
    else:
        b += "-missing"
    assert compare.run([a, b]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_line_separators_inside_an_answer_are_no_line_ends(write: Writer) -> None:
    a, b = write("a", GOOD), write("b", GOOD)
    rows = [json.dumps({**r, "answer": "two\u2028lines"}, ensure_ascii=False) + "\n" for r in GOOD]
    Path(b, "rows.jsonl").write_text("".join(rows), "utf-8")
    assert compare.run([a, b]) == 0


def test_the_table_refuses_a_run_that_is_given_twice(write: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write("a", [])
    assert table.run([folder, folder]) == 2
    assert "is given twice" in capsys.readouterr().err


def test_seeded_output_is_repeatable(write: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    runs = [write(name, [row(i, bool(rng.random() < 0.5)) for i in range(40)]) for name in "ab"]
    texts = []
    for _ in range(2):
        compare.run(runs)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
