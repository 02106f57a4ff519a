"""The fixed reader: a model behind an OpenAI-compatible endpoint that answers from the retrieved context.

Defaults are the published evaluation's. The prompts are this project's own; `load_prompts` takes a file for those who
want other wording. For a reader without a model see `extractive`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from lme_v2_env.chat import Endpoint, picture_part, text_part
from lme_v2_env.memory.api import ContextItem
from lme_v2_env.tokens import TokenCounter, cut, estimate
from lme_v2_env.trajectory import QuestionView
from rewards.errors import UserError, refuse_unknown

PROMPT_KEYS = ("web", "enterprise", "context", "empty", "question")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader said, having been `shown` these items; `tokens` counts the context before it was cut."""

    text: str
    shown: tuple[ContextItem, ...]
    tokens: int
    tokens_shown: int
    image_shown: bool = False
    """Whether the question's own picture was sent."""
    finish_reason: str | None = None
    from_reasoning: bool = False
    usage: Mapping[str, int] = field(default_factory=dict)


class Reader(Protocol):
    """`settings` identify the reader in a run's record."""

    @property
    def settings(self) -> dict[str, Any]: ...

    def read(self, question: QuestionView, domain: str, items: Sequence[ContextItem]) -> Reading: ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """The published evaluation's sampling parameters for Qwen/Qwen3.5-9B."""

    temperature: float = 0.6
    top_p: float = 0.95
    top_k: int = 20
    max_tokens: int = 20_000
    thinking: bool = True

    def body(self) -> dict[str, Any]:
        """As fields of a request. Servers think by default; only switching it off needs a field."""
        fields: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "max_tokens": self.max_tokens,
        }
        return fields if self.thinking else fields | {"chat_template_kwargs": {"enable_thinking": False}}


PUBLISHED_READER = "Qwen/Qwen3.5-9B"
PUBLISHED_CONTEXT_TOKENS = 200_000


def load_prompts(file: Path | None = None) -> dict[str, str]:
    """The reader's texts: ours, or those of a JSON file with the same keys."""
    if file is None:
        return json.loads(files("lme_v2_env").joinpath("reader_prompts.json").read_text("utf-8"))
    try:
        texts = json.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"reader prompts {file}: {error}") from error
    if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
        raise UserError(f"reader prompts {file.name}: expected an object of texts")
    refuse_unknown(texts, PROMPT_KEYS, "reader prompt")
    missing = next((key for key in PROMPT_KEYS if key not in texts), None)
    if missing:
        raise UserError(f"reader prompts {file.name}: '{missing}' is missing")
    return texts


class EndpointReader:
    """Sends the context, cut to the window by whole items, and the question.

    `images`: whether the reader takes pictures. When it does not, pictures of the context are left out, and a question
    that has one is answered without it: the reading says so.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        sampling: Sampling | None = None,
        prompts: Mapping[str, str] | None = None,
        context_tokens: int = PUBLISHED_CONTEXT_TOKENS,
        counter: TokenCounter | None = None,
        images: bool = False,
    ) -> None:
        self.endpoint, self.context_tokens, self.images = endpoint, context_tokens, images
        self.sampling = sampling or Sampling()
        self.prompts = dict(prompts or load_prompts())
        self.counter = counter or estimate()

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "reader": "endpoint",
            "model": self.endpoint.model,
            **self.sampling.body(),
            "thinking": self.sampling.thinking,
            "context_tokens": self.context_tokens,
            "token_count": self.counter.label,
            "images": self.images,
            "prompt_hash": hashlib.sha256(json.dumps(self.prompts, sort_keys=True).encode()).hexdigest()[:12],
        }

    def read(self, question: QuestionView, domain: str, items: Sequence[ContextItem]) -> Reading:
        """Raises `EndpointError` when the endpoint gives no answer."""
        usable = [item for item in items if self.images or item.type == "text"]
        shown = cut(usable, self.context_tokens, lambda part: self.counter.items(part, self.images))
        completion = self.endpoint.complete(self.messages(question, domain, shown), **self.sampling.body())
        return Reading(
            text=completion.text,
            shown=tuple(shown),
            tokens=self.counter.items(usable, self.images),
            tokens_shown=self.counter.items(shown, self.images),
            image_shown=question.image is not None and self.images,
            finish_reason=completion.finish_reason,
            from_reasoning=completion.from_reasoning,
            usage=completion.usage,
        )

    def messages(self, question: QuestionView, domain: str, items: Sequence[ContextItem]) -> list[dict[str, Any]]:
        """System prompt of the domain; then context header, items, question and its picture as parts of one message."""
        texts = self.prompts
        parts = [text_part(texts["context"] if items else texts["context"] + texts["empty"])]
        for item in items:
            parts.append(
                text_part(item.value + "\n\n") if item.type == "text" else picture_part(Path(item.value).read_bytes())
            )
        parts.append(text_part(texts["question"] + question.text))
        if question.image is not None and self.images:
            parts.append(picture_part(question.image))
        return [{"role": "system", "content": texts[domain]}, {"role": "user", "content": parts}]
