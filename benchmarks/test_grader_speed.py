"""How long one grade takes: `python -m pytest benchmarks/test_grader_speed.py`.

Target on one core: median under 300 microseconds and p99 under 3 ms for answers up to 500 characters. The quantiles of
single calls are printed beside pytest-benchmark's own table, which shows a whole pass over the answers.
"""

from __future__ import annotations

import time
from pathlib import Path

from eval.grader_report import read_lines
from rewards.currency import grade

ROWS = [
    row
    for row in read_lines(Path(__file__).parents[1] / "tests" / "data" / "grader_variations.jsonl")
    if len(row["answer"]) <= 500
]


def one_pass() -> list[float]:
    """Grade every answer once; seconds of CPU time a call."""
    taken = []
    for row in ROWS:
        start = time.process_time()
        grade(row["answer"], row["gold"], row["stale"], question=row["question"], abstain=row["abstain"])
        taken.append(time.process_time() - start)
    return taken


def test_grade_answers_up_to_500_characters(benchmark) -> None:
    one_pass()  # golds and questions are read once per process
    benchmark.pedantic(one_pass, rounds=5, iterations=1)
    taken = sorted(one_pass() + one_pass() + one_pass())
    median, p99 = taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
    benchmark.extra_info.update(median_us=round(median * 1e6, 1), p99_us=round(p99 * 1e6, 1), answers=len(ROWS))
    print(f"\none grade: median {median * 1e6:.0f} us, p99 {p99 * 1e6:.0f} us over {len(ROWS)} answers")
