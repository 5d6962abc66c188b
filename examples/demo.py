"""Serves an example with tricorn and shows it answering.

With a terminal it goes on serving until Ctrl-C. Without one, or with DEMO_ONCE=1, it shows one answer and stops.
DEMO chooses the example: flask_hello, tornado_app, aiohttp_app, or fastapi_app, whose chat a browser can then open.
kafka_flush is served twice under load, as it comes and with a cure, and the figures of both are shown.
PORT chooses the port; without it 8000, or any free one when 8000 is taken.
DEMO_TLS=1 serves over TLS, with a certificate that is made on the spot and removed at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: What is said on the command line for it, and which page is shown.
EXAMPLES = {
    "flask_hello": ("-w 2 app:app", "/"),
    "fastapi_app": ("-k asgi app:app", "/worker"),
    "tornado_app": ("-k tornado app:app", "/"),
    "aiohttp_app": ("-k aiohttp app:make_app", "/"),
}


class Comparison(NamedTuple):
    """An example that is loaded twice: as it comes, and with a setting more."""

    options: str
    setting: str
    loaded: str
    """The page that twenty clients ask for without a pause."""
    unrelated: str
    """A page that has nothing to do with it, asked for at a steady rate meanwhile."""


COMPARED = {"kafka_flush": Comparison("-w 2 -k gevent app:app", "--doctor heal", "/flush", "/ping")}
CLIENTS, RATE, LOAD_SECONDS = 20, 50, 6
START_SECONDS = 20
STOP_SECONDS = 35


def main() -> int:
    once = os.environ.get("DEMO_ONCE") == "1" or not sys.stdin.isatty()
    name = os.environ.get("DEMO") or "flask_hello"
    if name in COMPARED:
        return compare(name, COMPARED[name])
    if name not in EXAMPLES:
        raise SystemExit(f"DEMO={name}: choose one of {', '.join((*EXAMPLES, *COMPARED))}")
    with certificate_if(os.environ.get("DEMO_TLS") == "1") as certificate:
        return show(name, certificate, once)


@contextlib.contextmanager
def certificate_if(wanted: bool) -> Iterator[str | None]:
    """A file with a certificate for localhost and its key."""
    if not wanted:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="tricorn-demo-") as directory:
        file = f"{directory}/dev.pem"
        print(f"== Making a certificate:  tricorn dev-cert --out {file}", flush=True)
        subprocess.run(
            [sys.executable, "-m", "tricorn", "dev-cert", "--out", file], check=True, stdout=subprocess.DEVNULL
        )
        yield file


def show(name: str, certificate: str | None, once: bool) -> int:
    """Serves the example; `once`: until it has answered."""
    options, page = EXAMPLES[name]
    port = choose_port()
    scheme, trust = ("http", "") if certificate is None else ("https", f"--cacert {certificate} ")
    if certificate is not None:
        options = f"--certfile {certificate} {options}"
    server = serve(name, port, options, once)
    try:
        answer = first_answer(server, port, page, certificate)
        if answer is None:
            return server.poll() or 1
        print(f"\n$ curl -i {trust}{scheme}://127.0.0.1:{port}{page}\n{answer.rstrip()}\n", flush=True)
        if once:
            return stop(server)
        print(f"It is serving at {scheme}://127.0.0.1:{port}/ now. Ctrl-C stops it.", flush=True)
        return server.wait()
    except KeyboardInterrupt:
        # The terminal sent the signal to the server too.
        return 0 if server.wait(STOP_SECONDS) == 0 else 1
    finally:
        if server.poll() is None:
            server.kill()


def serve(name: str, port: int, options: str, apart: bool) -> subprocess.Popen[bytes]:
    """Starts the server; `apart` from the terminal, whose Ctrl-C goes to its whole group."""
    shown = f"tricorn -b 127.0.0.1:{port} {options}"
    print(f"== Serving examples/{name}:  {shown}", flush=True)
    command = [sys.executable, "-m", "tricorn", *shown.split()[1:]]
    return subprocess.Popen(command, cwd=ROOT / "examples" / name, start_new_session=apart)


def compare(name: str, comparison: Comparison) -> int:
    figures: list[tuple[str, Figures, Figures]] = []
    for setting in ("", comparison.setting):
        port = choose_port()
        server = serve(name, port, f"{setting} {comparison.options}".strip(), apart=True)
        try:
            if first_answer(server, port, comparison.loaded) is None:
                return server.poll() or 1
            print(
                f"== For {LOAD_SECONDS} s {CLIENTS} clients ask for {comparison.loaded}, and {comparison.unrelated} is "
                f"asked for {RATE} times a second",
                flush=True,
            )
            busy = load(port, comparison.loaded, "-c", str(CLIENTS), "-z", f"{LOAD_SECONDS}s")
            steady = load(port, comparison.unrelated, "--rate", str(RATE), "-c", str(RATE), "-z", f"{LOAD_SECONDS}s")
            figures.append((setting or "as it comes", result(busy), result(steady)))
            stop(server)
        finally:
            if server.poll() is None:
                server.kill()
    print(f"\n{'':16} {comparison.unrelated:>12} p50 {'p99':>10} {comparison.loaded + '/s':>14} {'p50':>10}")
    for setting, busy_figures, steady_figures in figures:
        print(
            f"{setting:16} {milliseconds(steady_figures, 'p50'):>16} {milliseconds(steady_figures, 'p99'):>10} "
            f"{busy_figures['rate']:>14.1f} {milliseconds(busy_figures, 'p50'):>10}"
        )
    return 0


Figures = dict[str, Any]


def load(port: int, page: str, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tricorn", "load", "--json", *options, f"http://127.0.0.1:{port}{page}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def result(run: subprocess.Popen[bytes]) -> Figures:
    out, _ = run.communicate()
    figures: Figures = json.loads(out)
    return figures


def milliseconds(figures: Figures, percentile: str) -> str:
    return f"{figures['latency'][percentile] * 1000:.1f} ms"


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


def first_answer(server: subprocess.Popen[bytes], port: int, page: str, certificate: str | None = None) -> str | None:
    """Status line, headers and body of the page, as soon as the server is up."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            print(f"The server left with exit status {server.returncode} before it answered.", file=sys.stderr)
            return None
        try:
            return get(port, page, certificate)
        except OSError:
            time.sleep(0.1)
    print(f"No answer within {START_SECONDS} s.", file=sys.stderr)
    return None


def get(port: int, page: str, certificate: str | None) -> str:
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
        if certificate is not None:
            context = ssl.create_default_context(cafile=certificate)
            connection = stack.enter_context(context.wrap_socket(connection, server_hostname="127.0.0.1"))
        connection.sendall(f"GET {page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    return received.decode("utf-8", "replace").replace("\r\n", "\n")


def stop(server: subprocess.Popen[bytes]) -> int:
    print("== Stopping (SIGTERM)", flush=True)
    server.send_signal(signal.SIGTERM)
    status = server.wait(STOP_SECONDS)
    print(f"== Stopped with exit status {status}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
