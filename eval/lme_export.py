"""A run in the layout that the published LongMemEval-V2 leaderboard scripts read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.lme_rows import LmeRun
from lme_v2_env.dataset import Dataset


def export(folder: Path, info: LmeRun, dataset: Dataset, rows: Sequence[Mapping[str, Any]]) -> None:
    pass
