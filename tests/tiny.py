"""A tiny randomly initialised chat model with a word-level tokenizer, made in memory."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from train.attention import register
from train.policy import LocalPolicy

TEMPLATE = (
    "{% for m in messages %}<|im_start|> {{ m['role'] }} {{ m['content'] }} <|im_end|> {% endfor %}"
    "{% if add_generation_prompt %}<|im_start|> assistant {% endif %}"
)
SPECIAL = ("<unk>", "<|im_start|>", "<|im_end|>")


def tiny_policy(
    words: Iterable[str], *, seed: int = 0, dtype: torch.dtype = torch.float32, window: int = 512, spread: float = 0.3
) -> LocalPolicy:
    """Two layers, grouped-query attention, one token a word; tokens it does not know become <unk>.

    `spread` of the initial weights: 0.3 is far from uniform, so that a wrong position or mask shows; with 0.1 no
    token is very likely or unlikely.
    """
    vocabulary = {word: i for i, word in enumerate(dict.fromkeys([*SPECIAL, *words]))}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="<unk>", eos_token="<|im_end|>", pad_token="<|im_end|>"
    )
    tokenizer.chat_template = TEMPLATE
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=window,
        eos_token_id=vocabulary["<|im_end|>"],
        pad_token_id=vocabulary["<|im_end|>"],
        initializer_range=spread,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.set_attn_implementation(register())
    return LocalPolicy(model.to(dtype).eval().requires_grad_(False), tokenizer, name="tiny")
