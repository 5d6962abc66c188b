"""nginx beside the servers: the limit of what can be done where no application runs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tricorn_bench.bench.servers import Certificate

from benches.harness.process import DidNotServe, Server, free_port
from benches.harness.servers import Found, shown

CONFIGURATION = """\
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
        {inside}
    }}
}}
"""
TLS = """ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {pair.file};
        ssl_certificate_key {pair.key_file};"""
KINDS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def nginx(found: Found, inside: str, pair: Certificate | None = None) -> Iterator[Server]:
    """One worker with these directives in its `server`. Raises DidNotServe where it is not installed."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None:
        raise DidNotServe("it is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="tricorn-bench-nginx-") as folder:
        text = CONFIGURATION.format(
            user="user root;\n" if Path.home() == Path("/root") else "",
            folder=folder,
            temporary=" ".join(f"{kind}_temp_path {folder}/{kind};" for kind in KINDS),
            port=port,
            ssl=" ssl" if pair else "",
            tls=TLS.format(pair=pair) if pair else "",
            inside=inside,
        )
        configuration = Path(folder, "nginx.conf")
        configuration.write_text(text)
        command = [program, "-p", folder, "-c", str(configuration), "-e", "stderr"]
        found.commands["nginx, TLS" if pair else "nginx"] = shown([program, "-c", "nginx.conf"], port)
        with Server(command, port, secure=pair is not None) as server:
            yield server
