"""From a finished rollout to numbers: one function behind rewards, metrics and evaluation rows.

r = r_cur + stale_weight * r_stale (arXiv 2606.27472, section 3). r_cur = 1 only when the answer commits to the current
value; r_stale = -1 when it asserts a superseded one. Both come from one verdict, so they never contradict each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewards.currency import Grade, grade, mentions_value
from rewards.text import drop_reasoning
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout

LONGEST_TAIL = 1_000
"""Characters kept of what was cut off: enough to see which fact it was, whatever a model writes."""

VERDICTS = ("correct", "stale", "hedged", "wrong", "refused")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rollout left behind; all that scoring needs, JSON-ready, so that a saved run can be scored again.

    `notes` has one entry a session (empty in the full-context condition); `cut_off` the text that the budget cut from
    each, at most `LONGEST_TAIL` characters of it.
    """

    answer: str
    notes: tuple[str, ...]
    overflows: int
    empty_notes: int
    turns: int
    cut_off: tuple[str, ...] = ()

    @classmethod
    def of(cls, rollout: NotesRollout) -> Outcome:
        """The outcome of a finished rollout."""
        if rollout.answer is None:
            raise ValueError("the rollout has no answer yet")
        steps = [step for step in rollout.history if step.kind == "notes"]
        # from the end of what was kept: white space at the cut was dropped, and would glue two words together
        tails = tuple(drop_reasoning(s.reply).strip()[len(s.kept) :][:LONGEST_TAIL] for s in steps)
        notes = tuple(step.kept for step in steps)
        return cls(rollout.answer, notes, rollout.overflows, rollout.empty_notes, len(rollout.history), tails)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Outcome:
        return cls(
            answer=record["answer"],
            notes=tuple(record["notes"]),
            overflows=record["overflows"],
            empty_notes=record["empty_notes"],
            turns=record["turns"],
            cut_off=tuple(record.get("cut_off", ())),  # runs saved before it was kept have none
        )

    def to_record(self) -> dict[str, Any]:
        return {
            "answer": self.answer,
            "notes": list(self.notes),
            "overflows": self.overflows,
            "empty_notes": self.empty_notes,
            "turns": self.turns,
            "cut_off": list(self.cut_off),
        }


def grade_answer(episode: Episode, answer: str) -> Grade:
    """The one call of the grader for an episode's answer."""
    return grade(answer, episode.gold, episode.stale, question=episode.question, abstain=episode.abstain)


def metrics(episode: Episode, outcome: Outcome, verdict: str) -> dict[str, float]:
    """Unweighted metrics of one rollout: verdict indicators, notes statistics, values found in the final notes.

    `gold_in_notes` and `stale_in_notes` look at the final notes only and are 0 in the full-context condition.
    """
    final = outcome.notes[-1] if outcome.notes else ""
    return {
        **{f"is_{name}": float(verdict == name) for name in VERDICTS},
        "notes_chars": float(len(final)),
        "overflows": float(outcome.overflows),
        "empty_notes": float(outcome.empty_notes),
        "turns": float(outcome.turns),
        "gold_in_notes": float(not episode.abstain and mentions_value(final, episode.gold)),
        "stale_in_notes": float(any(mentions_value(final, value) for value in episode.stale)),
    }


def gold_problem(episode: Episode) -> str | None:
    """Why the episode's own gold would not be scored right, or None: what `validate` proves for every task."""
    verdict = grade_answer(episode, episode.gold)
    if verdict.r_cur != 1:
        return f"the gold '{episode.gold}' is graded {verdict.verdict}: {verdict.explanation}"
    for value in episode.stale:
        graded = grade_answer(episode, value)
        if graded.r_cur == 1:
            return f"the superseded value '{value}' is graded correct: {graded.explanation}"
    return None
