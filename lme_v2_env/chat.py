"""A small client for OpenAI-compatible endpoints: chat completions and embeddings, with retries and plain reasons.

One request is one POST. What cannot be used (an HTML page, half a body, no choices) is an `EndpointError` with a
one-line reason, never an empty answer: an empty answer would be graded as wrong.
"""

from __future__ import annotations

import base64
import os
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rewards.errors import UserError

if TYPE_CHECKING:
    import httpx

RETRY_STATUS = (408, 409, 429, 500, 502, 503, 504)

CONTEXT_LENGTH = re.compile(r"context[ _-]?(length|window)|maximum (context|model) len|too many tokens", re.IGNORECASE)
"""How endpoints word a refusal of a prompt that is longer than their window."""


class EndpointError(RuntimeError):
    """The endpoint gave nothing usable; the message says what it did give, in one line."""


class EmptyReply(EndpointError):
    """The endpoint answered, with nothing in it."""


class OverLong(EndpointError):
    """The endpoint refused the prompt as longer than its window: trying the same again is of no use."""


@dataclass(frozen=True, slots=True)
class Completion:
    """`text` is the message's content, or its reasoning when the content is empty (then `from_reasoning`)."""

    text: str
    finish_reason: str | None
    usage: dict[str, int]
    from_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """The assistant's message as it came: what tool calls need."""

    message: dict[str, Any]
    finish_reason: str | None
    usage: dict[str, int]


@dataclass
class Endpoint:
    """An OpenAI-compatible server. Threads may share one."""

    base_url: str
    model: str
    api_key_var: str = "OPENAI_API_KEY"
    timeout: float = 600.0
    """Seconds for one request."""
    retries: int = 3
    """Further attempts after a lost connection or a status that means "later"."""
    backoff: float = 1.0
    """Seconds before the first retry; doubles."""
    _client: httpx.Client | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise UserError(f"endpoint '{self.base_url}' does not begin with http:// or https://")

    def complete(self, messages: list[dict[str, Any]], **sampling: Any) -> Completion:
        """One chat completion. Raises `EndpointError`."""
        reply = self.exchange(messages, **sampling)
        message, finish, usage = reply.message, reply.finish_reason, reply.usage
        content = message.get("content")
        reasoning = message.get("reasoning") or message.get("reasoning_content")
        text = content if isinstance(content, str) and content.strip() else ""
        if not text and isinstance(reasoning, str) and reasoning.strip():
            return Completion(reasoning, finish, usage, from_reasoning=True)
        if not text:
            raise EmptyReply(f"the reply is empty (finish_reason {finish})")
        return Completion(text, finish, usage)

    def exchange(self, messages: list[dict[str, Any]], *, timeout: float | None = None, **options: Any) -> Exchange:
        """One chat completion, the message untouched. `timeout` stands in for the endpoint's own, and no attempt begins
        after it. Raises `EndpointError`."""
        payload = {"model": self.model, "messages": messages, **options}
        body = self._post("chat/completions", payload, timeout)
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise EndpointError("the reply has no choices")
        message = choices[0].get("message") or {}
        usage = {name: value for name, value in (body.get("usage") or {}).items() if isinstance(value, int)}
        return Exchange(message, choices[0].get("finish_reason"), usage)

    def embed(self, texts: list[str]) -> list[list[float]]:
        """One vector a text, in order. Raises `EndpointError`."""
        body = self._post("embeddings", {"model": self.model, "input": texts, "encoding_format": "float"})
        data = body.get("data")
        if not isinstance(data, list) or len(data) != len(texts):
            raise EndpointError(f"{len(texts)} texts were sent, {len(data) if isinstance(data, list) else 0} came back")
        try:
            return [item["embedding"] for item in sorted(data, key=lambda item: item["index"])]
        except (KeyError, TypeError) as error:
            raise EndpointError(f"an embedding lacks {error}") from error

    def _post(self, route: str, payload: dict[str, Any], timeout: float | None = None) -> dict[str, Any]:
        import httpx

        if self._client is None:
            self._client = httpx.Client(timeout=self.timeout)
        key = os.environ.get(self.api_key_var, "none")
        url = f"{self.base_url.rstrip('/')}/{route}"
        reason, started = "", time.monotonic()
        for attempt in range(self.retries + 1):
            if timeout is not None and time.monotonic() - started > timeout:
                break
            if attempt:
                time.sleep(self.backoff * 2 ** (attempt - 1))
            try:
                headers = {"Authorization": f"Bearer {key}"}
                response = self._client.post(url, json=payload, headers=headers, timeout=timeout or self.timeout)
            except httpx.TimeoutException:
                reason = f"no reply within {timeout or self.timeout:g} s"
                continue
            except httpx.HTTPError as error:
                reason = f"{type(error).__name__}: {_one_line(str(error))}"
                continue
            if response.status_code in RETRY_STATUS:
                reason = f"status {response.status_code}: {_one_line(response.text)}"
                continue
            return _body(response)
        raise EndpointError(f"{reason} ({self.retries + 1} attempts)")


def text_part(text: str) -> dict[str, Any]:
    """A text as one part of a message."""
    return {"type": "text", "text": text}


def picture_part(data: bytes) -> dict[str, Any]:
    """A PNG or JPEG as one part of a message."""
    kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _body(response: httpx.Response) -> dict[str, Any]:
    if response.status_code != 200:
        # other refusals (a wrong key, an unknown field) concern every prompt: they are no over-long ones
        too_long = response.status_code == 413 or (response.status_code < 500 and CONTEXT_LENGTH.search(response.text))
        error = OverLong if too_long else EndpointError
        raise error(f"status {response.status_code}: {_one_line(response.text)}")
    try:
        body = response.json()
    except ValueError:
        kind = response.headers.get("content-type", "no content type")
        raise EndpointError(f"not JSON ({kind}): {_one_line(response.text)}") from None
    if not isinstance(body, dict):
        raise EndpointError(f"expected an object, got {type(body).__name__}")
    return body


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
