#!/usr/bin/env python3
"""Inside the sandbox: a port of loopback that leads to the model's socket and nowhere else, while a program runs.

    python3 forwarder.py SOCKET PORT PROGRAM [ARGUMENTS]

Standard library only: it runs where the agent runs. The sandbox has no network; the socket is bound into it.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading


def copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):  # one side has gone; the other learns it by the end of the stream
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def serve(listener: socket.socket, target: str) -> None:
    while True:
        client, _ = listener.accept()
        model = socket.socket(socket.AF_UNIX)
        model.connect(target)
        for pair in ((client, model), (model, client)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


def main() -> None:
    target, port, *program = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)))
    threading.Thread(target=serve, args=(listener, target), daemon=True).start()
    sys.exit(subprocess.call(program))


if __name__ == "__main__":
    main()
