"""Servers that take part, with TLS and without; nginx beside them, as the limit of what a server can do here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tricorn_bench.bench.servers import ASGI, WSGI, Certificate

from benches.cases.table import UVICORN
from benches.harness import long_file
from benches.harness.nginx import nginx
from benches.harness.process import Server
from benches.harness.servers import PATIENT, Found, serving

MANY = f"{PATIENT} --backlog 4096"
OF_WSGI = {
    "tricorn-sync": f"tricorn sync -w 1 {MANY}",
    "tricorn-gthread": f"tricorn gthread -w 1 --threads 4 {MANY}",
    "tricorn-gevent": f"tricorn gevent -w 1 {MANY}",
    "gunicorn-gthread": f"gunicorn gthread -w 1 --threads 4 {MANY}",
    "granian": "granian --workers 1 --http 1 --no-ws --backlog 4096",
}
OF_ASGI = {
    "tricorn-asgi": f"tricorn asgi -w 1 {MANY}",
    "uvicorn": f"{UVICORN} --timeout-keep-alive 600 --backlog 4096",
    "hypercorn": "hypercorn --worker-class uvloop --keep-alive 600 --backlog 4096",
}
LIMIT = "nginx"
SERVERS = {**OF_WSGI, **OF_ASGI, LIMIT: LIMIT}

LOCATIONS = f"""location = / {{ return 200 "Hello, World!"; }}
        location = /file {{ alias {long_file.PATH}; }}"""


@contextmanager
def started(line: str, found: Found, pair: Certificate | None) -> Iterator[Server]:
    """A server with this certificate, or without TLS."""
    if line == LIMIT:
        with nginx(found, LOCATIONS, pair) as server:
            yield server
        return
    interface, name = (ASGI, "asgi") if line in OF_ASGI.values() else (WSGI, "wsgi")
    with serving(line, f"benches.tls.app:{name}", found, interface, certificate=pair) as server:
        yield server
