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
from urllib.parse import urlsplit

from lme_v2_env.trajectory import SURROGATE
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
        try:
            parts = urlsplit(self.base_url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # of the host or the port
            good = False
        if not good or len(self.base_url.split()) != 1:
            raise UserError(f"endpoint '{self.base_url}' is no address such as http://localhost:8000/v1")

    def refuse_unreachable(self) -> None:
        """Raise `UserError` when nobody listens there. Any answer will do: not every server has this route."""
        import httpx

        try:
            httpx.get(f"{self.base_url.rstrip('/')}/models", timeout=10.0)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            host = urlsplit(self.base_url).netloc.rpartition("@")[2]  # an address may hold a password
            raise UserError(f"no server for '{self.model}' at {host}: {self._one_line(str(error))}") from error
        except httpx.HTTPError:
            pass  # it listens; what it cannot do shows in the rows

    def complete(self, messages: list[dict[str, Any]], **sampling: Any) -> Completion:
        """One chat completion. Raises `EndpointError`."""
        reply = self.exchange(messages, **sampling)
        message, finish, usage = reply.message, reply.finish_reason, reply.usage
        text = _said(message.get("content"))
        if text:
            return Completion(text, finish, usage)
        reasoning = _said(message.get("reasoning")) or _said(message.get("reasoning_content"))
        if not reasoning:
            raise EmptyReply(f"the reply is empty (finish_reason {finish})")
        return Completion(reasoning, finish, usage, from_reasoning=True)

    def exchange(self, messages: list[dict[str, Any]], *, timeout: float | None = None, **options: Any) -> Exchange:
        """One chat completion, the message untouched. `timeout` stands in for the endpoint's own, and no attempt begins
        after it. Raises `EndpointError`."""
        payload = {"model": self.model, "messages": messages, **options}
        body = self._post("chat/completions", payload, timeout)
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise EndpointError("the reply has no choices")
        message, counts, finish = choices[0].get("message"), body.get("usage"), choices[0].get("finish_reason")
        counts = counts if isinstance(counts, dict) else {}
        return Exchange(
            message=message if isinstance(message, dict) else {},
            finish_reason=finish if isinstance(finish, str) else None,
            usage={name: count for name, count in counts.items() if type(count) is int},
        )

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
        headers = {"Authorization": f"Bearer {self._key()}"}
        url = f"{self.base_url.rstrip('/')}/{route}"
        reason, started = "", time.monotonic()
        for attempt in range(self.retries + 1):
            if timeout is not None and time.monotonic() - started > timeout:
                break
            if attempt:
                time.sleep(self.backoff * 2 ** (attempt - 1))
            try:
                response = self._client.post(url, json=payload, headers=headers, timeout=timeout or self.timeout)
            except httpx.TimeoutException:
                reason = f"no reply within {timeout or self.timeout:g} s"
                continue
            except httpx.HTTPError as error:
                reason = f"{type(error).__name__}: {self._one_line(str(error))}"
                continue
            if response.status_code in RETRY_STATUS:
                reason = f"status {response.status_code}: {self._one_line(response.text)}"
                continue
            return self._body(response)
        raise EndpointError(f"{reason} ({self.retries + 1} attempts)")

    def _key(self) -> str:
        key = os.environ.get(self.api_key_var, "").strip() or "none"
        if not (key.isascii() and key.isprintable()):
            # refused here: the HTTP library would repeat the key in its message
            raise EndpointError(f"the key in {self.api_key_var} holds characters that no header takes")
        return key

    def _body(self, response: httpx.Response) -> dict[str, Any]:
        if response.status_code != 200:
            # other refusals (a wrong key, an unknown field) concern every prompt: they are no over-long ones
            wording = response.status_code < 500 and CONTEXT_LENGTH.search(response.text)
            error = OverLong if response.status_code == 413 or wording else EndpointError
            raise error(f"status {response.status_code}: {self._one_line(response.text)}")
        try:
            body = response.json()
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "no content type")
            raise EndpointError(f"not JSON ({kind}): {self._one_line(response.text)}") from None
        if not isinstance(body, dict):
            raise EndpointError(f"expected an object, got {type(body).__name__}")
        return body

    def _one_line(self, text: str) -> str:
        """What the server said, without the key: some repeat it when they refuse it."""
        key = self._key()
        clean = text if key == "none" else text.replace(key, "(the key)")
        return SURROGATE.sub("\ufffd", " ".join(clean.split())[:200])


def _said(value: Any) -> str:
    """The text of a message's field: a string, or the text parts of a list; empty when there is none."""
    if isinstance(value, list):
        value = "".join(_said(part.get("text")) for part in value if isinstance(part, dict))
    return SURROGATE.sub("\ufffd", value) if isinstance(value, str) and value.strip() else ""


def text_part(text: str) -> dict[str, Any]:
    """A text as one part of a message."""
    return {"type": "text", "text": text}


def picture_part(data: bytes) -> dict[str, Any]:
    """A PNG or JPEG as one part of a message."""
    kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}
