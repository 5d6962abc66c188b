"""`tricorn load` over TLS, against several servers: counts, resumption, certificates, and how failures are told."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Site
from tests.harness.balancers import Balancer
from tests.harness.certificates import Authority, Issued
from tests.harness.server import run as tricorn
from tests.harness.tls import TlsServer

REQUESTS = 400
NGINX = """
    keepalive_requests 100000;
    server {{
        listen 127.0.0.1:{{port}} ssl;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {issued.certificate};
        ssl_certificate_key {issued.key};
        {more}
        location / {{ return 200 "Hello"; }}
    }}
"""
ASKS = "ssl_client_certificate {authority.certificate}; ssl_verify_client on;"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def issued(authority: Authority) -> Issued:
    return authority.issue("server")


@pytest.fixture(params=["tricorn", "nginx"])
def port(request: pytest.FixtureRequest, issued: Issued, tmp_path: Path) -> Iterator[int]:
    """Of a server with this certificate."""
    if request.param == "nginx":
        with nginx(issued, tmp_path) as server:
            yield server.port
    else:
        lines = f"certfile = {str(issued.certificate)!r}\nkeyfile = {str(issued.key)!r}\nworkers = 2\n"
        with Site(lines, workers=2) as site:
            yield site.port


def nginx(issued: Issued, directory: Path, more: str = "") -> Balancer:
    return Balancer("nginx", NGINX.format(issued=issued, more=more).replace("{{port}}", "{port}"), directory)


def load(authority: Authority, port: int, *words: str) -> subprocess.CompletedProcess[str]:
    return tricorn("load", "--json", "--cacert", str(authority.certificate), *words, f"https://localhost:{port}/hello")


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_connections_are_kept(authority: Authority, port: int) -> None:
    found = figures(load(authority, port, "-n", str(REQUESTS), "-c", "8"))
    assert (found["sent"], found["statuses"], found["errors"]) == (REQUESTS, {"200": REQUESTS}, {})
    tls = found["tls"]
    assert (found["opened"], tls["full"]["count"], tls["resumed"]["count"]) == (8, 8, 0)
    assert tls["versions"] == {"TLSv1.3": 8}
    assert 0 < tls["full"]["latency"]["p50"] <= tls["full"]["latency"]["p99"]


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_connection_for_each_request_resumes(authority: Authority, port: int, version: str) -> None:
    """Those that come before there is a ticket make full handshakes."""
    words = ("-disable-keepalive", "-tls-min", version, "-tls-max", version)
    found = figures(load(authority, port, "-n", str(REQUESTS), "-c", "4", *words))
    assert (found["statuses"], found["errors"], found["opened"]) == ({"200": REQUESTS}, {}, REQUESTS)
    tls = found["tls"]
    assert tls["full"]["count"] + tls["resumed"]["count"] == REQUESTS
    assert tls["full"]["count"] <= 4, "resumed ≥ 99 %"
    assert tls["versions"] == {f"TLSv{version}": REQUESTS}


def test_without_resumption_each_handshake_is_full(authority: Authority, port: int) -> None:
    found = figures(load(authority, port, "-n", "40", "-c", "4", "-disable-keepalive", "-no-resume"))
    assert (found["tls"]["full"]["count"], found["tls"]["resumed"]["count"]) == (40, 0)


def test_groups_are_chosen(authority: Authority, issued: Issued, tmp_path: Path) -> None:
    lines = f"certfile = {str(issued.certificate)!r}\nkeyfile = {str(issued.key)!r}\n"
    with Site(lines) as site:
        assert figures(load(authority, site.port, "-n", "4", "-c", "2"))["tls"]["groups"] == {"X25519MLKEM768": 2}
        found = figures(load(authority, site.port, "-n", "4", "-c", "2", "-no-post-quantum"))
        assert found["tls"]["groups"] == {"X25519": 2}


def test_suites_are_chosen(authority: Authority, port: int) -> None:
    for suite in ("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"):
        found = figures(load(authority, port, "-n", "4", "-c", "2", "--ciphers", suite))
        assert found["tls"]["suites"] == {suite: 2}
    unknown = load(authority, port, "-n", "4", "--ciphers", "AES128-SHA")
    assert unknown.returncode == 1
    assert "AES128-SHA is no cipher suite that is known here: expected TLS_AES_256_GCM_SHA384, " in unknown.stderr


def test_a_server_of_pythons_ssl() -> None:
    with TlsServer() as server:
        words = ("load", "--json", "-n", "40", "-c", "2", "--cacert", str(server.certificate))
        found = figures(tricorn(*words, server.url))
    assert (found["statuses"], found["errors"], found["bytes"]["body"]) == ({"200": 40}, {}, 240)


def test_websockets_over_tls(authority: Authority, issued: Issued) -> None:
    lines = f"certfile = {str(issued.certificate)!r}\nkeyfile = {str(issued.key)!r}\nworker_class = 'asgi'\n"
    with Site(lines, app="sockets:application") as site:
        words = ("--websocket", "--message-size", "2000", "-z", "0.5s", "-c", "5", "--json")
        url = f"wss://localhost:{site.port}/echo"
        found = figures(tricorn("load", *words, "--cacert", str(authority.certificate), url))
    assert found["answered"] > 5
    assert found["errors"] == {}
    assert found["tls"]["full"]["count"] + found["tls"]["resumed"]["count"] == 5


def test_a_unix_socket_and_the_name_of_the_url(authority: Authority, issued: Issued, tmp_path: Path) -> None:
    lines = f"certfile = {str(issued.certificate)!r}\nkeyfile = {str(issued.key)!r}\n"
    with Site(lines, transport="unix") as site:
        words = ("--json", "-n", "20", "-c", "2", "--cacert", str(authority.certificate), "--unix", str(site.address))
        assert figures(tricorn("load", *words, "https://localhost/hello"))["statuses"] == {"200": 20}
        refused = tricorn("load", *words, "https://elsewhere.example/hello")
        assert "https://elsewhere.example: the certificate of the server is refused" in refused.stderr


def test_a_certificate_of_the_client(authority: Authority, issued: Issued, tmp_path: Path) -> None:
    ours = authority.issue("client")
    with nginx(issued, tmp_path, ASKS.format(authority=authority)) as server:
        words = ("-n", "40", "-c", "4")
        pair = ("--cert", str(ours.certificate), "--key", str(ours.key))
        assert figures(load(authority, server.port, *words, *pair))["statuses"] == {"200": 40}
        assert figures(load(authority, server.port, *words))["statuses"] == {"400": 40}, "nginx answers then"


def test_a_certificate_that_is_not_trusted(authority: Authority, port: int, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    refused = load(other, port)
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"\nError: https://localhost:{port}: the certificate of the server is refused: no authority that is trusted "
        "here has signed it. Name the file of its authority (--cacert FILE)"
    )
    found = figures(tricorn("load", "--json", "-k", "-n", "20", "-c", "2", f"https://localhost:{port}/hello"))
    assert found["statuses"] == {"200": 20}


def test_a_handshake_that_is_never_answered() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kept: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    kept.append(silent.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept)
        thread.start()
        url = f"https://localhost:{silent.getsockname()[1]}/"
        done = tricorn("load", "--json", "-k", "-n", "6", "-c", "3", "-t", "0.3", url)
        silent.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in kept:
            one.close()
    found = json.loads(done.stdout)
    assert (done.returncode, found["errors"], found["answered"]) == (1, {"handshake": 6}, 0)


def test_a_server_without_tls(tmp_path: Path) -> None:
    with Site("") as site:
        refused = tricorn("load", "-k", f"https://localhost:{site.port}/")
    assert refused.returncode == 1
    assert f"Error: https://localhost:{site.port}: the server refused the handshake" in refused.stderr
