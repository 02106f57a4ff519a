"""The local model: sample replies with their log-probabilities, and score given replies, in one torch engine.

Sampling and scoring share weights, kernels and number format, so what training believes a token's probability was is
what it was drawn with (the trainer reports the largest difference each step). Log-probabilities are those of the
distribution that was sampled: logits divided by the temperature (greedy: temperature 1).

Sampling works in lock-step over batches of similar prompt length: equal prompts are read once, their keys and values
are laid right-aligned into one preallocated cache, and rows that have ended leave the batch.

Shape suffixes: B rows, T prompt tokens, V vocabulary, N sampled tokens.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rewards.errors import UserError
from supersede_env.protocol import Message
from train.attention import register
from train.cache import LockstepCache
from train.weights import choose_device, choose_dtype, resolve

Ids = tuple[int, ...]

PACKED = 256
"""Most reply tokens that share one prompt in one sequence: beyond it attention over other replies, which is masked
away, costs more than reading the prompt again."""


class OverWindow(UserError):
    """A prompt and its new tokens do not fit the model's context window; ask `LocalPolicy.fits` first."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled reply. `token_ids` includes the end token when the model `finished` by itself; `text` does not."""

    text: str
    prompt_ids: Ids
    token_ids: Ids
    logprobs: tuple[float, ...]
    finished: bool


class LocalPolicy:
    """A causal language model with chat template, and a LoRA adapter where one is given."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str = "model") -> None:
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.device: torch.device = model.device
        gpu = self.device.type == "cuda"
        self.rows = 256 if gpu else 64
        """Most rows that are sampled in one batch."""
        self.tokens = 16384 if gpu else 2048
        """Most tokens (padding included) that pass through the model at once when prompts are read or scored."""
        self.cache_tokens = 400_000 if gpu else 30_000
        """Most cache columns times rows of one sampling batch."""
        self._stops = _stop_tokens(model, tokenizer)

    @classmethod
    def load(
        cls,
        model: str = "smollm2-135m",
        adapter: str | Path | None = None,
        *,
        device: str = "auto",
        dtype: str = "auto",
    ) -> LocalPolicy:
        """A model by name or folder, ready to sample. Raises `UserError` with one line when it cannot be had."""
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        where = choose_device(device)
        source = resolve(model)
        try:
            tokenizer = AutoTokenizer.from_pretrained(source)
            loaded = AutoModelForCausalLM.from_pretrained(
                source, dtype=choose_dtype(dtype, where), attn_implementation=register()
            )
        except (OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise UserError(f"model '{model}' cannot be loaded: {reason}") from error
        _check_supported(loaded, tokenizer, model)
        loaded = loaded.to(where).eval().requires_grad_(False)
        if adapter is not None:
            loaded = _with_adapter(loaded, Path(adapter))
        return cls(loaded, tokenizer, name=model)

    @property
    def max_context(self) -> int:
        """Most tokens, prompt and reply together."""
        return int(self.model.config.max_position_embeddings)

    def prompt_ids(self, messages: Sequence[Message]) -> Ids:
        """The prompt as the chat template writes it, with the opening of the model's reply."""
        return tuple(
            self.tokenizer.apply_chat_template(
                list(messages), tokenize=True, add_generation_prompt=True, return_dict=False
            )
        )

    def reply_ids(self, text: str) -> Ids:
        """`text` as the reply that a model would have sampled: its tokens and the end token."""
        return (*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id)

    def fits(self, messages: Sequence[Message], max_new_tokens: int) -> bool:
        """Do the prompt and `max_new_tokens` fit the context window?"""
        return len(self.prompt_ids(messages)) + max_new_tokens <= self.max_context

    @torch.inference_mode()
    def generate(
        self,
        prompts: Sequence[Sequence[Message]],
        max_new_tokens: int | Sequence[int],
        *,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> list[Completion]:
        """One reply for each prompt (temperature 0 is greedy); `max_new_tokens` is one limit or one a prompt.

        Each row draws from a random stream of its own, made from `seed` and its position, so its reply does not
        depend on which rows share its batch (up to rounding). Raises `OverWindow`.
        """
        limits = [max_new_tokens] * len(prompts) if isinstance(max_new_tokens, int) else list(max_new_tokens)
        ids = [self.prompt_ids(messages) for messages in prompts]
        for row, (prompt, limit) in enumerate(zip(ids, limits, strict=True)):
            if len(prompt) + limit > self.max_context:
                raise OverWindow(
                    f"prompt {row}: {len(prompt)} tokens and {limit} new ones are more than {self.max_context}"
                )
        results: dict[int, Completion] = {}
        for rows in self._sampling_batches(ids, limits):
            noise = [_noise(seed, row, limits[row]) for row in rows]
            sampled = self._sample([ids[row] for row in rows], [limits[row] for row in rows], noise, temperature)
            for row, (tokens, logprobs) in zip(rows, sampled, strict=True):
                finished = bool(tokens) and tokens[-1] in self._stops
                text = self.tokenizer.decode(tokens[:-1] if finished else tokens, skip_special_tokens=True)
                results[row] = Completion(text, ids[row], tuple(tokens), tuple(logprobs), finished)
        return [results[row] for row in range(len(prompts))]

    def score(self, prompts: Sequence[Ids], replies: Sequence[Ids], *, temperature: float = 1.0) -> list[Tensor]:
        """Log-probability of each reply token given its prompt, as one fp32 tensor a row, without gradient."""
        scored: dict[int, Tensor] = {}
        with torch.inference_mode():
            for rows in self.scoring_batches(prompts, replies):
                batch = self.logprobs([prompts[r] for r in rows], [replies[r] for r in rows], temperature=temperature)
                scored |= dict(zip(rows, batch, strict=True))
        return [scored[row] for row in range(len(prompts))]

    def scoring_batches(self, prompts: Sequence[Ids], replies: Sequence[Ids]) -> Iterator[list[int]]:
        """Row numbers of micro-batches: similar lengths together, at most `tokens` tokens with padding."""
        packs = _packs(prompts, replies)
        lengths = [len(prompts[pack[0]]) + sum(len(replies[row]) - 1 for row in pack) for pack in packs]
        for batch in _batches(lengths, self.tokens, self.rows):
            yield [row for index in batch for row in packs[index]]

    def logprobs(self, prompts: Sequence[Ids], replies: Sequence[Ids], *, temperature: float = 1.0) -> list[Tensor]:
        """As `score`, for one micro-batch and with gradients where they are enabled.

        Rows with the same prompt share one sequence: the prompt, then each reply, which sees only the prompt and
        itself and continues the prompt's positions. Same result, the prompt computed once.
        """
        sequences: list[list[int]] = []
        positions: list[list[int]] = []
        owners: list[list[int]] = []  # of each token: 0 the prompt, k the k-th reply
        where: dict[int, list[tuple[int, int]]] = {}  # of each reply token: sequence and column that predict it
        for number, pack in enumerate(_packs(prompts, replies)):
            prompt = prompts[pack[0]]
            sequence, position, owner = list(prompt), list(range(len(prompt))), [0] * len(prompt)
            for k, row in enumerate(pack, 1):
                read = replies[row][:-1]  # nothing is predicted from the last token
                columns = [len(prompt) - 1, *range(len(sequence), len(sequence) + len(read))]
                where[row] = [(number, column) for column in columns]
                sequence += read
                position += range(len(prompt), len(prompt) + len(read))
                owner += [k] * len(read)
            sequences.append(sequence)
            positions.append(position)
            owners.append(owner)
        hidden_BTD = self._read(sequences, positions=positions, owners=owners)
        at = torch.tensor([pair for row in range(len(replies)) for pair in where[row]], device=self.device)
        target_N = torch.tensor([token for reply in replies for token in reply], device=self.device)
        # only the states that predict a reply token pass through the large output matrix
        logits_NV = self._logits(hidden_BTD[at[:, 0], at[:, 1]], temperature or 1.0)
        logprobs_N = torch.gather(logits_NV.log_softmax(-1), 1, target_N[:, None])[:, 0]
        return list(logprobs_N.split([len(reply) for reply in replies]))

    def _sampling_batches(self, ids: Sequence[Ids], limits: Sequence[int]) -> Iterator[list[int]]:
        return _batches([len(i) + n for i, n in zip(ids, limits, strict=True)], self.cache_tokens, self.rows)

    def _sample(
        self, prompts: Sequence[Ids], limits: Sequence[int], noise: Sequence[Tensor], temperature: float
    ) -> list[tuple[list[int], list[float]]]:
        """Sample one batch in lock-step; noise[b][t] in [0, 1) decides row b's token t."""
        columns = max(map(len, prompts))
        cache, hidden_BD = self._prefill(prompts, columns, columns + max(limits))
        tokens: list[list[int]] = [[] for _ in prompts]
        logprobs: list[list[float]] = [[] for _ in prompts]
        alive = list(range(len(prompts)))  # alive[b] is the prompt that row b of the batch continues
        padding_B = torch.tensor([columns - len(prompt) for prompt in prompts], device=self.device)
        for step in range(max(limits)):
            logits_BV = self._logits(hidden_BD, temperature or 1.0)
            logprobs_BV = logits_BV.log_softmax(-1)
            if temperature:
                noise_B = torch.stack([noise[row][step] for row in alive]).to(self.device)
                token_B = _inverse_cdf(logprobs_BV, noise_B)
            else:
                token_B = logits_BV.argmax(-1)
            chosen, values = token_B.tolist(), logprobs_BV.gather(1, token_B[:, None])[:, 0].tolist()
            for row, token, value in zip(alive, chosen, values, strict=True):
                tokens[row].append(token)
                logprobs[row].append(value)
            stay = [b for b, row in enumerate(alive) if chosen[b] not in self._stops and step + 1 < limits[row]]
            if not stay:
                break
            if len(stay) < len(alive):
                kept = torch.tensor(stay, device=self.device)
                cache.keep(kept)
                padding_B, token_B = padding_B[kept], token_B[kept]
                alive = [alive[b] for b in stay]
            hidden_BD = self._decode(token_B, padding_B, columns + step, cache)
        return list(zip(tokens, logprobs, strict=True))

    def _prefill(self, prompts: Sequence[Ids], columns: int, size: int) -> tuple[LockstepCache, Tensor]:
        """Read the prompts, equal ones once. Returns the filled cache and each row's last hidden state."""
        from transformers import DynamicCache

        unique = sorted(set(prompts), key=len)
        cache = LockstepCache(len(prompts), columns, size)
        last: dict[int, Tensor] = {}
        for batch in _batches([len(prompt) for prompt in unique], self.tokens, self.rows):
            read: Any = DynamicCache()
            hidden_BTD = self._read([unique[u] for u in batch], cache=read)
            layers = [(layer.keys, layer.values) for layer in read.layers]
            for b, u in enumerate(batch):
                rows = [row for row, prompt in enumerate(prompts) if prompt == unique[u]]
                cache.place(layers, b, rows, len(unique[u]))
                last |= dict.fromkeys(rows, hidden_BTD[b, len(unique[u]) - 1])
        return cache, torch.stack([last[row] for row in range(len(prompts))])

    def _read(
        self,
        sequences: Sequence[Sequence[int]],
        *,
        cache: Any = None,
        positions: Sequence[Sequence[int]] | None = None,
        owners: Sequence[Sequence[int]] | None = None,
    ) -> Tensor:
        """Hidden states of sequences padded on the right.

        Under causal attention no real token sees padding, so no mask is needed and the fast kernel applies; only
        sequences in which several replies share a prompt (`owners`) need one.
        """
        width = max(map(len, sequences))
        ids_BT = self._padded(sequences, width, self.tokenizer.pad_token_id or 0)
        if positions is None or owners is None or not _shared(owners):
            positions_BT, mask = torch.arange(width, device=self.device)[None], None
        else:
            positions_BT = self._padded(positions, width, 0)
            owners_BT = self._padded(owners, width, -1)
            same_BTT = owners_BT[:, :, None] == owners_BT[:, None, :]
            mask = (same_BTT | (owners_BT == 0)[:, None, :]).tril()[:, None]
        return self._backbone(input_ids=ids_BT, position_ids=positions_BT, attention_mask=mask, cache=cache)

    def _padded(self, rows: Sequence[Sequence[int]], width: int, value: int) -> Tensor:
        return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], device=self.device)

    def _decode(self, token_B: Tensor, padding_B: Tensor, column: int, cache: LockstepCache) -> Tensor:
        """One step: read each row's last token, which lies in cache column `column`."""
        seen_BL = torch.arange(column + 1, device=self.device)[None] >= padding_B[:, None]
        return self._backbone(
            input_ids=token_B[:, None],
            position_ids=(column - padding_B)[:, None],
            attention_mask=seen_BL[:, None, None, :],
            cache=cache,
        )[:, -1]

    def _backbone(self, *, cache: Any, **inputs: Any) -> Tensor:
        causal = self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model
        backbone = getattr(causal, causal.base_model_prefix)
        # transformers 5.2x renamed the argument
        known = inspect.signature(backbone.forward).parameters
        name = "cache" if "cache" in known else "past_key_values"
        return backbone(**inputs, **{name: cache}, use_cache=cache is not None).last_hidden_state

    def _logits(self, hidden_ND: Tensor, temperature: float) -> Tensor:
        return self.model.get_output_embeddings()(hidden_ND).float() / temperature


def _with_adapter(model: Any, adapter: Path) -> Any:
    from peft import PeftModel

    if not (adapter / "adapter_config.json").is_file():
        raise UserError(f"adapter {adapter}: no adapter_config.json there")
    try:
        return PeftModel.from_pretrained(model, adapter, autocast_adapter_dtype=False).eval()
    except (OSError, ValueError, RuntimeError) as error:
        raise UserError(f"adapter {adapter} does not fit the model: {str(error).splitlines()[0]}") from error


def _check_supported(model: Any, tokenizer: Any, name: str) -> None:
    """Refuse what this engine would compute wrongly: windowed attention, or logits that are more than a product."""
    config = model.config
    if set(getattr(config, "layer_types", None) or ["full_attention"]) != {"full_attention"}:
        raise UserError(f"model '{name}' has layers without full attention; the local engine does not support it")
    if tokenizer.chat_template is None:
        raise UserError(f"model '{name}' has no chat template; take an instruct model")
    special = [key for key in ("final_logit_softcapping", "logit_scale", "logits_scaling") if hasattr(config, key)]
    if special:
        raise UserError(f"model '{name}' transforms its logits ({special[0]}); the local engine does not support it")


def _stop_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    configured = getattr(model.generation_config, "eos_token_id", None)
    stops = {tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])}
    stops.add(tokenizer.get_vocab().get("<|im_end|>"))
    return frozenset(token for token in stops if token is not None)


def _shared(owners: Sequence[Sequence[int]]) -> bool:
    return any(max(owner) > 1 for owner in owners)


def _packs(prompts: Sequence[Ids], replies: Sequence[Ids]) -> list[list[int]]:
    """Rows that share a prompt, in runs whose replies have at most `PACKED` tokens together."""
    packs: list[list[int]] = []
    open_pack: dict[Ids, tuple[list[int], int]] = {}
    for row, (prompt, reply) in enumerate(zip(prompts, replies, strict=True)):
        pack, size = open_pack.get(prompt, ([], PACKED))
        if size + len(reply) > PACKED:
            pack, size = [], 0
            packs.append(pack)
        pack.append(row)
        open_pack[prompt] = (pack, size + len(reply))
    return packs


def _batches(lengths: Sequence[int], tokens: int, rows: int) -> Iterator[list[int]]:
    """Indices by length, in runs whose padded size stays within `tokens` (a longer single one goes alone)."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (lengths[index] * (len(batch) + 1) > tokens or len(batch) == rows):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _noise(seed: int, row: int, count: int) -> Tensor:
    digest = hashlib.sha256(f"{seed}:{row}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return torch.rand(count, generator=generator, dtype=torch.float64)


def _inverse_cdf(logprobs_BV: Tensor, noise_B: Tensor) -> Tensor:
    """The token at which the cumulative probability passes the noise."""
    cumulative_BV = logprobs_BV.exp().double().cumsum(-1)
    # scaled by the sum as computed, so that rounding cannot lead past the last token with any probability
    target_B1 = noise_B[:, None] * cumulative_BV[:, -1:]
    return torch.searchsorted(cumulative_BV, target_B1, right=True)[:, 0].clamp(max=logprobs_BV.shape[-1] - 1)
