"""The arithmetic of GRPO as prime-rl does it, on plain numbers and tensors, with the variants that people ask for.

- advantage = reward minus the mean of its group; not divided by the deviation (prime-rl's default; arXiv 2503.20783
  gives the reason), unless `normalisation` says so;
- every sampled token of every branch (turn) of a rollout carries the rollout's advantage, plus, with `turn_weight`,
  the turn's own credit minus the group's mean credit at that turn;
- the loss is summed over tokens and divided by the tokens of the batch, so longer rollouts weigh more;
- a group in which nothing varies carries no signal: it is skipped, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

CLIP = 0.2
"""PPO's usual half width of the importance ratio's trust region (arXiv 1707.06347)."""

Normalisation = Literal["none", "std", "mean"]
"""`none`: prime-rl's default. `std`: the group's deviation (GRPO, arXiv 2402.03300). `mean`: the group's mean reward
(MaxRL, arXiv 2602.02710; derived for rewards of 0 and 1 only)."""


def advantages(rewards: Sequence[float | None], normalisation: Normalisation = "none") -> list[float] | None:
    """Reward minus group mean, or None for a group without variance. An unscored rollout (None) neither counts in
    the mean nor learns (its advantage is 0)."""
    scored = [reward for reward in rewards if reward is not None]
    if len(set(scored)) < 2:
        return None
    mean = sum(scored) / len(scored)
    scale = {
        "none": 1.0,
        "std": math.sqrt(sum((reward - mean) ** 2 for reward in scored) / len(scored)),
        "mean": mean,  # above 0: rewards are 0 and 1, and they vary
    }[normalisation]
    return [0.0 if reward is None else (reward - mean) / scale for reward in rewards]


def turn_advantages(
    rewards: Sequence[float | None],
    credits: Sequence[Sequence[float | None]],
    turns: Sequence[int],
    normalisation: Normalisation = "none",
    turn_weight: float = 0.0,
) -> list[list[float]] | None:
    """The advantage of each turn of each rollout of a group, or None when all are 0.

    `turns[i]` is the number of turns of rollout i, `credits[i]` has one entry a turn or is empty. The credit of turn t
    is compared with the group's mean at turn t, so that a turn is judged beside others at the same place; a turn
    without credit, and an unscored rollout, get none. (Turn-level credit: arXiv 2505.11821.)
    """
    base = advantages(rewards, normalisation) or [0.0] * len(rewards)
    result = [[advantage] * count for advantage, count in zip(base, turns, strict=True)]
    for turn in range(max(turns, default=0) if turn_weight else 0):
        here = {
            i: credit
            for i, row in enumerate(credits)
            if rewards[i] is not None and turn < len(row) and (credit := row[turn]) is not None
        }
        if len(set(here.values())) < 2:  # the mean of equal credits may differ from them by rounding
            continue
        mean = sum(here.values()) / len(here)
        for i, credit in here.items():
            result[i][turn] += turn_weight * (credit - mean)
    return result if any(any(row) for row in result) else None


def policy_loss(logprobs: Tensor, advantages: Tensor, sampled: Tensor | None = None, clip: float = CLIP) -> Tensor:
    """The loss summed over tokens; all arguments have one entry a token.

    With `sampled`, the log-probabilities that the tokens were drawn with, the importance ratio is clipped as in PPO:
    needed from the second update on the same rollouts. Without it the ratio is 1 and its gradient the policy
    gradient's: right for one update on fresh rollouts.
    """
    if sampled is None:
        return -(torch.exp(logprobs - logprobs.detach()) * advantages).sum()
    ratio = torch.exp(logprobs - sampled)
    clipped = ratio.clamp(1 - clip, 1 + clip)
    return -torch.minimum(ratio * advantages, clipped * advantages).sum()


def kl_to_base(logprobs: Tensor, base: Tensor) -> Tensor:
    """KL(policy || base) summed over sampled tokens, by GRPO's estimator (arXiv 2402.03300, equation 4): exp(d) - d - 1
    with d = base - policy. Never negative, unbiased for tokens drawn from the policy."""
    difference = base - logprobs
    return (torch.exp(difference) - difference - 1).sum()
