"""A scripted OpenAI-compatible endpoint on loopback, for tests and for trying the evaluators without a model.

    python -m tests.scripted_endpoint --port 8901 --policy echo

Policies are functions of the prompt alone, so every adapter that sends the same prompts gets the same replies.
`digest` replies with a text made of the prompt's hash, longer than any budget: nothing in it can come from a session.
`echo` keeps the tail of what it is shown: a model that copies the last session. Faults replace replies, see `FAULTS`.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from rewards.commands import Parser

Messages = list[dict[str, str]]
Policy = Callable[[Messages], str | dict[str, object]]
"""The reply's text, or fields of the whole message (tool calls)."""

Fault = Callable[[Messages, int], str | None]
"""(messages, number of the request, from 1) -> the name of a fault, or None for an honest reply."""

ROOT = Path(__file__).parents[1]

FAULTS = ("429", "500", "window", "html", "empty", "null", "reasoning", "truncated", "no-choices", "hang")


def digest(messages: Messages) -> str:
    """A long reply that depends on every byte of the prompt."""
    key = hashlib.sha256(json.dumps([(m["role"], m["content"]) for m in messages]).encode()).hexdigest()
    return f"note {key[:16]} " * 40


def echo(messages: Messages) -> str:
    """The last 400 characters before the final instruction paragraph."""
    return messages[-1]["content"].rpartition("\n\n")[0][-400:]


POLICIES: dict[str, Policy] = {"digest": digest, "echo": echo}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """Connections that wait to be taken: of more than the usual 5 at once some would be tried again a second later."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients end with connections open."""


class ScriptedEndpoint:
    """Context manager: serves on a free port, records every request's messages as (role, content) pairs."""

    def __init__(self, policy: Policy = digest, fault: Fault | None = None, port: int = 0) -> None:
        self.policy, self.fault = policy, fault or (lambda messages, count: None)
        self.requests: list[tuple[tuple[str, str], ...]] = []
        self.bodies: list[str] = []
        self.count = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve_forever(self) -> None:
        self._server.serve_forever()

    def terminate(self, arguments: Sequence[str], requests: int, *, within: float) -> str:
        """Run `python -m ...`, send it SIGTERM at the given number of requests, of which some hang, and return what it
        wrote to standard error. It has to end `within` seconds, as interrupted."""
        command = [sys.executable, "-m", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        deadline = time.monotonic() + 60
        while self.count < requests:
            assert time.monotonic() < deadline, "the program did not get to its hanging requests"
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=within)
        assert process.returncode == 130, error
        return error

    def reply(self, body: dict) -> tuple[int, str, str]:
        """(status, content type, text) for one request; records it."""
        messages = body["messages"]
        with self._lock:
            self.requests.append(tuple((m["role"], _text(m["content"])) for m in messages))
            self.bodies.append(json.dumps(body))
            self.count += 1
            fault = self.fault(_plain(messages), self.count)
        if fault in ("500", "429"):
            return int(fault), "application/json", json.dumps({"error": {"message": "scripted failure"}})
        if fault == "window":
            refusal = {"error": {"message": "This model's maximum context length is 10 tokens"}}
            return 400, "application/json", json.dumps(refusal)
        if fault == "html":
            return 200, "text/html", "<html><body>gateway login</body></html>"
        if fault == "hang":
            time.sleep(3600)
        said = self.policy(_plain(messages))
        message: dict[str, object] = {"role": "assistant", **(said if isinstance(said, dict) else {"content": said})}
        if fault == "empty":
            message["content"] = ""
        if fault == "null":
            message["content"] = None
        if fault == "reasoning":
            message |= {"content": None, "reasoning_content": "thinking about it"}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        if fault == "no-choices":
            choices = []
        completion = {
            "id": f"scripted-{self.count}",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", "scripted"),
            "choices": choices,
            "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
        }
        text = json.dumps(completion)
        return 200, "application/json", text[: len(text) // 2] if fault == "truncated" else text

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536  # one packet a reply: several would wait for each other's acknowledgement

            def do_GET(self) -> None:
                self._send(200, "application/json", json.dumps({"object": "list", "data": [{"id": "scripted"}]}))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._send(*endpoint.reply(body))

            def _send(self, status: int, content_type: str, text: str) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def _text(content: str | list[dict[str, str]] | None) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def _plain(messages: list[dict]) -> Messages:
    return [{"role": m["role"], "content": _text(m["content"])} for m in messages]


EXAMPLE = """example:
  python -m tests.scripted_endpoint --port 8901 --policy echo"""


def main(argv: list[str] | None = None) -> None:
    parser = Parser("python -m tests.scripted_endpoint", __doc__ or "", EXAMPLE)
    parser.add_argument("--port", type=int, default=8901)
    parser.add_argument("--policy", choices=sorted(POLICIES), default="echo")
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--every", type=int, default=1, help="only every N-th reply is faulty")
    args = parser.read(argv)
    endpoint = ScriptedEndpoint(
        POLICIES[args.policy], lambda _, count: args.fault if count % args.every == 0 else None, args.port
    )
    print(f"scripted endpoint at {endpoint.url} (Ctrl-C ends it)", flush=True)
    endpoint.serve_forever()


if __name__ == "__main__":
    main()
