"""Generated web worlds: how fast they are made, and what the extractive reader makes of the right pages.

`python -m pytest -s benchmarks/test_webworld.py` prints both. Target: 1,000 worlds in two minutes on two cores.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from generators.webworld import Bundle, bundle
from lme_v2_env.extractive import answer
from lme_v2_env.memory.slices import annotated_actions, numbered
from lme_v2_env.trajectory import Trajectory, trajectory_from
from rewards.lme_v2 import grade, needs_judge

WORLDS = 100


@pytest.mark.parametrize("preset", ["easy", "standard", "hard"])
def test_thousand_worlds_take_less_than_two_minutes(preset: str) -> None:
    start = time.process_time()
    made = [bundle(seed, preset) for seed in range(WORLDS)]
    seconds = (time.process_time() - start) / WORLDS
    states = [state for each in made for record in each.trajectories for state in record["states"]]
    lines = sum(state["accessibility_tree"].count("\n") + 1 for state in states)
    chars = sum(len(state["accessibility_tree"]) for state in states)
    questions = sum(len(each.questions) for each in made)
    print(
        f"\n{preset}: {1000 * seconds:.0f} s of CPU time for 1,000 worlds; a world has "
        f"{sum(len(each.trajectories) for each in made) / WORLDS:.0f} trajectories, {len(states) / WORLDS:.0f} states "
        f"of {lines / len(states):.0f} lines ({chars / len(states):.0f} characters), {questions / WORLDS:.1f} questions"
    )
    assert 1000 * seconds < 120


def contexts(made: Bundle, hidden: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The evidence's pages alone, and with what the retrieval memory shows beside them: goal and actions of the run."""
    rows: dict[str, Trajectory] = {row["id"]: trajectory_from(row, "row") for row in made.trajectories}
    pages, shown = [], []
    for name, index in sorted({(point["trajectory_id"], point["state_index"]) for point in hidden["evidence"]}):
        row = rows[name]
        page = f"State {index}\nAddress: {row.states[index].url}\n{row.states[index].tree}"
        pages.append(page)
        actions = numbered(annotated_actions(row.states))
        shown.append(f"Goal of the run: {row.goal}\n\nActions of the run:\n{actions}\n\n{page}")
    return pages, shown


def judge_free(preset: str) -> Iterator[tuple[Bundle, dict[str, Any], dict[str, Any]]]:
    for seed in range(WORLDS):
        made = bundle(seed, preset)
        for row, hidden in zip(made.questions, made.evidence, strict=True):
            if not needs_judge(row["eval_function"]):
                yield made, row, hidden


@pytest.mark.parametrize("preset", ["easy", "standard"])
def test_extractive_reader_with_the_right_pages(preset: str) -> None:
    total, right = Counter(), {"pages": Counter(), "memory": Counter()}
    for made, row, hidden in judge_free(preset):
        template = hidden["template"]
        total[template] += 1
        for way, texts in zip(right, contexts(made, hidden), strict=True):
            response = answer(row["question"], texts)
            verdict = grade(row["eval_function"], response, row["answer"], question=row["question"], strict=True)
            right[way][template] += verdict.correct
    print(f"\n{preset}, {WORLDS} worlds: right with the evidence's pages alone, and as the memory shows them")
    for template in sorted(total):
        shares = "  ".join(f"{way} {100 * hits[template] / total[template]:5.1f} %" for way, hits in right.items())
        print(f"  {template:14} {total[template]:5}  {shares}")
    overall = {way: sum(hits.values()) / sum(total.values()) for way, hits in right.items()}
    print("  all            " + "  ".join(f"{way} {100 * share:5.1f} %" for way, share in overall.items()))
    assert overall["pages"] > (0.97 if preset == "easy" else 0.5)
