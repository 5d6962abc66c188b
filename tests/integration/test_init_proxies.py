"""`tricorn init nginx`, `apache` and `haproxy`: the proxies with the files as they are printed, before a server."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn_tools.init.haproxy import EVERY
from websockets.sync.client import connect

from tests.harness import REFERENCE, Load, Site, Wire, until
from tests.harness.apache import apache_around, needs, open_to_apache
from tests.harness.balancers import Answering, nginx_around, program
from tests.harness.deadline import PATIENCE
from tests.harness.scrape import scrape, value
from tests.harness.server import free_port, run

pytestmark = pytest.mark.skipif(REFERENCE, reason="gunicorn prints no files")

PROXIES = ("nginx", "apache", "haproxy")

APP = """\
import asyncio
import json

async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (event := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": event["text"][::-1]})
        return
    fields = {name.decode(): value.decode() for name, value in scope["headers"]}
    told = {"client": scope["client"][0], "scheme": scope["scheme"], "fields": fields, "length": 0}
    told["target"] = scope["raw_path"].decode() + "?" + scope["query_string"].decode()
    more = True
    while more:
        event = await receive()
        told["length"] += len(event.get("body", b""))
        more = event.get("more_body")
    if scope["path"] == "/stream":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await asyncio.sleep(float(scope["query_string"]))
        await send({"type": "http.response.body", "body": b"last"})
        return
    body = json.dumps(told).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
"""

CONFIG = """
workers = 2
worker_class = "asgi"
keepalive = 30
drain_delay = 3
trusted_proxy_headers = "x-forwarded-for,x-forwarded-proto,x-forwarded-host"
"""


def printed(kind: str, directory: Path, *words: str) -> Path:
    """The file of this kind, written into a directory; and around one for nginx what it needs to be started."""
    done = run("init", kind, "-o", str(directory), "--force", *words, cwd=directory)
    assert done.returncode == 0, done.stderr
    written = Path(done.stdout.strip())
    if kind != "nginx":
        return written
    main = directory / "nginx.main"
    main.write_text(nginx_around(f"    include {directory}/*.conf;", directory))
    return main


def command(kind: str, path: Path, *, check: bool = False) -> list[str]:
    if kind == "nginx":
        return [program(kind), "-p", str(path.parent), "-c", str(path), "-e", "stderr", *(["-t"] if check else [])]
    if kind == "apache":
        site = path.read_text()
        return apache_around(site, path.parent, *needs(site), check=check)
    return [program(kind), *(["-c"] if check else ["-db"]), "-f", str(path)]


class Proxy(Answering):
    """A proxy before a server, started with the file as it was printed."""

    def __init__(self, kind: str, server: Site, directory: Path) -> None:
        port = free_port()
        words = ("--public", f"127.0.0.1:{port}", "-c", str(server.conf), "-b", server.bind)
        super().__init__(command(kind, printed(kind, directory, *words)), port)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, int]]:
    """A server on a unix socket, and the port of its admin listener."""
    port = free_port()
    with Site(
        f"{CONFIG}admin_bind = '127.0.0.1:{port}'\n", app="shop:application", workers=2, files={"shop.py": APP},
        transport="unix",
    ) as server:  # fmt: skip
        open_to_apache(server.directory)
        yield server, port


@pytest.fixture(scope="module", params=PROXIES)
def proxy(
    request: pytest.FixtureRequest, served: tuple[Site, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    with Proxy(request.param, served[0], tmp_path_factory.mktemp(request.param)) as started:
        yield started


def test_the_proxys_word_counts_and_the_clients_does_not(proxy: Proxy) -> None:
    with proxy.connect() as wire:
        lies = (
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "evil"),
            ("X-Forwarded-Ssl", "on"),
            ("Forwarded", "for=6.6.6.6"),
        )
        told = json.loads(wire.get("/", ("X-Forwarded-For", "6.6.6.6"), *lies).body)
    assert told["client"] == "127.0.0.1"
    assert told["scheme"] == "http"
    assert not {"x-forwarded-ssl", "forwarded"} & told["fields"].keys()
    assert told["fields"]["x-forwarded-host"] == told["fields"]["host"]
    assert told["fields"]["x-request-start"].startswith("t=")


def test_a_websocket_passes(proxy: Proxy) -> None:
    with connect(f"ws://127.0.0.1:{proxy.port}/", open_timeout=PATIENCE, proxy=None) as socket:
        socket.send("abc")
        assert socket.recv(PATIENCE) == "cba"


def test_a_target_and_a_body_pass_as_they_are(proxy: Proxy) -> None:
    with proxy.connect() as wire:
        target = "/a%2Fb%20c/~d?e=f%26g&h"
        assert json.loads(wire.get(target).body)["target"] == target
        for size in (1, 3_000_000):
            assert json.loads(wire.ask("POST", "/", (), b"x" * size).body)["length"] == size
        chunked = wire.ask("POST", "/", (("Transfer-Encoding", "chunked"),), b"3\r\nabc\r\n0\r\n\r\n")
        assert json.loads(chunked.body)["length"] == 3


def test_a_stream_passes_as_it_is_made(proxy: Proxy) -> None:
    with proxy.connect() as wire:
        wire.send(b"GET /stream?2 HTTP/1.1\r\nHost: a\r\n\r\n")
        while b"first" not in wire.unread:
            wire.unread += wire.sock.recv(65536)
        assert b"last" not in wire.unread
        assert wire.reply().body == b"firstlast"


def test_connections_to_the_server_are_kept(proxy: Proxy, served: tuple[Site, int]) -> None:
    def accepted() -> float:
        return value(scrape(("127.0.0.1", served[1])), "connections_accepted_total")

    before, began = accepted(), time.monotonic()
    assert before > 0
    for _ in range(3):  # HAProxy takes another client's connection from its second request on (http-reuse safe)
        with proxy.connect() as wire:
            for _ in range(10):
                assert wire.get("/").status == 200
    checks = (time.monotonic() - began + 1) / EVERY  # HAProxy's, a connection each
    assert accepted() - before < 15 + checks


def test_no_request_fails_while_the_server_reloads(proxy: Proxy, served: tuple[Site, int]) -> None:
    with Load(("127.0.0.1", proxy.port), "/", clients=4) as load:
        load.settle(20)
        served[0].hup(workers=2)
        load.settle(20)
        assert load.stop().failures == []


@pytest.mark.parametrize("kind", PROXIES)
def test_the_proxys_own_check_has_nothing_to_complain_of(kind: str, tmp_path: Path) -> None:
    for words in (
        ("-b", "127.0.0.1:8000"),
        ("-b", "[::1]:9000", "--keep-alive", "0", "--admin-bind", "127.0.0.1:8001", "--timeout", "0"),
        ("-b", "unix:/run/shop/s", "--limit-request-body", "1M", "--limit-request-line", "0", "-n", "my shop"),
        ("-b", "unix:/run/my shop;}/'s\"#", "--admin-bind", "127.0.0.1:8001", "--ready-path", "/a';\\b}"),
    ):
        for old in tmp_path.glob("*.c*"):
            old.unlink()
        if kind == "apache":
            words = tuple(word.replace("#", "") for word in words)  # which its URLs cannot have
        port = str(free_port())
        done = subprocess.run(
            command(kind, printed(kind, tmp_path, "--public", port, *words), check=True),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stderr}"
        assert "warn" not in done.stderr.lower(), words


def test_haproxy_takes_out_a_server_that_denies_to_be_ready(tmp_path: Path) -> None:
    """Before that one stops to accept: `drain_delay` is what the checks need to notice."""
    port = free_port()
    with (
        Site(
            f"{CONFIG}admin_bind = '127.0.0.1:{port}'\n", app="shop:application", workers=2, files={"shop.py": APP}
        ) as server,
        Proxy("haproxy", server, tmp_path) as proxy,
        proxy.connect() as wire,
    ):
        server.signal(signal.SIGTERM)
        until(lambda: wire.get("/").status == 503, "HAProxy has no server")
        with Wire(server.address) as direct:
            assert direct.get("/").status == 200, "it still serves"


def test_apache_leaves_out_a_host_that_refuses_connections(tmp_path: Path) -> None:
    """Whatever the method: nothing was sent to that one."""
    port = free_port()
    with Site(CONFIG, app="shop:application", workers=2, files={"shop.py": APP}) as server:
        words = ("--public", f"127.0.0.1:{port}", "-c", str(server.conf), "-b", f"0.0.0.0:{server.port}")
        path = printed("apache", tmp_path, *words, "--hosts", "127.0.0.2,127.0.0.1")  # it listens on the second only
        with Answering(command("apache", path), port) as proxy, proxy.connect() as wire:
            for _ in range(20):
                assert wire.ask("POST", "/", (), b"abc").status == 200
        assert "127.0.0.2" in proxy.log.text
