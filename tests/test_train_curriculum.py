"""The curriculum's stage is a function of the log."""

from __future__ import annotations

from typing import Any

import pytest

from train.curriculum import stage
from train.local_config import Curriculum

CURRICULUM = Curriculum(presets=("control", "quick", "hard"), advance_at=0.6, min_varied=0.25, window=2)


def rows(*steps: tuple[int, int, int]) -> list[dict[str, Any]]:
    """(stage, correct of 10, varied of 4) a step."""
    return [
        {"stage": s, "rollouts": 10, "verdicts": {"correct": c, "wrong": 10 - c}, "groups": 4, "varied_groups": v}
        for s, c, v in steps
    ]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ([], 0),
        ([(0, 10, 4)], 0),
        ([(0, 6, 4), (0, 5, 4)], 0),
        ([(0, 6, 4), (0, 6, 4)], 1),
        ([(0, 6, 4), (0, 6, 4), (1, 10, 4)], 1),
        ([(2, 9, 4), (2, 9, 4)], 2),
        ([(1, 0, 0), (1, 1, 1)], 0),
        ([(0, 0, 0), (0, 1, 0)], 0),
        ([(1, 1, 1), (1, 1, 1)], 1),
        ([(0, 5, 0), (0, 6, 1)], 1),
    ],
)
def test_stage(log: list[tuple[int, int, int]], expected: int) -> None:
    assert stage(CURRICULUM, rows(*log)) == expected


def test_unscored_rollouts_count_as_neither_right_nor_wrong() -> None:
    mostly_over_window = [row | {"verdicts": {"correct": 3, "stale": 1}} for row in rows((0, 0, 4), (0, 0, 4))]
    assert stage(CURRICULUM, mostly_over_window) == 1
    none_scored = [row | {"verdicts": {}} for row in rows((1, 0, 0), (1, 0, 0))]
    assert stage(CURRICULUM, none_scored) == 0, "what does not fit the window is too hard"
