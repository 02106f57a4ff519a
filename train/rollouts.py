"""Play tasks with the local policy, in lock-step over the environment's own protocol objects, and grade them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from train.grpo import Normalisation, turn_advantages
from train.policy import Completion, LocalPolicy
from train.tasks import Play, Result

AT_ONCE = 32
"""Rollouts that are read and graded at once."""


@dataclass(frozen=True, slots=True)
class Played:
    """One rollout: a completion a turn, and what it came to."""

    turns: tuple[Completion, ...]
    result: Result

    def to_record(self) -> dict[str, Any]:
        """The JSON-ready row that the trainer logs."""
        return self.result.record | {"tokens": [len(turn.token_ids) for turn in self.turns]}


def play(policy: LocalPolicy, plays: Sequence[Play], *, temperature: float, seed: str) -> list[Played]:
    """Drive the rollouts to their end. A prompt over the window gives its rollout up. `seed` names the random
    streams."""
    turns: list[list[Completion]] = [[] for _ in plays]
    active = [i for i, one in enumerate(plays) if not one.done]
    turn = 0
    while active:
        prompts = {i: plays[i].prompt() for i in active}
        allowed = {i: plays[i].max_new_tokens for i in active}
        active = [i for i in active if policy.fits(prompts[i], allowed[i])]
        completions = policy.generate(
            [prompts[i] for i in active],
            [allowed[i] for i in active],
            temperature=temperature,
            seed=derive(f"{seed}:{turn}"),
        )
        for i, completion in zip(active, completions, strict=True):
            turns[i].append(completion)
            plays[i].step(completion.text)
        active = [i for i in active if not plays[i].done]
        turn += 1
    pool = ThreadPoolExecutor(AT_ONCE)  # a remote reader is waited for by all rollouts at once
    try:
        results = list(pool.map(lambda one: one.result(), plays))
    finally:  # without waiting: on Ctrl-C a request may hang
        pool.shutdown(wait=False, cancel_futures=True)
    return [Played(tuple(made), result) for result, made in zip(results, turns, strict=True)]


def derive(name: str) -> int:
    """A 63-bit seed from a name, so that no random state needs to be saved to resume a run."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def group_advantages(
    group: Sequence[Played], normalisation: Normalisation, turn_weight: float
) -> list[list[float]] | None:
    """`turn_advantages` of a group of rollouts. A reply that the token limit cut earns no credit above 0: otherwise
    replies grow with turn credit until most are cut, for what is said early in them counts all the same
    (docs/results/README.md)."""
    return turn_advantages(
        [one.result.reward for one in group],
        [_ended_credits(one) for one in group],
        [len(one.turns) for one in group],
        normalisation,
        turn_weight,
    )


def _ended_credits(one: Played) -> list[float | None]:
    # a rollout may have credits for none of its turns
    pairs = zip(one.result.credits, one.turns, strict=False)
    return [credit if credit is None or turn.finished else min(credit, 0.0) for credit, turn in pairs]
