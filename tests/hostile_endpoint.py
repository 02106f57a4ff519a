"""An OpenAI-compatible endpoint that misbehaves in every way that one has been seen to, and some more.

    with HostileEndpoint(policy, fault=one_in(20, seed=0)) as endpoint: ...

`fault` names what is wrong with a reply, see `FAULTS`; None is an honest one. What the client did is kept: `asked` and
`faults` count, `gaps` holds (seconds asked for by Retry-After, seconds until the same prompt came again).
"""

from __future__ import annotations

import gzip
import json
import random
import socket
import struct
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.scripted_endpoint import Fault, Messages, ScriptedEndpoint, _plain

LONE = "\ud83d"
"""Half of a character."""

RETRY_AFTER = 2

BOMB = gzip.compress(b" " * (16 << 20))

TRANSIENT = ("429", "500", "503-date", "hang", "drip", "reset", "cut", "no-reply")
"""Faults after which the same request is worth another attempt."""

GARBLED = ("truncated", "html", "not-utf8", "deep", "digits", "nothing")
"""Replies that are no JSON."""

USELESS = ("no-choices", "null", "reasoning", "list", "huge", "bomb", "404", "401-echo", "redirect", "no-message")
"""Replies, sound in form, in which there is no answer."""

ODD = ("no-usage", "bad-usage", "surrogates", "over-budget", "parts", "broken-tools", "bom", "echo-200")
"""Replies that can be taken."""

FAULTS = (*TRANSIENT, *GARBLED, *USELESS, *ODD)


def one_in(n: int, seed: int, faults: tuple[str, ...] = FAULTS) -> Fault:
    """Every reply is faulty with a chance of 1 in n."""

    def fault(messages: Messages, count: int) -> str | None:
        draw = random.Random(f"{seed} {count}")
        return draw.choice(faults) if draw.random() < 1 / n else None

    return fault


class HostileEndpoint(ScriptedEndpoint):
    """`patience`: seconds that a hanging or dripping reply lasts, longer than the client's time limit."""

    def __init__(self, policy: Any, fault: Fault | None = None, *, patience: float = 8.0) -> None:
        self.patience = patience
        self.faults: Counter[str] = Counter()
        self.gaps: list[tuple[float, float]] = []
        self._refused: dict[tuple[tuple[str, str], ...], tuple[float, float]] = {}
        super().__init__(policy, fault)

    def _drawn(self, body: dict[str, Any]) -> str | None:
        """The fault of this request; also what became of an earlier Retry-After for the same prompt."""
        prompt = tuple((m["role"], str(m["content"])) for m in body["messages"])
        with self._lock:
            self.requests.append(prompt)
            self.bodies.append(json.dumps(body))
            self.count += 1
            name = self.fault(_plain(body["messages"]), self.count)
            if name:
                self.faults[name] += 1
            if prompt in self._refused:
                wanted, when = self._refused.pop(prompt)
                self.gaps.append((wanted, time.monotonic() - when))
            if name == "429":
                self._refused[prompt] = (RETRY_AFTER, time.monotonic())
        return name

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self
        base: Any = super()._handler()

        class Handler(base):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                name = endpoint._drawn(body)
                try:
                    self._reply(name, body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def _reply(self, name: str | None, body: dict[str, Any]) -> None:
                if name == "hang":
                    time.sleep(endpoint.patience)
                    self.close_connection = True
                elif name == "drip":
                    self._drip()
                elif name in ("reset", "no-reply"):
                    if name == "reset":  # closing at once, with what is unsent thrown away
                        linger = struct.pack("ii", 1, 0)
                        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.close_connection = True
                    self.connection.close()
                else:
                    key = self.headers.get("Authorization", "")
                    status, headers, data, length = _bytes(name, _completion(endpoint, name, body, key), key)
                    self.send_response(status)
                    for header, value in {"Content-Type": "application/json", **headers}.items():
                        self.send_header(header, value)
                    self.send_header("Content-Length", str(length))
                    self.end_headers()
                    self.wfile.write(data)
                    self.close_connection = len(data) < length

            def _drip(self) -> None:
                """A header, then a byte now and then: no wait for the next byte is ever long."""
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.flush()
                for _ in range(int(endpoint.patience / 0.2)):
                    self.wfile.write(b" ")
                    self.wfile.flush()
                    time.sleep(0.2)
                self.close_connection = True

        return Handler


def _completion(endpoint: HostileEndpoint, name: str | None, body: dict[str, Any], key: str) -> dict[str, Any]:
    said = endpoint.policy(_plain(body["messages"]))
    message: dict[str, Any] = {"role": "assistant", **(said if isinstance(said, dict) else {"content": said})}
    text = message.get("content")
    if name == "null":
        message["content"] = None
    elif name == "reasoning":
        message |= {"content": None, "reasoning_content": "thinking about it"}
    elif name == "surrogates":
        message["content"] = f"{text} {LONE} {LONE[::-1]}"
    elif name == "over-budget":
        message["content"] = f"{text} " * 5000
    elif name == "parts":
        message["content"] = [{"type": "text", "text": text}]
    elif name == "huge":
        message["content"] = "x" * (10 << 20)
    elif name == "broken-tools":
        call = {"id": "c", "type": "function", "function": {"name": "search_states", "arguments": '{"query": "a'}}
        message["tool_calls"] = [call]
    elif name == "echo-200":
        message["content"] = f"{text} {key}"
    usage: Any = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    if name == "bad-usage":
        usage |= {"prompt_tokens": 10**30, "completion_tokens": None, "total_tokens": "many"}
    choices = [] if name == "no-choices" else [{"index": 0, "message": message, "finish_reason": "stop"}]
    if name == "no-message":
        choices = [{"index": 0, "message": None, "finish_reason": "stop"}]
    head = {"id": "hostile", "object": "chat.completion", "created": 0, "model": str(body.get("model"))}
    return head | {"choices": choices} | ({} if name == "no-usage" else {"usage": usage})


def _bytes(name: str | None, completion: dict[str, Any], key: str) -> tuple[int, dict[str, str], bytes, int]:
    """(status, further headers, body, length claimed) of a reply."""
    data, status, headers = json.dumps(completion).encode(), 200, {}
    if name in ("429", "500"):
        status, data = int(name), b'{"error": {"message": "later"}}'
        headers = {"Retry-After": str(RETRY_AFTER)} if name == "429" else {}
    elif name == "503-date":
        status, data, headers = 503, b"busy", {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}
    elif name == "truncated":
        data = data[: len(data) // 2]
    elif name == "html":
        data, headers = b"<html><body>gateway login</body></html>", {"Content-Type": "text/html"}
    elif name == "not-utf8":
        data = json.dumps({"choices": "caf\xe9"}, ensure_ascii=False).encode("latin-1") + b"\xff\xfe{"
    elif name == "deep":
        data = b"[" * 200_000
    elif name == "digits":
        data = b'{"usage": ' + b"9" * 5000 + b"}"
    elif name == "nothing":
        data = b""
    elif name == "list":
        data = b"[1, 2]"
    elif name == "bomb":
        data, headers = BOMB, {"Content-Encoding": "gzip"}
    elif name == "404":
        status, data = 404, b'{"error": {"message": "The model `m` does not exist"}}'
    elif name == "401-echo":
        status, data = 401, json.dumps({"error": {"message": f"Incorrect API key provided: {key}"}}).encode()
    elif name == "redirect":
        status, data, headers = 307, b"", {"Location": f"/v1/chat/completions?key={key.partition(' ')[2]}"}
    elif name == "bom":
        data = b"\xef\xbb\xbf" + data
    return status, headers, data, len(data) + (1000 if name == "cut" else 0)
