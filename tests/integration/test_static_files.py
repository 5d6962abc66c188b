"""Files that the server sends itself: which are, which are not, and what else goes on meanwhile."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.harness import CLASSES, REFERENCE, Site, each, until, with_each
from tests.harness.http2_client import Http2Client
from tests.harness.wire import request
from tests.integration.test_disks import holds, mended

pytestmark = pytest.mark.skipif(REFERENCE, reason="of our core")

LARGE = 3_000_000
"""More than the socket takes at once."""

WSGI = """
import os, pathlib, time

def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/block":
        pathlib.Path("blocked").touch()
        while not os.path.exists("go_on"):
            time.sleep(0.01)
    body = b"application: " + path.encode("latin-1")
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""
ASGI = """
import os, pathlib, time

async def application(scope, receive, send):
    assert scope["type"] == "http"
    if scope["path"] == "/block":
        pathlib.Path("blocked").touch()
        while not os.path.exists("go_on"):
            time.sleep(0.01)
    body = b"application: " + scope["path"].encode()
    fields = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})
"""
AIOHTTP = """
import os, pathlib, time
from aiohttp import web

async def answer(request):
    if request.path == "/block":
        pathlib.Path("blocked").touch()
        while not os.path.exists("go_on"):
            time.sleep(0.01)
    return web.Response(body=b"application: " + request.path.encode())

application = web.Application()
application.router.add_route("*", "/{path:.*}", answer)
"""
TORNADO = """
import os, pathlib, time
import tornado.web

class Answer(tornado.web.RequestHandler):
    def get(self):
        if self.request.path == "/block":
            pathlib.Path("blocked").touch()
            while not os.path.exists("go_on"):
                time.sleep(0.01)
        self.write(b"application: " + self.request.path.encode())

application = tornado.web.Application([("/.*", Answer)])
"""
APPLICATIONS = {"asgi": ASGI, "aiohttp": AIOHTTP, "tornado": TORNADO}
HTTP2 = "http_protocols = 'h2,h1'\nhttp2_cleartext = 'prior-knowledge'\n"
STALLS = """
from tricorn.workers import core_options

original = core_options.core_options
core_options.core_options = lambda *args, **keywords: original(*args, **keywords) | {"fault_point": "stall_disk"}
"""


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """What is outside, and in `files` what is not."""
    files = tmp_path / "files"
    (files / "sub").mkdir(parents=True)
    (files / ".hidden").mkdir()
    for path in ("files/a.txt", "files/sub/b.txt", "files/.env", "files/.hidden/c.txt", "secret.txt", "files/é ü.txt"):
        (tmp_path / path).write_text(path)
    (files / "large.bin").write_bytes(os.urandom(LARGE))
    (files / "sub/index.html").write_text("index")
    return tmp_path


@contextmanager
def serving(
    top: Path, config: str = "", *, worker_class: str = "sync", mapping: str = "", **more: str
) -> Iterator[Site]:
    settings = f"worker_class = {worker_class!r}\nchdir = {str(top)!r}\nstatic_map = ['/files=files{mapping}']\n"
    app = APPLICATIONS.get(worker_class, WSGI)
    with Site(settings + config, app="stored:application", files={"stored.py": app}) as server:
        yield server


def body(server: Site, path: str) -> str:
    with server.connect() as wire:
        return wire.get(path).body.decode()


def status(server: Site, path: str) -> int:
    with server.connect() as wire:
        return wire.get(path).status


def test_what_a_path_means(top: Path) -> None:
    (top / "files/inner").symlink_to("sub/b.txt")
    (top / "files/up").symlink_to("sub/../a.txt")
    with serving(top) as server:
        for path, expected in {
            "/files/a.txt": "files/a.txt",
            "/files/sub/b.txt?c=d": "files/sub/b.txt",
            "/%66iles/%61.txt": "files/a.txt",
            "/files/%C3%A9%20%C3%BC.txt": "files/é ü.txt",
            "/files/inner": "files/sub/b.txt",
            "/files/up": "files/a.txt",
            "/files/sub/": "index",
            "/files/none": "application: /files/none",
            "/files/A.txt": "application: /files/A.txt",
            "/files/a.txt/": "application: /files/a.txt/",
            "/files/": "application: /files/",
            "/filesystem": "application: /filesystem",
            "/": "application: /",
        }.items():
            assert body(server, path) == expected, path
        with server.connect() as wire:
            reply = wire.get("/files/sub?c=d")
            assert (reply.status, reply.get("location")) == (301, "/files/sub/?c=d")
            # A form that is sent is the application's.
            assert wire.ask("POST", "/files/a.txt", body=b"x").text == "application: /files/a.txt"
            assert wire.ask("GET", "/files/a.txt", body=b"x").text == "application: /files/a.txt"


TRAPS = (
    "../secret.txt",
    "sub/../../secret.txt",
    "sub/../a.txt",
    "%2e%2e/secret.txt",
    ".%2E/secret.txt",
    "..%2fsecret.txt",
    "sub%2fb.txt",
    "..%5csecret.txt",
    "..\\secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "%2Fetc/passwd",
    "sub//b.txt",
    "./a.txt",
    ".env",
    "%2eenv",
    ".hidden/c.txt",
    "a.txt%00",
    "a.txt%00.html",
    "%00",
    "out",
    "absolute",
    "directory/secret.txt",
    "loop",
    "fifo",
    "socket",
    "null",
)
"""Of `files`: what leads out of it, what is hidden, what is no file. Each has taken some server in."""


@pytest.mark.parametrize("transport", ["tcp", "h2"])
def test_traps(top: Path, transport: str) -> None:
    files = top / "files"
    (files / "out").symlink_to("../secret.txt")
    (files / "absolute").symlink_to(top / "files/a.txt")
    (files / "directory").symlink_to("..")
    (files / "loop").symlink_to("loop")
    (files / "null").symlink_to("/dev/null")
    os.mkfifo(files / "fifo")
    with (
        socket.socket(socket.AF_UNIX) as sock,
        serving(top, "http_protocols = 'h2,h1'\nhttp2_cleartext = 'prior-knowledge'") as server,
    ):
        here = os.open(".", os.O_PATH)
        try:
            os.chdir(files)  # the name of a socket is short
            sock.bind("socket")
        finally:
            os.chdir(here)
            os.close(here)
        if transport == "h2":
            server.wire_type = Http2Client
        got = {trap: status(server, f"/files/{trap}") for trap in TRAPS}
        assert got == dict.fromkeys(TRAPS, 404)
        assert body(server, "/files/a.txt") == "files/a.txt"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_what_may_not_be_read_is_forbidden_and_the_log_says_so() -> None:
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory) / "files"
        files.mkdir()
        (files / "a.txt").touch(0o600)
        for path in (files, files.parent):
            path.chmod(0o755)
        with serving(files.parent, "user = 65534\ngroup = 65534\npreload_app = True\n") as server:
            assert status(server, "/files/a.txt") == 403
            server.log.wait(r"Cannot open .*/files/a\.txt: Permission denied")


def test_a_mapping_of_everything_leaves_paths_of_the_application_alone(top: Path) -> None:
    config = f"static_map = {{'/': {str(top / 'files')!r}, '/deep/er': {str(top / 'files/sub')!r}}}\n"
    with serving(top, config) as server:
        for path, expected in {
            "/a.txt": "files/a.txt",
            "/deep/er/b.txt": "files/sub/b.txt",
            "/deep/b.txt": "application: /deep/b.txt",
            "/.well-known/acme": "application: /.well-known/acme",
            "/.env": "application: /.env",
            "/..": "application: /..",
        }.items():
            assert body(server, path) == expected, path


def test_a_mapping_may_say_that_what_is_missing_is_not_found(top: Path) -> None:
    with serving(top, mapping=",no-cache,miss=404") as server, server.connect() as wire:
        assert wire.get("/files/none").status == 404
        assert wire.get("/files/").status == 404
        reply = wire.ask("DELETE", "/files/a.txt")
        assert (reply.status, reply.get("allow")) == (405, "GET, HEAD")
        assert wire.get("/files/a.txt").get("cache-control") == "no-cache"
        assert wire.get("/none").text == "application: /none"


def test_cache_control_of_mappings_without_directives(top: Path) -> None:
    config = "static_cache_control = 'max-age=7, public'\nstatic_index = ''\n"
    with serving(top, config) as server, server.connect() as wire:
        assert wire.get("/files/a.txt").get("cache-control") == "max-age=7, public"
        assert wire.get("/files/sub/").text == "application: /files/sub/"


@CLASSES
def test_files_are_sent_while_the_application_blocks(worker_class: str, top: Path) -> None:
    """All its threads, and its event loop: none of them is needed, nor is the queue."""
    # A connection is idle once the kernel has its file, long before the last of these clients reads it.
    config = "queue_limit = 1\nkeepalive = 60\n" + ("threads = 1\n" if worker_class == "gthread" else "")
    large = (top / "files/large.bin").read_bytes()
    with serving(top, config, worker_class=worker_class) as server, ExitStack() as stack:
        blocked = stack.enter_context(server.connect())
        blocked.send(request("GET", "/block"))
        until(lambda: (top / "blocked").exists(), "the application blocks")
        wires = [stack.enter_context(server.connect()) for _ in range(30)]
        for wire in wires:
            wire.send(request("GET", "/files/large.bin"))
        for wire in wires:
            assert wire.reply().body == large
            assert wire.get("/files/a.txt").text == "files/a.txt", "on the same connection"
        (top / "go_on").touch()
        assert blocked.reply().text == "application: /block"


def test_requests_behind_a_file_are_answered_in_their_order(top: Path) -> None:
    large = (top / "files/large.bin").read_bytes()
    with serving(top) as server, server.connect() as wire:
        paths = ("/files/large.bin", "/one", "/files/a.txt", "/files/none", "/files/large.bin", "/files/.env", "/two")
        wire.send(b"".join(request("GET", path) for path in paths))
        replies = [wire.reply() for _ in paths]
        assert [reply.status for reply in replies] == [200, 200, 200, 200, 200, 404, 200]
        assert replies[0].body == replies[4].body == large
        assert [replies[at].text for at in (1, 2, 3, 6)] == [
            "application: /one",
            "files/a.txt",
            "application: /files/none",
            "application: /two",
        ]


@pytest.mark.parametrize("worker_class", each("sync", "gevent", "asgi"))
def test_a_disk_that_hangs_stops_no_application(worker_class: str, top: Path) -> None:
    fifo = top / "stall"
    os.mkfifo(fifo)
    config = f"{STALLS}\ntmp_upload_dir = {str(top)!r}\n"
    with serving(top, config, worker_class=worker_class) as server, ExitStack() as stack:
        worker = server.worker_pid()
        wires = [stack.enter_context(server.connect()) for _ in range(8)]
        for wire in wires:
            wire.send(request("GET", "/files/large.bin"), request("GET", "/files/none"))
        with server.connect() as leaves:
            leaves.send(request("GET", "/files/large.bin"))
        for nr in range(20):
            assert body(server, f"/{nr}") == f"application: /{nr}"
        with mended(fifo):
            for wire in wires:
                assert wire.reply().body == (top / "files/large.bin").read_bytes()
                assert wire.reply().text == "application: /files/none"
            until(lambda: holds(worker, top / "files/large.bin") == 0, "the files are closed")
        assert server.worker_pids() == [worker]


def test_files_that_hang_are_bounded(top: Path) -> None:
    fifo = top / "stall"
    os.mkfifo(fifo)
    with serving(top, f"{STALLS}\ntmp_upload_dir = {str(top)!r}\n") as server, ExitStack() as stack:
        wires = [stack.enter_context(server.connect()) for _ in range(256)]
        for wire in wires:
            wire.send(request("GET", "/files/a.txt"))
        assert body(server, "/") == "application: /"
        with server.connect() as wire:
            reply = wire.get("/files/a.txt")
            assert (reply.status, reply.get("tricorn-refused")) == (503, "capacity")
        with mended(fifo):
            assert {wire.reply().status for wire in wires} == {200}


@with_each("setting", ["request_timeout = 1", "write_timeout = 1"])
def test_a_disk_that_hangs_too_long(top: Path, setting: str) -> None:
    fifo = top / "stall"
    if not fifo.exists():
        os.mkfifo(fifo)
    config = f"{STALLS}\ntmp_upload_dir = {str(top)!r}\n{setting}\n"
    with serving(top, config) as server, server.connect() as wire:
        assert wire.get("/files/a.txt").status == 504
        with mended(fifo):
            # The job that comes back finds another request.
            assert wire.get("/files/sub/b.txt").text == "files/sub/b.txt"


@pytest.mark.parametrize("transport", ["tcp", "h2"])
def test_a_file_that_shrinks_while_it_is_sent(top: Path, transport: str) -> None:
    large = top / "files/large.bin"
    large.write_bytes(os.urandom(30_000_000))
    with serving(top, HTTP2) as server:
        with socket.create_connection(server.address) as sock:
            if transport == "h2":
                preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
                window = bytes.fromhex("00000408000000000000a00000") + bytes.fromhex("00000408000000000100a00000")
                # :method GET, :scheme http, :path, :authority
                block = b"\x82\x86\x04\x10/files/large.bin\x01\x01a"
                head = len(block).to_bytes(3, "big") + bytes.fromhex("010500000001") + block
                sock.sendall(preface + head + window)
            else:
                sock.sendall(request("GET", "/files/large.bin"))
            got = 0
            while got < 10_000:  # its head, and some of it
                got += len(sock.recv(1000))
            os.truncate(large, 1_000_000)
            while piece := sock.recv(1 << 20):
                got += len(piece)
                if transport == "h2" and piece[-13:-6] == bytes.fromhex("00000403000000"):
                    break  # RST_STREAM: the connection stays
        assert got < 30_000_000
        server.log.wait(r"Cut off a response to .*: its file has become shorter while it was sent")
        assert body(server, "/files/a.txt") == "files/a.txt"


def test_a_reload_takes_another_map(top: Path) -> None:
    with serving(top) as server:
        assert body(server, "/files/a.txt") == "files/a.txt"
        before = server.worker_pids()
        server.configure(f"chdir = {str(top)!r}\nstatic_map = ['/other=files/sub']\n")
        server.signal(signal.SIGHUP)
        until(lambda: not set(server.worker_pids()) & set(before), "the workers are replaced")
        assert body(server, "/other/b.txt") == "files/sub/b.txt"
        assert body(server, "/files/a.txt") == "application: /files/a.txt"


def test_a_directory_that_is_replaced_needs_no_reload(top: Path) -> None:
    """A deployment moves another tree, or a link, to its place."""
    (top / "one").mkdir()
    (top / "two").mkdir()
    (top / "one/a.txt").write_text("one")
    (top / "two/a.txt").write_text("two")
    (top / "current").symlink_to("one")
    with serving(top, f"static_map = ['/files={top}/current']\n") as server:
        assert body(server, "/files/a.txt") == "one"
        (top / "next").symlink_to("two")
        (top / "next").rename(top / "current")
        assert body(server, "/files/a.txt") == "two"
        (top / "current").unlink()
        assert body(server, "/files/a.txt") == "application: /files/a.txt"


def test_files_are_logged_and_counted(top: Path) -> None:
    config = f"accesslog = {str(top / 'access')!r}\nadmin_bind = 'unix:{top}/admin'\nrequest_id = True\n"
    with serving(top, config) as server, server.connect() as wire:
        reply = wire.get("/files/a.txt", ("User-Agent", "tests"))
        assert len(reply.get("x-request-id") or "") == 32
        wire.get("/files/.env")
        until(lambda: (top / "access").read_text().count("\n") == 2, "both are logged")
        first, second = (top / "access").read_text().splitlines()
        assert '"GET /files/a.txt HTTP/1.1" 200 11 "-" "tests"' in first
        assert '"GET /files/.env HTTP/1.1" 404 ' in second
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(top / "admin"))
            sock.sendall(request("GET", "/metrics", [("Connection", "close")]))
            text = b"".join(iter(lambda: sock.recv(65536), b"")).decode()
        counted = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line.startswith("tricorn_")}
        assert counted["tricorn_static_files_total"] == 2
        assert counted["tricorn_requests_total"] == 0
        assert counted['tricorn_responses_total{code="200"}'] == 1


def test_a_worker_that_leaves_sends_its_files_to_their_end(top: Path) -> None:
    (top / "files/large.bin").write_bytes(os.urandom(30_000_000))
    with serving(top) as server, server.connect() as wire:
        wire.send(request("GET", "/files/large.bin"))
        wire.wait_begun()
        server.signal(signal.SIGHUP)
        server.log.wait("Ready: ", count=2)
        assert wire.reply().body == (top / "files/large.bin").read_bytes()
