"""The local policy: what is sampled is what is scored, whatever shares the batch; adapters; the context window."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.tiny import tiny_policy
from train.checkpoint import write_adapter
from train.local_config import LoraSettings
from train.optimizer import MasterAdamW, adapter_parameters, add_adapter
from train.policy import LocalPolicy, OverWindow, _with_adapter

WORDS = [f"w{i}" for i in range(40)]


def prompt(*words: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": " ".join(words)}]


PROMPTS = [prompt(*WORDS[i : i + 1 + 3 * (i % 5)]) for i in range(9)] + [prompt("w3")] * 4


@pytest.fixture
def policy() -> LocalPolicy:
    return tiny_policy(WORDS)


@pytest.mark.parametrize("temperature", [1.0, 0.7, 0.0])
def test_sampled_logprobs_are_those_that_a_plain_forward_gives(policy: LocalPolicy, temperature: float) -> None:
    policy.rows, policy.tokens = 5, 40  # several batches, several prefill passes
    completions = policy.generate(PROMPTS, 20, temperature=temperature, seed=3)
    scored = policy.score(
        [c.prompt_ids for c in completions], [c.token_ids for c in completions], temperature=temperature
    )
    assert len({len(c.token_ids) for c in completions}) > 2, "rows should end at different steps"
    for completion, scores in zip(completions, scored, strict=True):
        ids = torch.tensor([[*completion.prompt_ids, *completion.token_ids]])
        plain = (policy.model(ids).logits[0].float() / (temperature or 1.0)).log_softmax(-1)
        at = range(len(completion.prompt_ids) - 1, ids.shape[1] - 1)
        expected = torch.tensor([plain[i, ids[0, i + 1]] for i in at])
        torch.testing.assert_close(torch.tensor(completion.logprobs), expected, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(scores, expected, atol=1e-4, rtol=1e-4)
        if temperature == 0:
            assert [int(plain[i].argmax()) for i in at] == list(completion.token_ids)


def test_a_reply_depends_on_its_seed_and_not_on_its_batch(policy: LocalPolicy) -> None:
    together = policy.generate(PROMPTS, 12, seed=5)
    policy.rows, policy.tokens, policy.cache_tokens = 2, 16, 60
    apart = policy.generate(PROMPTS, 12, seed=5)
    assert [c.token_ids for c in together] == [c.token_ids for c in apart]
    assert [c.token_ids for c in policy.generate(PROMPTS, 12, seed=6)] != [c.token_ids for c in together]
    assert len({c.token_ids for c in together[-4:]}) > 1, "equal prompts must not share their random stream"


def test_sampling_follows_the_distribution(policy: LocalPolicy) -> None:
    count = 4000
    completions = policy.generate([prompt("w1", "w2")] * count, 1, seed=1)
    ids = torch.tensor([completions[0].prompt_ids])
    expected = policy.model(ids).logits[0, -1].float().softmax(-1)
    seen = torch.bincount(torch.tensor([c.token_ids[0] for c in completions]), minlength=len(expected)) / count
    # five standard errors of each frequency
    assert ((seen - expected).abs() < 5 * (expected * (1 - expected) / count).sqrt() + 1e-4).all()


def test_limits_and_ends(policy: LocalPolicy) -> None:
    completions = policy.generate(PROMPTS, [i + 1 for i in range(len(PROMPTS))], seed=2)
    stop = policy.tokenizer.eos_token_id
    for limit, completion in enumerate(completions, 1):
        assert completion.finished == (completion.token_ids[-1] == stop)
        assert completion.finished or len(completion.token_ids) == limit
        assert stop not in completion.token_ids[:-1]
        assert "<|im_end|>" not in completion.text


def test_a_prompt_over_the_window_is_refused_and_a_fitting_one_is_not() -> None:
    policy = tiny_policy(WORDS, window=32)
    fitting, long = prompt(*WORDS[:10]), prompt(*WORDS[:30])
    assert policy.max_context == 32
    assert policy.fits(fitting, 8)
    assert not policy.fits(long, 8)
    assert len(policy.generate([fitting], 8)) == 1
    with pytest.raises(OverWindow, match="prompt 1: 35 tokens and 8 new ones are more than 32"):
        policy.generate([fitting, long], 8)


def test_a_saved_adapter_gives_the_same_probabilities(tmp_path: Path) -> None:
    policy = tiny_policy(WORDS)
    prompts, replies = [policy.prompt_ids(prompt("w1", "w2"))], [policy.reply_ids("w3 w4")]
    base = policy.score(prompts, replies)[0]
    policy.model = add_adapter(policy.model, LoraSettings(r=4, alpha=8), seed=0)
    torch.testing.assert_close(policy.score(prompts, replies)[0], base)
    optimizer = MasterAdamW(adapter_parameters(policy.model), lr=0.05)
    for _ in range(3):
        (-policy.logprobs(prompts, replies)[0].sum()).backward()
        optimizer.collect()
        optimizer.apply(10.0)
    trained = policy.score(prompts, replies)[0]
    assert trained.sum() > base.sum() + 0.1
    write_adapter(policy.model, optimizer.masters, "tiny")(tmp_path)
    fresh = tiny_policy(WORDS)
    loaded = LocalPolicy(_with_adapter(fresh.model, tmp_path), fresh.tokenizer)
    torch.testing.assert_close(loaded.score(prompts, replies)[0], trained)
