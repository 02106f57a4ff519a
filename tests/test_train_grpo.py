"""GRPO's arithmetic: advantages and loss against references written out in float64."""

from __future__ import annotations

import math

import pytest
import torch

from rewards.errors import UserError
from tests.tiny import tiny_policy
from train.grpo import Normalisation, advantages, kl_to_base, policy_loss, turn_advantages
from train.local_config import LoraSettings
from train.optimizer import MasterAdamW, adapter_parameters, add_adapter
from train.policy import Completion
from train.rollouts import Played, group_advantages
from train.tasks import Result

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


@pytest.mark.parametrize(
    ("normalisation", "expected"),
    [("none", [0.75, -0.25, -0.25, -0.25]), ("std", [3**0.5, *[-(3**-0.5)] * 3]), ("mean", [3.0, -1.0, -1.0, -1.0])],
)
def test_normalisations(normalisation: Normalisation, expected: list[float]) -> None:
    assert advantages([1.0, 0.0, 0.0, 0.0], normalisation) == pytest.approx(expected)
    assert advantages([0.0, 0.0], normalisation) is None


def test_a_turn_is_judged_beside_the_same_turn_of_its_group() -> None:
    rewards, turns = [1.0, 0.0, None], [3, 3, 1]
    credits = [(1.0, None, None), (0.0, None, None), ()]
    assert turn_advantages(rewards, credits, turns) == [[0.5] * 3, [-0.5] * 3, [0.0]]
    assert turn_advantages(rewards, credits, turns, turn_weight=2.0) == [[1.5, 0.5, 0.5], [-1.5, -0.5, -0.5], [0.0]]
    same = [0.0, 0.0, None]
    assert turn_advantages(same, credits, turns) is None
    assert turn_advantages(same, credits, turns, turn_weight=1.0) == [[0.5, 0, 0], [-0.5, 0, 0], [0.0]]
    assert sum([0.7] * 3) / 3 != 0.7, "the mean of equal credits is another number"
    assert turn_advantages([0.0] * 3, [(0.7,)] * 3, [1] * 3, turn_weight=1.0) is None, "nothing varies"


def test_a_reply_that_the_token_limit_cut_earns_no_credit() -> None:
    def rollout(credit: float | None, finished: bool) -> Played:
        return Played((Completion("notes", (1,), (2,), (-0.5,), finished),), Result(0.0, "wrong", {}, (credit,)))

    group = [rollout(1.0, True), rollout(1.0, False), rollout(-0.5, False), rollout(None, False)]
    rows = group_advantages(group, "none", 1.0)
    assert rows is not None
    assert [advantage for [advantage] in rows] == pytest.approx([5 / 6, -1 / 6, -4 / 6, 0.0])
    assert group_advantages([rollout(1.0, True)] * 2, "none", 1.0) is None
    without = Played(group[0].turns, Result(1.0, "correct", {}))
    assert group_advantages([without, group[1]], "none", 1.0) == [[0.5], [-0.5]]


def test_kl_and_its_gradient_equal_their_definition() -> None:
    """Summed over the vocabulary, the estimator is the exact divergence; its gradient is that of exp(d) - d - 1."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 7, generator=generator, dtype=torch.float64)
    now, base = logits.log_softmax(-1)
    estimates = torch.stack([kl_to_base(now[k : k + 1], base[k : k + 1]) for k in range(7)])
    assert float((now.exp() * estimates).sum()) == pytest.approx(float((now.exp() * (now - base)).sum()))
    leaf = now.clone().requires_grad_()
    kl_to_base(leaf, base).backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == pytest.approx([1 - math.exp(b - n) for n, b in zip(now, base, strict=True)])


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


def test_a_gradient_that_is_not_finite_changes_no_weight() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = MasterAdamW({"w": weight}, lr=1.0)
    weight.grad = torch.tensor([1.0, float("inf")])
    optimizer.collect()
    with pytest.raises(UserError, match="the gradient is not finite any more"):
        optimizer.apply(1.0)
    assert torch.equal(optimizer.masters["w"], torch.ones(2))
    assert torch.equal(weight.detach(), torch.ones(2))


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
