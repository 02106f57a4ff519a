"""A small client for OpenAI-compatible endpoints: chat completions and embeddings, with retries and plain reasons.

One request is one POST. What cannot be used (an HTML page, half a body, no choices) is an `EndpointError` with a
one-line reason, never an empty answer: an empty answer would be graded as wrong.
"""

from __future__ import annotations

import base64
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from lme_v2_env.trajectory import SURROGATE
from lme_v2_env.wire import Answer, TooLarge, Wire, pause
from rewards.address import refuse_secrets, usable_key, without_key
from rewards.errors import UserError

RETRY_STATUS = frozenset({408, 409, 425, 429, *(status for status in range(500, 600) if status not in (501, 505))})
"""Answers that may be different a moment later."""

RETRIES = 3

LARGEST_REPLY = 4 << 20
"""Bytes of a chat completion: 20,000 tokens of thinking are a tenth of it."""

LARGEST_VECTORS = 256 << 20
"""Bytes of a reply with embeddings."""

MOST_TOKENS = 1 << 53
"""Counts from here on are none."""

SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")

CONTEXT_LENGTH = re.compile(r"context[ _-]?(length|window)|maximum (context|model) len|too many tokens", re.IGNORECASE)
"""How endpoints word a refusal of a prompt that is longer than their window."""


class EndpointError(RuntimeError):
    """The endpoint gave nothing usable; the message says what it did give, in one line."""


class EmptyReply(EndpointError):
    """The endpoint answered, with nothing in it."""


class Garbled(EndpointError):
    """What came is no JSON: a page of some gateway, or a part of a reply."""


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
    """The assistant's message as it came, but for content in parts, which is joined: what tool calls need."""

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
    retries: int = RETRIES
    """Further attempts after a lost connection or a status that means "later"."""
    backoff: float = 1.0
    """Seconds before the first retry; doubles. A server's Retry-After is waited for, up to a minute."""
    _wire: Wire = field(default_factory=Wire, repr=False, compare=False)

    def __post_init__(self) -> None:
        refuse_secrets(self.base_url, f"the address of '{self.model}'")
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

        url = f"{self.base_url.rstrip('/')}/models"
        try:
            self._wire.send("GET", url, {}, None, seconds=10.0, largest=LARGEST_REPLY)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            host = urlsplit(self.base_url).netloc
            raise UserError(f"no server for '{self.model}' at {host}: {self._one_line(str(error))}") from error
        except (httpx.HTTPError, TimeoutError, TooLarge):
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
        body = self.forward(payload, timeout)
        if not body["choices"]:
            raise EndpointError("the reply has no choices")
        choice = body["choices"][0]
        finish = choice.get("finish_reason")
        return Exchange(choice["message"], finish if isinstance(finish, str) else None, body.get("usage", {}))

    def forward(self, payload: dict[str, Any], timeout: float | None = None) -> dict[str, Any]:
        """One chat completion of a request that is ready; the reply's object, brought into the documented form.

        Servers send content in parts, counts of tokens that are none, choices without a message; all but the answer
        may be missing. Raises `EndpointError`.
        """
        body = self._post("chat/completions", payload, timeout)
        choices, usage = body.get("choices"), body.get("usage")
        choices = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
        body["choices"] = [choice | {"message": _sound(choice.get("message"))} for choice in choices]
        if isinstance(usage, dict):
            body["usage"] = {name: n for name, n in usage.items() if type(n) is int and 0 <= n < MOST_TOKENS}
        else:
            body.pop("usage", None)
        return body

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
        """The reply's object; tries again what may be different a moment later. Raises `EndpointError`."""
        limit = self.timeout if timeout is None else timeout
        # halves of characters have no bytes; a prompt may hold what another model wrote
        body = SURROGATE.sub("\ufffd", json.dumps(payload, ensure_ascii=False)).encode()
        reason, retry_after, asked, started = "", None, 0, time.monotonic()
        while asked <= self.retries:
            if asked:
                wait = pause(asked, self.backoff, retry_after)
                if timeout is not None and time.monotonic() - started + wait > timeout:
                    break
                time.sleep(wait)
            asked += 1
            try:
                answer = self._sent(route, body, limit)
            except _Lost as error:
                reason, retry_after = str(error), None
                continue
            if answer.status in RETRY_STATUS:
                reason, retry_after = f"status {answer.status}: {self._one_line(_text(answer))}", answer.retry_after
                continue
            return self._body(answer)
        raise EndpointError(f"{reason} ({asked} {'attempt' if asked == 1 else 'attempts'})")

    def _sent(self, route: str, body: bytes, seconds: float) -> Answer:
        """One attempt. Raises `_Lost`, or `EndpointError` for what another attempt would not mend."""
        import httpx

        headers = {"Authorization": f"Bearer {self._key()}", "Content-Type": "application/json"}
        url = f"{self.base_url.rstrip('/')}/{route}"
        largest = LARGEST_VECTORS if route == "embeddings" else LARGEST_REPLY
        try:
            return self._wire.send("POST", url, headers, body, seconds=seconds, largest=largest)
        except (TimeoutError, httpx.TimeoutException):
            raise _Lost(f"no reply within {seconds:g} s") from None
        except httpx.HTTPError as error:
            raise _Lost(f"{type(error).__name__}: {self._one_line(str(error))}") from error
        except (TooLarge, httpx.InvalidURL) as error:
            raise EndpointError(self._one_line(str(error))) from error

    def _key(self) -> str:
        try:
            return usable_key(self.api_key_var)
        except UserError as error:
            raise EndpointError(str(error)) from None

    def _body(self, answer: Answer) -> dict[str, Any]:
        text = _text(answer)
        if answer.status != 200:
            # other refusals (a wrong key, an unknown field) concern every prompt: they are no over-long ones
            wording = answer.status < 500 and CONTEXT_LENGTH.search(text)
            error = OverLong if answer.status == 413 or wording else EndpointError
            raise error(f"status {answer.status}: {self._one_line(text)}")
        try:
            body = json.loads(without_key(text, self._key()))
            if SURROGATE_ESCAPE.search(answer.body):  # as escapes in JSON, halves of characters pass every decoder
                body = json.loads(SURROGATE.sub("\ufffd", json.dumps(body, ensure_ascii=False)))
        except (ValueError, RecursionError):
            raise Garbled(f"not JSON ({self._one_line(answer.kind)}): {self._one_line(text)}") from None
        if not isinstance(body, dict):
            raise EndpointError(f"expected an object, got {type(body).__name__}")
        return body

    def _one_line(self, text: str) -> str:
        """What the server said, without the key: some repeat it when they refuse it."""
        return SURROGATE.sub("\ufffd", " ".join(without_key(text, self._key()).split())[:200])


class _Lost(RuntimeError):
    """No reply came; another attempt may bring one."""


def _text(answer: Answer) -> str:
    """As JSON has it: UTF-8, with or without a byte order mark."""
    return answer.body.decode("utf-8-sig", errors="replace")


def _sound(message: Any) -> dict[str, Any]:
    """The message with a text for content, or None."""
    if not isinstance(message, dict):
        return {"role": "assistant", "content": None}
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    return message | {"content": content if isinstance(content, str) else None}


def _said(value: Any) -> str:
    """The text of a message's field; empty when there is none."""
    return value if isinstance(value, str) and value.strip() else ""


def text_part(text: str) -> dict[str, Any]:
    """A text as one part of a message."""
    return {"type": "text", "text": text}


def picture_part(data: bytes) -> dict[str, Any]:
    """A PNG or JPEG as one part of a message."""
    kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}
