"""nginx before every class, by uwsgi, SCGI and FastCGI: its own files of parameters, as they are."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import REFERENCE, Server, until
from tests.harness.balancers import Balancer, program
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES, WSGI, each
from tests.harness.front_ends import PROTOCOLS
from tests.harness.server import free_ports, run
from tests.harness.wire import Wire

pytestmark = pytest.mark.skipif(REFERENCE, reason="gunicorn has uwsgi alone")

PARAMETERS = Path("/etc/nginx")
SITE = """\
    server {{
        listen 127.0.0.1:{public};
        client_max_body_size 0;
        location / {{
            include {parameters}/{protocol}_params;
            {protocol}_pass {pass_to};
            {protocol}_buffering off;
            {more}
        }}
    }}
"""
KEPT = "fastcgi_keep_conn on;"


class Site:
    """A server with a door for each protocol, and nginx before each, at a port of its own."""

    def __init__(self, worker_class: str, directory: Path) -> None:
        program("nginx")
        own, public = free_ports(3), free_ports(3)
        doors = [f"{protocol}://127.0.0.1:{port}" for protocol, port in zip(PROTOCOLS, own, strict=True)]
        first, *others = doors
        extra = [word for door in others for word in ("-b", door)]
        self.worker_class = worker_class
        self.public = dict(zip(PROTOCOLS, public, strict=True))
        self.server = Server(
            worker_class=worker_class, bind=first, extra=extra, access_logfile="-", keep_alive=30, workers=1
        )
        text = f"    upstream kept {{ server 127.0.0.1:{own[2]}; keepalive 4; }}\n"
        text += "    server { listen 127.0.0.1:{port}; return 204; }\n"
        for protocol, port in zip(PROTOCOLS, own, strict=True):
            kept = protocol == "fastcgi"
            text += SITE.format(
                public=self.public[protocol],
                parameters=PARAMETERS,
                protocol=protocol,
                pass_to="kept" if kept else f"127.0.0.1:{port}",
                more=KEPT if kept else "",
            )
        self.nginx = Balancer("nginx", text, directory)

    def connect(self, protocol: str) -> Wire:
        return Wire(("127.0.0.1", self.public[protocol]))


@pytest.fixture(scope="module", params=each(*EVERY, *SERVERS_OF_CLASSES))
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(request.param, tmp_path_factory.mktemp("nginx"))
    with made.server, made.nginx:
        yield made


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_request_and_its_query_arrive(site: Site, protocol: str) -> None:
    with site.connect(protocol) as wire:
        assert wire.get("/").body == b"Hello\n"
        told = wire.get("/echo/a%20b?c=d%26e&f", ("X-One", "1"), ("Cookie", "a=b")).json()
    facts = {key: value for key, (_, value) in told.items()}
    assert (facts["REQUEST_METHOD"], facts["PATH_INFO"]) == ("GET", "/echo/a b")
    assert (facts["QUERY_STRING"], facts["RAW_URI"]) == ("c=d%26e&f", "/echo/a%20b?c=d%26e&f")
    assert (facts["HTTP_X_ONE"], facts["HTTP_COOKIE"]) == ("1", "a=b")
    if site.worker_class in WSGI:
        assert facts["SCRIPT_NAME"] == ""
        assert facts["SERVER_PORT"] == str(site.public[protocol])
        assert facts["REMOTE_ADDR"] == "127.0.0.1"


def test_head_and_statuses_arrive(site: Site, protocol: str) -> None:
    with site.connect(protocol) as wire:
        head = wire.ask("HEAD", "/")
        assert (head.status, head.body) == (200, b"")
        assert wire.get("/fields?status=404%20No&A=b").status == 404
        assert wire.get("/").status == 200


def test_uploads_arrive_whole(site: Site, protocol: str) -> None:
    body = bytes(range(256)) * (20 * 4096)
    expected = (len(body), hashlib.sha256(body).hexdigest())
    with site.connect(protocol) as wire:
        told = wire.ask("POST", "/body?raw=1", [("Content-Type", "application/x-test")], body).json()
        assert (told["length"], told["sha256"]) == expected
        assert wire.ask("POST", "/body?raw=1", (), b"abc").json()["length"] == 3
        chunked = (("Transfer-Encoding", "chunked"),)
        assert wire.ask("POST", "/body?raw=1", chunked, b"3\r\nabc\r\n0\r\n\r\n").json()["length"] == 3


def test_streams_arrive_as_they_are_made(site: Site, protocol: str) -> None:
    with site.connect(protocol) as wire:
        wire.send(b"GET /stream?count=2&size=3&pause=1 HTTP/1.1\r\nHost: a\r\n\r\n")
        until(lambda: begun(wire), "the first piece is there")
        assert b"bbb" not in wire.unread
        assert wire.reply().body == b"aaabbb"
    with site.connect(protocol) as wire:
        assert wire.get("/stream?count=20&size=100000").body[-100_000:] == b"t" * 100_000
        assert wire.get("/blob?size=3000000").body == b"b" * 3_000_000
        size = len(wire.get("/files?kind=disk&size=300000").body)
        assert size == 300_000 if site.worker_class in WSGI else size > 1000


def begun(wire: Wire) -> bool:
    wire.wait_begun()
    if b"aaa" not in wire.unread:
        wire.unread += wire.sock.recv(65536)
    return b"aaa" in wire.unread


def test_clients_that_leave_are_noticed(site: Site, protocol: str) -> None:
    """nginx ends the connection, and the server what it has begun."""
    with site.connect(protocol) as wire:
        wire.send(b"GET /stream?count=1000000&size=10000 HTTP/1.1\r\nHost: a\r\n\r\n")
        wire.wait_begun()
        wire.reset()
    with site.connect(protocol) as wire:
        assert wire.get("/").status == 200


def test_many_are_served_at_a_time(site: Site, protocol: str) -> None:
    found: list[int] = []

    def client() -> None:
        with site.connect(protocol) as wire:
            found.extend(wire.get("/").status for _ in range(20))

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 160


def test_fastcgi_keeps_connections(site: Site) -> None:
    """nginx keeps four: for so many requests one after another it needs no more than one or two."""
    with site.connect("fastcgi") as wire:
        for _ in range(50):
            assert wire.get("/").body == b"Hello\n"


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_the_file_of_tricorn_init_serves(kind: str, tmp_path: Path) -> None:
    from tests.harness.balancers import Running, nginx_around

    with Server(transport="unix", bind=None, protocol=kind, worker_class="gthread") as server:
        (port,) = free_ports(1)
        words = ("--protocol", kind, "--public", f"127.0.0.1:{port}", "-b", server.bind)
        done = run("init", "nginx", "-o", str(tmp_path), *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        main = tmp_path / "nginx.main"
        main.write_text(nginx_around(f"    include {tmp_path}/*.conf;", tmp_path))
        for name in (f"{kind}_params",):
            (tmp_path / name).write_text((PARAMETERS / name).read_text())

        class Proxy(Running):
            def answers(self) -> bool:
                try:
                    with self.connect() as wire:
                        return wire.get("/").status == 200
                except (OSError, AssertionError):
                    return False

        command = [program("nginx"), "-p", str(tmp_path), "-c", str(main), "-e", "stderr"]
        with Proxy(command, port) as proxy, proxy.connect() as wire:
            assert wire.get("/echo").json()["REMOTE_ADDR"][1] == "127.0.0.1"
            body = b"x" * 3_000_000
            assert wire.ask("POST", "/body?raw=1", (), body).json()["length"] == len(body)
