"""Servers that take part, with TLS and without; nginx beside them, as the limit of what a server can do here."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tricorn_bench.bench.servers import ASGI, WSGI, Certificate

from benches.cases.table import UVICORN
from benches.harness.process import DidNotServe, Server, free_port
from benches.harness.servers import PATIENT, Found, serving, shown
from benches.tls import long_file

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

NGINX = """\
{user}daemon off;
worker_processes 1;
worker_rlimit_nofile 60000;
pid {folder}/pid;
error_log stderr warn;
events {{ worker_connections 20000; }}
http {{
    access_log off;
    keepalive_timeout 600;
    keepalive_requests 1000000000;
    sendfile on;
    tcp_nopush on;
    {temporary}
    server {{
        listen 127.0.0.1:{port}{ssl} backlog=4096;
        {tls}
        location = / {{ return 200 "Hello, World!"; }}
        location = /file {{ alias {file}; }}
    }}
}}
"""
TLS = """ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {pair.file};
        ssl_certificate_key {pair.key_file};"""
KINDS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def started(line: str, found: Found, pair: Certificate | None) -> Iterator[Server]:
    """A server with this certificate, or without TLS."""
    if line == LIMIT:
        with _nginx(found, pair) as server:
            yield server
        return
    interface, name = (ASGI, "asgi") if line in OF_ASGI.values() else (WSGI, "wsgi")
    with serving(line, f"benches.tls.app:{name}", found, interface, certificate=pair) as server:
        yield server


@contextmanager
def _nginx(found: Found, pair: Certificate | None) -> Iterator[Server]:
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None:
        raise DidNotServe("it is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="tricorn-bench-nginx-") as folder:
        text = NGINX.format(
            user="user root;\n" if Path.home() == Path("/root") else "",
            folder=folder,
            temporary=" ".join(f"{kind}_temp_path {folder}/{kind};" for kind in KINDS),
            port=port,
            ssl=" ssl" if pair else "",
            tls=TLS.format(pair=pair) if pair else "",
            file=long_file.PATH,
        )
        configuration = Path(folder, "nginx.conf")
        configuration.write_text(text)
        command = [program, "-p", folder, "-c", str(configuration), "-e", "stderr"]
        found.commands["nginx, TLS" if pair else "nginx"] = shown([program, "-c", "nginx.conf"], port)
        with Server(command, port, secure=pair is not None) as server:
            yield server
