"""Outside the sandbox: the only way from Codex to its model. It knows the key, the sandbox does not.

Two requests pass: a response asked of the one model, and the list of models. What the model's provider would do itself
is a network that the sandbox does not see: its tools (a search of the web, say) are taken out, and a request that has
it fetch an address or take up what is stored with it is refused. A reply that repeats the key passes without it.
"""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import httpx

from rewards.address import stream_without_key, usable_key, without_key

LOCAL_TOOLS = ("function", "custom", "local_shell", "namespace")
"""Types of tools that the client runs."""

ADDRESSES = ("image_url", "file_url")
"""Fields that hold a picture or file, or an address from which the provider fetches one."""

STORED = ("background", "conversation", "previous_response_id", "prompt")
"""Fields that lead out of the one request."""

LARGEST = 64 << 20
"""Bytes of a request."""

AT_ONCE, ALTOGETHER = 4, 1000
"""Requests of one attempt: a command in the sandbox could ask, too."""


@contextmanager
def serving(place: Path, base_url: str, model: str, api_key_var: str) -> Generator[Gateway, None, None]:
    """A gateway on a unix socket at `place`, in a folder that is the harness's alone."""
    server = Gateway(place, base_url, model, api_key_var)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Gateway(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """`failure` says why the endpoint failed when it was last asked, if it did."""

    daemon_threads = True

    def __init__(self, place: Path, base_url: str, model: str, api_key_var: str, timeout: float = 600.0) -> None:
        super().__init__(str(place), _Handler)
        place.chmod(0o666)  # the sandbox may have another user; the folder around it keeps others away
        self.base_url, self.model, self.timeout_s = base_url.rstrip("/"), model, timeout
        self.key = usable_key(api_key_var)
        self.failure = ""
        self.asked = 0
        self.slots = threading.BoundedSemaphore(AT_ONCE)


def permitted(body: Any) -> bool:
    """Whether a request may pass. Tools that its sender does not run itself are taken out of it, wherever they are."""
    if not isinstance(body, dict) or any(body.get(name) for name in STORED):
        return False
    waiting: list[Any] = [body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            if isinstance(part.get("tools"), list):
                part["tools"] = [t for t in part["tools"] if isinstance(t, dict) and t.get("type") in LOCAL_TOOLS]
            if any(_leads_away(part.get(name)) for name in ADDRESSES):
                return False
            waiting += part.values()
    return True


def _leads_away(value: Any) -> bool:
    address = value.get("url") if isinstance(value, dict) else value
    return isinstance(address, str) and not address.startswith("data:")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # the end of the connection ends a stream

    timeout = 600
    """Seconds without a byte of a request."""

    def handle(self) -> None:
        gateway = cast(Gateway, self.server)
        with gateway.slots:
            gateway.asked += 1
            if gateway.asked <= ALTOGETHER:
                super().handle()

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            self._forward("GET", "models", None)
        else:
            self.send_error(403)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        sized = length.isascii() and length.isdigit() and len(length) < 10 and int(length) <= LARGEST
        if not self.path.split("?")[0].endswith("/responses") or not sized:
            self.send_error(403)
            return
        try:
            body = json.loads(self.rfile.read(int(length)))
            allowed = permitted(body)
        except (ValueError, RecursionError):
            self.send_error(400)
            return
        if not allowed:
            self.send_error(403)
            return
        self._forward("POST", "responses", json.dumps(body | {"model": cast(Gateway, self.server).model}).encode())

    def _forward(self, method: str, route: str, body: bytes | None) -> None:
        gateway = cast(Gateway, self.server)
        headers = {"Authorization": f"Bearer {gateway.key}", "Content-Type": "application/json"}
        url = f"{gateway.base_url}/{route}"
        try:
            with httpx.stream(method, url, content=body, headers=headers, timeout=gateway.timeout_s) as reply:
                if method == "POST":
                    gateway.failure = "" if reply.status_code == 200 else f"status {reply.status_code}"
                self.send_response(reply.status_code)
                kind = reply.headers.get("content-type", "application/json")
                self.send_header("Content-Type", without_key(kind, gateway.key))
                self.end_headers()
                for piece in stream_without_key(reply.iter_bytes(), gateway.key):
                    self.wfile.write(piece)
                    self.wfile.flush()
        except httpx.HTTPError as error:
            reason = " ".join(without_key(str(error), gateway.key).split())
            gateway.failure = f"{type(error).__name__}: {reason[:200]}"
            self.close_connection = True
        except BrokenPipeError:
            pass  # the agent was ended

    def log_message(self, format: str, *args: object) -> None:
        pass
