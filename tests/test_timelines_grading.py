"""Generated golds and superseded values against the grader: what the environment rewards is what the history says."""

from itertools import islice
from typing import Any

import pytest

from generators.timelines import generate, training_set, validation_set
from rewards.currency import grade


def phrasings(record: dict[str, Any]) -> list[str]:
    """The oracle's answer in three forms."""
    gold, asks = record["gold"], record["asks"]
    if record["abstain"]:
        return [record["history"]["oracle_answer"], gold, "That was never mentioned in our conversations."]
    if asks == "yesno":
        return [gold, f"{gold}.", f"{gold}, going by what you told me."]
    if asks == "change":
        verb = "went" if gold.startswith("from") else "was"
        return [gold, f"{gold[0].upper()}{gold[1:]}.", f"It {verb} {gold}."]
    verb = "was" if asks == "previous" else "is"
    return [gold, f"It {verb} {gold}.", f"According to my notes, it {verb} {gold}."]


def misgraded(records: Any) -> list[tuple[str, str, str]]:
    """(episode, answer, verdict) wherever the grader disagrees with the history."""
    out = []
    for record in records:
        about: dict[str, Any] = {"question": record["question"], "abstain": record["abstain"]}
        for answer in (*phrasings(record), record["history"]["oracle_answer"]):
            verdict = grade(answer, record["gold"], record["stale"], **about).verdict
            if verdict != "correct":
                out.append((record["id"], answer, verdict))
        for value in record["stale"]:
            for answer in (value, f"It is {value}." if record["asks"] != "yesno" else f"{value}."):
                verdict = grade(answer, record["gold"], record["stale"], **about).verdict
                if verdict != "stale":
                    out.append((record["id"], answer, verdict))
    return out


def test_training_golds_are_correct_and_superseded_values_stale() -> None:
    assert misgraded(islice(training_set(), 600)) == []


def test_validation_golds_are_correct_and_superseded_values_stale() -> None:
    assert misgraded(validation_set()) == []


@pytest.mark.parametrize("preset", ["hard", "quick", "control", "longmemeval"])
def test_other_presets_grade_as_their_history_says(preset: str) -> None:
    assert misgraded(generate(seed, preset) for seed in range(150)) == []


def test_listing_every_candidate_is_never_correct() -> None:
    for seed in range(200):
        record = generate(seed, "hard")
        if record["asks"] in ("current", "previous") and len(record["history"]["candidates"]) > 1:
            answer = ", ".join(record["history"]["candidates"])
            assert grade(answer, record["gold"], record["stale"], question=record["question"]).verdict != "correct"
