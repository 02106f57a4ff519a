"""The arithmetic of GRPO as prime-rl does it, on plain numbers and tensors.

- advantage = reward minus the mean of its group, not divided by the deviation;
- every sampled token of every branch (turn) of a rollout carries the rollout's advantage;
- the loss is summed over tokens and divided by the tokens of the batch, so longer rollouts weigh more;
- a group whose rewards are all equal carries no signal: it is skipped, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

CLIP = 0.2
"""PPO's usual half width of the importance ratio's trust region (arXiv 1707.06347)."""


def advantages(rewards: Sequence[float | None]) -> list[float] | None:
    """Reward minus group mean, or None for a group without variance. An unscored rollout (None) neither counts in
    the mean nor learns (its advantage is 0)."""
    scored = [reward for reward in rewards if reward is not None]
    if len(set(scored)) < 2:
        return None
    mean = sum(scored) / len(scored)
    return [0.0 if reward is None else reward - mean for reward in rewards]


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
