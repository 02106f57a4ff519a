"""Play episodes with the local policy, in lock-step over the environment's own protocol objects, and grade them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewards.currency import Grade
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig
from supersede_env.scoring import Outcome, grade_answer
from train.policy import Completion, LocalPolicy


@dataclass(frozen=True, slots=True)
class Limits:
    """Most new tokens of a notes reply and of the answer."""

    notes: int
    answer: int


@dataclass(frozen=True, slots=True)
class Played:
    """One rollout: a completion a turn. Without outcome and grade it is unscored: a prompt did not fit the window."""

    episode: Episode
    turns: tuple[Completion, ...]
    outcome: Outcome | None
    grade: Grade | None

    def reward(self, stale_weight: float) -> float | None:
        """r_cur + stale_weight * r_stale, or None when unscored."""
        return None if self.grade is None else self.grade.r_cur + stale_weight * self.grade.r_stale

    def to_record(self, stale_weight: float) -> dict[str, Any]:
        """The JSON-ready row that the trainer logs."""
        record: dict[str, Any] = {"id": self.episode.id, "reward": self.reward(stale_weight)}
        if self.outcome is None or self.grade is None:
            return record | {"verdict": None, "unscored_reason": "over window"}
        return record | {
            "verdict": self.grade.verdict,
            "gold": self.episode.gold,
            **self.outcome.to_record(),
            "tokens": [len(turn.token_ids) for turn in self.turns],
        }


def play(
    policy: LocalPolicy,
    episodes: Sequence[Episode],
    protocol: ProtocolConfig,
    limits: Limits,
    *,
    temperature: float,
    seed: str,
) -> list[Played]:
    """One rollout for each entry of `episodes` (repeat an episode for a group). `seed` names the random streams."""
    rollouts = [NotesRollout(episode.view, protocol) for episode in episodes]
    turns: list[list[Completion]] = [[] for _ in rollouts]
    active = list(range(len(rollouts)))
    turn = 0
    while active:
        prompts = {i: rollouts[i].prompt() for i in active}
        allowed = {i: limits.answer if _answers_next(rollouts[i]) else limits.notes for i in active}
        active = [i for i in active if policy.fits(prompts[i], allowed[i])]
        completions = policy.generate(
            [prompts[i] for i in active],
            [allowed[i] for i in active],
            temperature=temperature,
            seed=derive(f"{seed}:{turn}"),
        )
        for i, completion in zip(active, completions, strict=True):
            turns[i].append(completion)
            rollouts[i].step(completion.text)
        active = [i for i in active if not rollouts[i].done]
        turn += 1
    played = []
    for episode, rollout, made in zip(episodes, rollouts, turns, strict=True):
        outcome = Outcome.of(rollout) if rollout.done else None
        grade = grade_answer(episode, outcome.answer) if outcome is not None else None
        played.append(Played(episode, tuple(made), outcome, grade))
    return played


def derive(name: str) -> int:
    """A 63-bit seed from a name, so that no random state needs to be saved to resume a run."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def _answers_next(rollout: NotesRollout) -> bool:
    return len(rollout.history) + 1 == rollout.num_turns
