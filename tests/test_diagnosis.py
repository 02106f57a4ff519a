"""Where the fact was lost: one word a rollout, told from its notes."""

from __future__ import annotations

import pytest

from supersede_env.diagnosis import diagnose
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig
from supersede_env.scoring import Outcome, grade_answer
from tests.episodes import record

LONG = "x" * 40


def episode(**changes: object) -> Episode:
    """Three sessions; the second tells the gold, Oslo, which supersedes Rome."""
    return Episode.from_record(record(0, 3, **({"gold": "Oslo", "stale": ["Rome"], "evidence": [[1, 0]]} | changes)))


CASES = [
    (["Rome", "Oslo", "Oslo"], "Oslo", "answered"),
    (["Rome", "Oslo", "Oslo"], "Rome", "misread"),
    (["Rome", "Oslo", "Oslo"], "no idea", "misread"),
    (["Rome", "Oslo", "Rome"], "Rome", "overwritten"),
    (["Rome", "Oslo", ""], "no idea", "overwritten"),
    (["Rome", "Rome", "Rome"], "Rome", "stale"),
    (["Oslo", "Rome", "Rome"], "Rome", "stale"),
    (["Rome", "hm", "hm"], "Paris", "never_written"),
    (["Rome", f"{LONG} Oslo", "Rome"], "Rome", "cut"),
    (["Rome", "x" * 38 + " Oslo", "Rome"], "Rome", "cut"),
    (["Rome", "x" * 39 + " Oslo", "Rome"], "Rome", "cut"),
    (["Rome", f"Oslo {LONG} Oslo", "Rome"], "Rome", "overwritten"),
    ([f"{LONG} Oslo", "Rome", "Rome"], "Rome", "stale"),
    (["Rome", f"<think>Oslo</think>{LONG}", "hm"], "Paris", "never_written"),
]


@pytest.mark.parametrize(("notes", "answer", "expected"), CASES)
def test_one_word(notes: list[str], answer: str, expected: str) -> None:
    rollout = NotesRollout(episode().view, ProtocolConfig(budget=40))
    for reply in (*notes, answer):
        rollout.step(reply)
    outcome = Outcome.from_record(Outcome.of(rollout).to_record())
    assert diagnose(episode(), outcome, grade_answer(episode(), answer).verdict) == expected


@pytest.mark.parametrize(
    "changes", [{"abstain": True, "gold": "You did not mention it."}, {"gold": "Yes", "stale": ["No"]}]
)
def test_what_notes_state_in_other_words_is_unknown(changes: dict[str, object]) -> None:
    rollout = NotesRollout(episode(**changes).view, ProtocolConfig(budget=40))
    for reply in ("a", "b", "c", "Lima"):
        rollout.step(reply)
    assert diagnose(episode(**changes), Outcome.of(rollout), "wrong") == "unknown"


def test_the_full_context_and_runs_saved_before_cut_texts_were_kept() -> None:
    assert diagnose(episode(), Outcome("Rome", (), 0, 0, 1), "stale") == "unknown"
    assert diagnose(episode(), Outcome("Rome", ("Rome", "Rome", "Rome"), 0, 0, 4), "stale") == "stale"
