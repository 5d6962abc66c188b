"""Starts the server that connectconformance asks for on standard input, and says where it is.

    python serve.py ARGUMENT…

The arguments are the server's command; `{port}` in them is a free port, and `{tls}` stands for the options of its TLS.
Both messages are protocol buffers after a length of four bytes.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from messages.connectrpc.conformance.v1.server_compat_pb import ServerCompatRequest, ServerCompatResponse

PATIENCE = 60
"""Seconds until the server has to accept."""


def main(arguments: list[str]) -> None:
    # It ends by this signal: a server that has been started ends before.
    signal.signal(signal.SIGTERM, leave)
    length = int.from_bytes(sys.stdin.buffer.read(4), "big")
    asked = ServerCompatRequest.from_binary(sys.stdin.buffer.read(length))
    port = free_port()
    environ = {**os.environ, "MESSAGE_LIMIT": str(asked.message_receive_limit or "")}
    with tempfile.TemporaryDirectory() as directory:
        command = filled(arguments, port, secured(asked, Path(directory)))
        # What it says is no message: standard output is connectconformance's.
        with subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=sys.stderr) as server:
            try:
                wait(server, port)
                tell(asked, port)
                server.wait()
            finally:
                server.terminate()


def leave(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def secured(asked: ServerCompatRequest, directory: Path) -> list[str]:
    """The options of gunicorn's names that have the server use the certificate it is given."""
    if not asked.use_tls:
        return []
    assert asked.server_creds is not None
    given = {
        "--certfile": asked.server_creds.cert,
        "--keyfile": asked.server_creds.key,
        "--ca-certs": asked.client_tls_cert,
    }
    options = []
    for option, content in given.items():
        if content:
            file = directory / option.strip("-")
            file.write_bytes(content)
            options += [option, str(file)]
    return [*options, "--cert-reqs", "2"] if asked.client_tls_cert else options


def filled(arguments: list[str], port: int, tls: list[str]) -> list[str]:
    command: list[str] = []
    for argument in arguments:
        command += tls if argument == "{tls}" else [argument.replace("{port}", str(port))]
    return command


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def wait(server: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > end:
                raise SystemExit("the server does not accept") from None
            time.sleep(0.05)


def tell(asked: ServerCompatRequest, port: int) -> None:
    answer = ServerCompatResponse(host="127.0.0.1", port=port)
    if asked.use_tls and asked.server_creds is not None:
        answer.pem_cert = asked.server_creds.cert
    message = answer.to_binary()
    sys.stdout.buffer.write(len(message).to_bytes(4, "big") + message)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
