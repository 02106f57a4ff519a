"""No policy that only counts and places mentions may solve the episodes that are meant to teach."""

import pytest

from eval.shortcuts import POLICIES, UNBOUND, Case, Mention, score, table


@pytest.mark.parametrize(
    ("preset", "ceilings"),
    [("curriculum", {"current": 0.45, "previous": 0.45}), ("hard", {"current": 0.30, "previous": 0.45})],
)
def test_no_shortcut_passes_its_ceiling(preset: str, ceilings: dict[str, float]) -> None:
    kinds = tuple(ceilings)
    rows = table(preset, 1500, kinds)
    best = {kind: max((row[kind], name) for name, row in rows.items() if name not in ("n", *UNBOUND)) for kind in kinds}
    assert all(best[kind][0] <= ceilings[kind] for kind in kinds), best
    assert all(rows["n"][kind] > 150 for kind in kinds)


def test_the_control_stays_solvable_by_the_last_mention() -> None:
    rows = table("control", 600, ("current",))
    assert rows["last"]["current"] >= 0.95
    assert rows["first"]["current"] < 0.05


def test_policies_answer_as_named() -> None:
    said = [("A", 0), ("B", 1), ("B", 2), ("C", 3)]
    mentions = tuple(Mention(v, s, f"I moved to {v}" if v == "B" else f"The weather in {v}") for v, s in said)
    case = Case("Where did I move to?", "current", mentions, tuple(m.sentence for m in mentions), 5, "C", "")
    got = {name: policy(case) for name, policy in POLICIES.items()}
    assert got["last"] == got["last session"] == {"C": 1.0}
    assert got["first"] == {"A": 1.0}
    assert got["second"] == got["most frequent"] == got["neither first nor last"] == {"B": 1.0}
    assert got["second to last"] == got["regex now/moved/update"] == got["BM25"] == {"B": 1.0}
    assert got["least frequent"] == {"A": 0.5, "C": 0.5}
    assert score(case, got["least frequent"]) == 0.5
