"""nginx and Apache before every class, by uwsgi, SCGI and FastCGI: with the files that come with them, as they are."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import REFERENCE, Server, until
from tests.harness.apache import Apache, apache_around, needs, open_to_apache
from tests.harness.balancers import Answering, Balancer, Running, nginx_around, program
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES, WSGI, each
from tests.harness.front_ends import PROTOCOLS
from tests.harness.server import free_ports, run
from tests.harness.wire import Short, Wire

pytestmark = pytest.mark.skipif(REFERENCE, reason="gunicorn has uwsgi alone")

PARAMETERS = Path("/etc/nginx")
NGINX = """\
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
APACHE = """\
Listen 127.0.0.1:{public}
<VirtualHost 127.0.0.1:{public}>
    AllowEncodedSlashes On
    ProxyPass "/" "{scheme}://127.0.0.1:{own}/" retry=0 flushpackets=on{more}
</VirtualHost>
"""
SCHEMES = {"uwsgi": "uwsgi", "scgi": "scgi", "fastcgi": "fcgi"}


def nginx(own: dict[str, int], public: dict[str, int], directory: Path) -> Running:
    program("nginx")
    text = f"    upstream kept {{ server 127.0.0.1:{own['fastcgi']}; keepalive 4; }}\n"
    text += "    server { listen 127.0.0.1:{port}; return 204; }\n"
    for protocol in PROTOCOLS:
        kept = protocol == "fastcgi"
        text += NGINX.format(
            public=public[protocol],
            parameters=PARAMETERS,
            protocol=protocol,
            pass_to="kept" if kept else f"127.0.0.1:{own[protocol]}",
            more=KEPT if kept else "",
        )
    return Balancer("nginx", text, directory)


def apache(own: dict[str, int], public: dict[str, int], directory: Path) -> Running:
    text = ""
    for protocol, scheme in SCHEMES.items():
        more = " enablereuse=on ttl=29" if protocol == "fastcgi" else ""
        text += APACHE.format(public=public[protocol], scheme=scheme, own=own[protocol], more=more)
    return Apache(text, public["uwsgi"], directory, *(f"proxy_{scheme}" for scheme in SCHEMES.values()))


FRONT_ENDS = {"nginx": nginx, "apache": apache}


class Site:
    """A server with a door for each protocol, and a front end before each, at a port of its own."""

    def __init__(self, front_end: str, worker_class: str, directory: Path) -> None:
        ports = free_ports(6)
        own, public = (dict(zip(PROTOCOLS, part, strict=True)) for part in (ports[:3], ports[3:]))
        first, *others = [f"{protocol}://127.0.0.1:{port}" for protocol, port in own.items()]
        extra = [word for door in others for word in ("-b", door)]
        self.front_end, self.worker_class, self.public = front_end, worker_class, public
        self.before = FRONT_ENDS[front_end](own, public, directory)
        self.server = Server(
            worker_class=worker_class, bind=first, extra=extra, access_logfile="-", keep_alive=30, workers=1
        )

    def connect(self, protocol: str) -> Wire:
        return Wire(("127.0.0.1", self.public[protocol]))


@pytest.fixture(scope="module", params=FRONT_ENDS)
def front_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=each(*EVERY, *SERVERS_OF_CLASSES))
def site(front_end: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(front_end, request.param, tmp_path_factory.mktemp(front_end))
    with made.server, made.before:
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
        for target in ("/", "/files?kind=disk&size=300000"):
            head = wire.ask("HEAD", target)
            assert (head.status, head.body) == (200, b"")
        assert wire.get("/").status == 200
    for status in (404, 500, 503):
        with site.connect(protocol) as wire:  # Apache closes connections after 500 and 503
            got = wire.get(f"/fields?status={status}%20Oh&A=b")
            assert (got.status, got.get("a"), got.body) == (status, "b", b"body")
    with site.connect(protocol) as wire:
        for status in (204, 304):  # without a phrase
            got = wire.get(f"/{'bodiless' if site.worker_class in WSGI else 'fields'}?status={status}")
            assert (got.status, got.body) == (status, b"")


def test_uploads_arrive_whole(site: Site, protocol: str) -> None:
    body = bytes(range(256)) * (20 * 4096)
    expected = (len(body), hashlib.sha256(body).hexdigest())
    with site.connect(protocol) as wire:
        told = wire.ask("POST", "/body?raw=1", [("Content-Type", "application/x-test")], body).json()
        assert (told["length"], told["sha256"]) == expected
        assert wire.ask("POST", "/body?raw=1", (), b"abc").json()["length"] == 3
        chunked = (("Transfer-Encoding", "chunked"),)
        got = wire.ask("POST", "/body?raw=1", chunked, b"3\r\nabc\r\n0\r\n\r\n")
        if site.front_end == "apache" and protocol != "fastcgi":  # which passes on no body without a length by these
            assert got.status == 411
        else:
            assert got.json()["length"] == 3


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


def test_apache_sees_the_end_of_a_response_of_fastcgi(site: Site) -> None:
    """nginx does not look for it, and by the other protocols a response ends with its connection in any case."""
    if site.front_end == "apache" and site.worker_class in WSGI:
        with site.connect("fastcgi") as wire, pytest.raises(Short):
            wire.get("/crash?when=later")


def test_clients_that_leave_are_noticed(site: Site, protocol: str) -> None:
    """The front end ends the connection, and the server what it has begun."""
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
    """nginx keeps four, Apache one for each of its threads: a connection brings many requests, one after another."""
    with site.connect("fastcgi") as wire:
        for _ in range(50):
            assert wire.get("/").body == b"Hello\n"


@pytest.mark.parametrize("front", FRONT_ENDS)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_the_file_of_tricorn_init_serves(kind: str, front: str, tmp_path: Path) -> None:
    with Server(transport="unix", bind=None, protocol=kind, worker_class="gthread") as server:
        open_to_apache(server.directory)
        (port,) = free_ports(1)
        words = ("--protocol", kind, "--public", f"127.0.0.1:{port}", "-b", server.bind)
        done = run("init", front, "-o", str(tmp_path), *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        site = Path(done.stdout.strip())
        if front == "nginx":
            (tmp_path / "nginx.main").write_text(nginx_around(f"    include {site};", tmp_path))
            (tmp_path / f"{kind}_params").write_text((PARAMETERS / f"{kind}_params").read_text())
            command = [program("nginx"), "-p", str(tmp_path), "-c", str(tmp_path / "nginx.main"), "-e", "stderr"]
        else:
            command = apache_around(site.read_text(), tmp_path, *needs(site.read_text()))
        with Answering(command, port) as proxy, proxy.connect() as wire:
            facts = wire.get("/echo/a%2Fb", ("Authorization", "Bearer x")).json()
            assert (facts["REMOTE_ADDR"][1], facts["PATH_INFO"][1]) == ("127.0.0.1", "/echo/a/b")
            assert facts["HTTP_AUTHORIZATION"][1] == "Bearer x"
            body = b"x" * 3_000_000
            assert wire.ask("POST", "/body?raw=1", (), body).json()["length"] == len(body)
