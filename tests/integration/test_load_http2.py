"""`tricorn load --http2` against servers that others have written: counts, streams, bodies, GOAWAY, and no HTTP/2."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Pool
from tests.harness.balancers import Balancer, Running
from tests.harness.certificates import Authority, Issued
from tests.harness.server import free_port
from tests.harness.server import run as tricorn

REQUESTS = 400
APPLICATION = """\
async def application(scope, receive, send):
    length, is_complete = 0, scope["type"] != "http"
    while not is_complete:
        message = await receive()
        length += len(message["body"])
        is_complete = not message["more_body"]
    content = b"Hello" if scope["path"] == "/hello" else b"x" * length
    headers = [(b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})
"""
# Other servers of the application: their command lines, with PORT.
COMMANDS = {
    "hypercorn": [sys.executable, "-m", "hypercorn", "--bind", "127.0.0.1:PORT", "application:application"],
}
SECURE = {"hypercorn": ["--certfile", "CERTIFICATE", "--keyfile", "KEY"]}
NGINX = """
    keepalive_requests {most};
    client_max_body_size 10m;
    server {{
        listen 127.0.0.1:{{port}} {tls} http2;
        ssl_certificate {issued.certificate};
        ssl_certificate_key {issued.key};
        location /hello {{ return 200 "Hello"; }}
    }}
"""


class Served(Running):
    """A server of `COMMANDS`."""

    def __init__(self, name: str, directory: Path, issued: Issued | None) -> None:
        port = free_port()
        (directory / "application.py").write_text(APPLICATION)
        words = COMMANDS[name] + (SECURE[name] if issued else [])
        named = {"PORT": str(port)}
        if issued:
            named |= {"CERTIFICATE": str(issued.certificate), "KEY": str(issued.key)}
        for place, value in named.items():
            words = [word.replace(place, value) for word in words]
        super().__init__(["env", "-C", str(directory), *words], port)

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
        except OSError:
            return False
        return True


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


Start = Callable[[bool], Running]


@pytest.fixture(params=["nginx", *COMMANDS])
def start(request: pytest.FixtureRequest, authority: Authority, tmp_path: Path) -> Start:
    """Makes a server, with TLS if that is wanted."""
    issued = authority.issue("server")
    if request.param == "nginx":
        return lambda is_secure: nginx(issued, tmp_path, is_secure=is_secure)
    return lambda is_secure: Served(request.param, tmp_path, issued if is_secure else None)


@pytest.fixture(params=["http", "https"])
def url(request: pytest.FixtureRequest, start: Start) -> Iterator[str]:
    with start(request.param == "https") as server:
        yield f"{request.param}://localhost:{server.port}"


def nginx(issued: Issued, directory: Path, *, is_secure: bool, most: int = 1_000_000) -> Balancer:
    text = NGINX.format(issued=issued, tls="ssl" if is_secure else "", most=most)
    return Balancer("nginx", text, directory)


def load(authority: Authority, *words: str) -> subprocess.CompletedProcess[str]:
    trust = ("--cacert", str(authority.certificate)) if words[-1].startswith("https:") else ()
    return tricorn("load", "--json", "--http2", *trust, *words)


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_requests_share_connections(authority: Authority, url: str) -> None:
    found = figures(load(authority, "-n", str(REQUESTS), "-c", "4", "--streams", "10", f"{url}/hello"))
    assert (found["sent"], found["statuses"], found["errors"]) == (REQUESTS, {"200": REQUESTS}, {})
    assert (found["opened"], found["bytes"]["body"]) == (4, REQUESTS * len("Hello"))
    assert 0 < found["latency"]["p50"] <= found["latency"]["p99"]


def test_requests_at_a_rate(authority: Authority, url: str) -> None:
    words = ("--rate", "200", "-z", "1s", "-c", "2", "--streams", "5")
    found = figures(load(authority, *words, f"{url}/hello"))
    assert (found["sent"], found["statuses"], found["unsent"]) == (200, {"200": 200}, 0)


def test_a_connection_for_each_request(authority: Authority, url: str) -> None:
    found = figures(load(authority, "-n", "40", "-c", "4", "-disable-keepalive", f"{url}/hello"))
    assert (found["statuses"], found["errors"], found["opened"]) == ({"200": 40}, {}, 40)


@pytest.mark.parametrize("length", [0, 1000, 3_000_000])
def test_bodies_go_through_the_windows(authority: Authority, length: int, tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"x" * length)
    with Served("hypercorn", tmp_path, None) as server:
        url = f"http://localhost:{server.port}/echo"
        words = ("-n", "12", "-c", "2", "--streams", "3", "-m", "POST", "-D", str(body))
        found = figures(load(authority, *words, url))
    assert (found["statuses"], found["errors"]) == ({"200": 12}, {})
    assert found["bytes"]["body"] == 12 * length
    assert found["bytes"]["sent"] > 12 * length


def test_a_server_that_ends_its_connections(authority: Authority, tmp_path: Path) -> None:
    """nginx sends GOAWAY after `keepalive_requests`."""
    with nginx(authority.issue("server"), tmp_path, is_secure=False, most=25) as server:
        words = ("-n", str(REQUESTS), "-c", "2", "--streams", "5", f"http://localhost:{server.port}/hello")
        found = figures(load(authority, *words))
    assert (found["statuses"], found["errors"]) == ({"200": REQUESTS}, {})
    assert found["opened"] >= REQUESTS / (25 + 5)


def test_a_server_without_http2_is_an_error(authority: Authority, pool: Pool) -> None:
    server = pool.get()
    done = load(authority, f"http://127.0.0.1:{server.port}/hello")
    assert done.returncode == 1
    assert f"127.0.0.1:{server.port} does not speak HTTP/2 without TLS (prior knowledge)" in done.stderr
    assert "omit --http2" in done.stderr


def test_a_server_that_does_not_agree_by_alpn(authority: Authority, tmp_path: Path) -> None:
    text = NGINX.format(issued=authority.issue("server"), tls="ssl", most=100).replace(" http2;", ";")
    with Balancer("nginx", text, tmp_path) as server:
        done = load(authority, f"https://localhost:{server.port}/hello")
    assert done.returncode == 1
    assert "the server does not agree to HTTP/2" in done.stderr
