"""Between verifiers' evaluator and the endpoint: the key, the time limit and the retries are kept here, not there.

The evaluator is a program of its own. It writes what an endpoint says into traces and logs, keys included, it would
wait for a reply for ever, and it knows no Retry-After. So it is given this server on loopback, and a pass in place of
the key; requests go through unchanged, and replies but for what `Endpoint.forward` mends.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from lme_v2_env.chat import Endpoint, EndpointError, Garbled, OverLong

PASS_VAR = "SUPERSEDE_RELAY_PASS"
"""Environment variable in which the evaluator finds its pass."""

GIVEN_UP = 424
"""Status for what the relay has tried often enough: the evaluator's harness does not try it again."""


COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


class Relay(ThreadingHTTPServer):
    """Serves on a free port of loopback. Other users of this machine have no pass."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint, self.ticket = endpoint, secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def answer(self, payload: dict[str, Any]) -> tuple[int, str, str]:
        """(status, content type, text) for one completion."""
        try:
            reply = self.endpoint.forward(payload)
            if not all(name in reply.get("usage", {}) for name in COUNTS):
                reply.pop("usage", None)  # the evaluator takes whole counts or none
            return 200, "application/json", json.dumps(reply)
        except OverLong as error:
            return 400, "text/plain", f"context length: {error}"  # words by which the evaluator knows it
        except Garbled as error:
            return 502, "text/plain", str(error)
        except EndpointError as error:
            return GIVEN_UP, "text/plain", str(error)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An evaluator that was ended leaves requests behind; nobody reads their replies."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # one packet a reply: several would wait for each other's acknowledgement

    def do_POST(self) -> None:
        relay = cast(Relay, self.server)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        given = self.headers.get("Authorization", "")
        if not secrets.compare_digest(given.encode(), f"Bearer {relay.ticket}".encode()):
            self._send(401, "text/plain", "no pass")
        elif not self.path.endswith("/chat/completions"):
            self._send(404, "text/plain", "chat completions only")
        else:
            self._send(*relay.answer(json.loads(body)))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def relaying(endpoint: Endpoint) -> Generator[Relay]:
    """A relay to `endpoint` while the block runs."""
    relay = Relay(endpoint)
    threading.Thread(target=relay.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield relay
    finally:
        relay.shutdown()
        relay.server_close()
