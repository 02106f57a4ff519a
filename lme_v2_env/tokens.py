"""How long a context is for a reader, and cutting it by whole items.

The count comes from the reader's own tokenizer when it can be had, otherwise it is an estimate and labelled as one.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from lme_v2_env.memory.api import ContextItem

ItemT = TypeVar("ItemT")

CHARS_PER_TOKEN = 3.0
"""For estimates. Accessibility trees have more marks and numbers than prose; about 3 characters make a token."""

PIXELS_PER_TOKEN = 32 * 32
"""Qwen's vision models (2.5-VL and later) make about one token of a patch of 32 by 32 pixels. Always an estimate."""

MESSAGE_TOKENS = 5
"""What a chat template adds around one user message, about."""


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """`label` says where the counts come from; it goes into every run's record."""

    count: Callable[[str], int]
    label: str

    def items(self, items: Sequence[ContextItem], images: bool) -> int:
        """Tokens of a message made of these items; none for no items."""
        if not items:
            return 0
        sizes = [self.count(item.value) if item.type == "text" else images * image_tokens(item.value) for item in items]
        return MESSAGE_TOKENS + sum(sizes)


def cut(items: Sequence[ItemT], limit: int, count: Callable[[Sequence[ItemT]], int]) -> Sequence[ItemT]:
    """The longest prefix of whole items whose count is within the limit (the published rule).

    A first item that is too long leaves nothing: what follows it ranked lower.
    """
    if count(items) <= limit:
        return items
    fits, fails = 0, len(items)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if count(items[:middle]) <= limit:
            fits = middle
        else:
            fails = middle
    return items[:fits]


def estimate() -> TokenCounter:
    """Characters divided by `CHARS_PER_TOKEN`."""
    return TokenCounter(
        lambda text: round(len(text) / CHARS_PER_TOKEN), f"estimate: {CHARS_PER_TOKEN:g} characters a token"
    )


def counter_for(tokenizer: str) -> TokenCounter:
    """The counter of a model name or folder; `estimate` for the estimate, which is also what failure leaves."""
    if tokenizer == "estimate":
        return estimate()
    try:
        from tokenizers import Tokenizer

        loaded = Tokenizer.from_file(str(_tokenizer_file(tokenizer)))
    except Exception as error:  # the client raises many kinds, of several libraries; all mean: not to be had
        fallback = estimate()
        reason = " ".join(str(error).split())[:80]
        return TokenCounter(fallback.count, f"{fallback.label} (tokenizer {tokenizer} cannot be had: {reason})")
    loaded.no_truncation()
    loaded.no_padding()

    @lru_cache(maxsize=64)  # the items of a context are counted several times while it is cut
    def count(text: str) -> int:
        return len(loaded.encode(text, add_special_tokens=False).ids)

    return TokenCounter(count, f"tokenizer {tokenizer}")


@dataclass(frozen=True, slots=True)
class TokenCutter:
    """Keeps the first `limit` tokens of a text. `label` says whose tokens they are."""

    cut: Callable[[str], str]
    label: str


def cutter_for(tokenizer: str, limit: int) -> TokenCutter:
    """The cutter of a model name or folder; an estimate where its tokenizer cannot be had, or for `estimate`."""
    if tokenizer != "estimate":
        try:
            from tokenizers import Tokenizer

            loaded = Tokenizer.from_file(str(_tokenizer_file(tokenizer)))
        except Exception:  # as above: of many kinds, and all mean that it is not to be had
            return cutter_for("estimate", limit)
        loaded.no_truncation()
        loaded.no_padding()

        def cut_text(text: str) -> str:
            ends = loaded.encode(text, add_special_tokens=False).offsets
            return text if len(ends) <= limit else text[: ends[limit - 1][1]]

        return TokenCutter(cut_text, f"tokenizer {tokenizer}")
    longest = round(limit * CHARS_PER_TOKEN)
    return TokenCutter(lambda text: text[:longest], f"estimate: {CHARS_PER_TOKEN:g} characters a token")


def _tokenizer_file(name: str) -> Path:
    if Path(name).is_dir():
        return Path(name) / "tokenizer.json"
    from huggingface_hub import hf_hub_download

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # its retry lines would bury ours
    return Path(hf_hub_download(name, "tokenizer.json", etag_timeout=10))


@lru_cache(maxsize=4096)
def image_tokens(path: str) -> int:
    """Estimated from the size in a PNG's header; a picture of another kind counts as 1280 by 720."""
    with Path(path).open("rb") as handle:
        head = handle.read(24)
    width, height = struct.unpack(">II", head[16:24]) if head[:8] == b"\x89PNG\r\n\x1a\n" else (1280, 720)
    return max(1, width * height // PIXELS_PER_TOKEN)
