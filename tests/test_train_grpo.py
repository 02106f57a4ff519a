"""GRPO's arithmetic: advantages and loss against references written out in float64."""

from __future__ import annotations

import math

import pytest
import torch

from tests.tiny import tiny_policy
from train.grpo import advantages, policy_loss
from train.local_config import LoraSettings
from train.optimizer import MasterAdamW, adapter_parameters, add_adapter

WORDS = [f"w{i}" for i in range(30)]


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([1.0, 0.0, 0.0, -0.5], [0.875, -0.125, -0.125, -0.625]),
        ([1.0, None, 0.0], [0.5, 0.0, -0.5]),
        ([1.0, 1.0, 1.0], None),
        ([0.0, None, 0.0], None),
        ([None, None], None),
        ([1.0, None], None),
    ],
)
def test_advantage_is_reward_minus_group_mean(rewards: list[float | None], expected: list[float] | None) -> None:
    assert advantages(rewards) == expected


def test_gradient_of_the_batch_equals_a_float64_reference() -> None:
    """-(1/T) sum over all sampled tokens of A * d log pi / d theta, computed one token at a time in float64."""
    policy = tiny_policy(WORDS, dtype=torch.float64)
    policy.model = add_adapter(policy.model, LoraSettings(r=3, alpha=6), seed=1)
    parameters = adapter_parameters(policy.model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in parameters.values():  # peft starts with B = 0, which would hide errors in A's gradient
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 10)
    prompts = [tuple(range(3, 3 + n)) for n in (2, 7, 4, 9, 7, 7)]  # three rows share a prompt
    replies = [(5, 9, 2), (8,), (4, 4, 6, 7, 2), (11, 2), (3, 8, 2), (9, 9, 9, 2)]
    weights, temperature = [0.75, -0.25, -0.25, 0.5, 1.0, -0.5], 0.8
    count = sum(map(len, replies))

    policy.tokens = 20  # several micro-batches
    optimizer = MasterAdamW(parameters, lr=1.0)
    for rows in policy.scoring_batches(prompts, replies):
        logprobs = policy.logprobs([prompts[r] for r in rows], [replies[r] for r in rows], temperature=temperature)
        per_token = torch.tensor([weights[r] for r in rows for _ in replies[r]])
        (policy_loss(torch.cat(logprobs), per_token) / count).backward()
        optimizer.collect()

    for prompt, reply, weight in zip(prompts, replies, weights, strict=True):
        for k, token in enumerate(reply):
            logits = policy.model(torch.tensor([[*prompt, *reply[:k]]])).logits[0, -1] / temperature
            (-weight / count * (logits[token] - logits.logsumexp(0))).backward()
    compared = 0
    for name, parameter in parameters.items():
        assert parameter.grad is not None
        ours = optimizer.masters[name].grad
        assert ours is not None
        torch.testing.assert_close(ours.double(), parameter.grad, atol=2e-7, rtol=1e-4)
        compared += int(parameter.grad.abs().max() > 1e-4)
    assert compared == len(parameters)


def test_the_clipped_loss_equals_its_definition() -> None:
    now = torch.tensor([-1.0, -2.0, -0.5, -3.0, -1.0], dtype=torch.float64, requires_grad=True)
    drawn = torch.tensor([-1.5, -1.0, -0.6, -3.1, -1.0], dtype=torch.float64)
    weight = torch.tensor([1.0, -1.0, -2.0, 0.5, 1.0], dtype=torch.float64)
    loss = policy_loss(now, weight, drawn, clip=0.2)
    loss.backward()
    total, gradient = 0.0, []
    for n, d, a in zip(now.tolist(), drawn.tolist(), weight.tolist(), strict=True):
        ratio = math.exp(n - d)
        bounded = min(max(ratio, 0.8), 1.2)
        total -= min(ratio * a, bounded * a)
        gradient.append(-ratio * a if ratio * a <= bounded * a else 0.0)
    assert loss.item() == pytest.approx(total)
    assert now.grad is not None
    assert now.grad.tolist() == pytest.approx(gradient)
    assert gradient[0] == 0.0, "a ratio beyond the trust region learns no more"
    assert gradient[2] != 0.0


def test_without_sampled_logprobs_the_loss_is_minus_the_weighted_sum_and_its_gradient_the_policy_gradient() -> None:
    now = torch.tensor([-1.0, -2.0], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([0.75, -0.25], dtype=torch.float64)
    loss = policy_loss(now, weight)
    loss.backward()
    assert loss.item() == pytest.approx(-0.5)
    assert now.grad is not None
    assert now.grad.tolist() == pytest.approx([-0.75, 0.25])
