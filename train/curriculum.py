"""Which preset a GRPO step plays: from easy to hard, moved by what the last steps showed.

The stage is derived from the steps' log alone, so a resumed run (whose log is cut back to its checkpoint) goes on as
an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from train.local_config import Curriculum


def stage(curriculum: Curriculum, rows: Sequence[Mapping[str, Any]]) -> int:
    """The stage of the next step, given the metrics rows of all steps before it.

    Over the last `window` steps at the present stage: one up when at least `advance_at` of the scored rollouts were
    correct, or when fewer than `min_varied` of the groups varied though most rollouts were correct (nothing left to
    learn from); one down when fewer than `min_varied` varied and most were not correct (nothing to learn from yet).
    """
    if not rows:
        return 0
    now = rows[-1]["stage"]
    recent: list[Mapping[str, Any]] = []
    for row in reversed(rows):
        if row["stage"] != now or len(recent) == curriculum.window:
            break
        recent.append(row)
    if len(recent) < curriculum.window:
        return now
    scored = sum(sum(row["verdicts"].values()) for row in recent)  # unscored is not wrong
    correct = sum(row["verdicts"].get("correct", 0) for row in recent) / max(1, scored)
    varied = sum(row["varied_groups"] for row in recent) / sum(row["groups"] for row in recent)
    starved = varied < curriculum.min_varied
    if correct >= curriculum.advance_at or (starved and correct > 0.5):
        return min(now + 1, len(curriculum.presets) - 1)
    return max(now - 1, 0) if starved else now
