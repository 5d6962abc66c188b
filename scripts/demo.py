"""Serves an example with tricorn and shows it answering.

With a terminal it goes on serving until Ctrl-C. Without one, or with DEMO_ONCE=1, it shows one answer and stops.
DEMO chooses the example: flask_hello, tornado_app, aiohttp_app, or fastapi_app, whose chat a browser can then open.
PORT chooses the port; without it 8000, or any free one when 8000 is taken.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What is said on the command line for it, and which page is shown.
EXAMPLES = {
    "flask_hello": ("-w 2 app:app", "/"),
    "fastapi_app": ("-k asgi app:app", "/worker"),
    "tornado_app": ("-k tornado app:app", "/"),
    "aiohttp_app": ("-k aiohttp app:make_app", "/"),
}
START_SECONDS = 20
STOP_SECONDS = 35


def main() -> int:
    once = os.environ.get("DEMO_ONCE") == "1" or not sys.stdin.isatty()
    name = os.environ.get("DEMO") or "flask_hello"
    if name not in EXAMPLES:
        raise SystemExit(f"DEMO={name}: choose one of {', '.join(EXAMPLES)}")
    options, page = EXAMPLES[name]
    port = choose_port()
    shown = f"tricorn -b 127.0.0.1:{port} {options}"
    print(f"== Serving examples/{name}:  {shown}", flush=True)
    command = [sys.executable, "-m", "tricorn", *shown.split()[1:]]
    server = subprocess.Popen(command, cwd=ROOT / "examples" / name, start_new_session=once)
    try:
        answer = first_answer(server, port, page)
        if answer is None:
            return server.poll() or 1
        print(f"\n$ curl -i http://127.0.0.1:{port}{page}\n{answer.rstrip()}\n", flush=True)
        if once:
            return stop(server)
        print(f"It is serving at http://127.0.0.1:{port}/ now. Ctrl-C stops it.", flush=True)
        return server.wait()
    except KeyboardInterrupt:
        # The terminal sent the signal to the server too.
        return 0 if server.wait(STOP_SECONDS) == 0 else 1
    finally:
        if server.poll() is None:
            server.kill()


def choose_port() -> int:
    wanted = os.environ.get("PORT")
    if wanted:
        return int(wanted)
    for candidate in (8000, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            port: int = probe.getsockname()[1]
            return port
    raise SystemExit("no free port on 127.0.0.1")


def first_answer(server: subprocess.Popen[bytes], port: int, page: str) -> str | None:
    """Status line, headers and body of the page, as soon as the server is up."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            print(f"The server left with exit status {server.returncode} before it answered.", file=sys.stderr)
            return None
        try:
            return get(port, page)
        except OSError:
            time.sleep(0.1)
    print(f"No answer within {START_SECONDS} s.", file=sys.stderr)
    return None


def get(port: int, page: str) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(f"GET {page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    return received.decode("utf-8", "replace").replace("\r\n", "\n")


def stop(server: subprocess.Popen[bytes]) -> int:
    print("== One answer shown; stopping (SIGTERM)", flush=True)
    server.send_signal(signal.SIGTERM)
    status = server.wait(STOP_SECONDS)
    print(f"== Stopped with exit status {status}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
