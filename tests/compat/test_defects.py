"""Fifteen defects of gunicorn 27.0.1 that must not exist here.

Each test says in plain assertions what ought to happen. Run against gunicorn every one of them has to fail
(`xfail(strict=True)`): that is how we know that it can.
"""

from __future__ import annotations

import base64
import contextlib
import http
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.harness import NO_BOOT, REFERENCE, WSGI_KINDS, Server, Site, module, proc, until
from tests.harness.deadline import AT_ONCE
from tests.harness.wire import request


def defect(number: int, text: str, *, always: bool = True) -> pytest.MarkDecorator:
    """Shown by the reference server; not always, where it is a race."""
    return pytest.mark.xfail(REFERENCE, reason=f"V{number}: {text}", strict=always)


ASGI = """
import asyncio

running = 0

async def application(scope, receive, send):
    global running
    if scope["type"] == "http":
        running += 1
        body = b"%d" % running
        await asyncio.sleep(0.05)
        running -= 1
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})
"""


@defect(1, "connections that send half a head freeze a gthread worker for ever")
def test_v1_half_requests_do_not_hold_threads() -> None:
    with Server(worker_class="gthread", threads=2, timeout=30) as server, contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(server.connect()).send(b"GET / HT")
        with server.connect(timeout=AT_ONCE) as wire:
            assert wire.get("/hello").status == 200


@defect(2, "closing waits for the client's end, two seconds each, and no other client is served meanwhile")
@WSGI_KINDS
def test_v2_clients_that_keep_a_closed_connection_open_hold_up_nobody(worker_class: str) -> None:
    if REFERENCE and worker_class == "gevent":
        pytest.skip("the reference server: its greenlets wait side by side")
    with Server(worker_class=worker_class, threads=2) as server, contextlib.ExitStack() as stack:
        began, count = time.monotonic(), 8
        for _ in range(count):
            wire = stack.enter_context(server.connect())
            assert wire.get("/hello", ("Connection", "close")).status == 200
        assert time.monotonic() - began < count * 2 / 2, "it did not wait for the end of each"


@defect(3, "a reload to code that does not load ends the service")
def test_v3_a_reload_to_broken_code() -> None:
    files = {"mine.py": module("good")}
    with Site("workers = 2\n", app="mine:application", workers=2, files=files, expects=NO_BOOT) as server:
        before = server.worker_pids()
        server.write("mine.py", "def application(:\n")
        server.signal(signal.SIGHUP)
        server.log.wait("SyntaxError")
        until(lambda: server.worker_pids() == before or server.process.poll() is not None, "it is decided")
        assert server.process.poll() is None
        assert server.get("/").body == b"good"


@defect(4, "a reload of a configuration with a syntax error ends the master, and its pidfile stays")
def test_v4_a_reload_of_a_broken_configuration(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    with Site(f"pidfile = '{pidfile}'\n") as server:
        assert server.get("/hello").status == 200
        before = server.worker_pids()
        server.configure("workers = (\n")
        server.signal(signal.SIGHUP)
        server.log.wait("Handling signal: hup")
        server.log.wait(r"conf\.py")
        assert server.get("/hello").status == 200
        assert server.worker_pids() == before
        assert server.process.poll() is None
        assert int(pidfile.read_text()) == server.pid


@defect(
    5, "when two workers do not boot the master dies of it: exit 1, traceback, pidfile left, no on_exit", always=False
)
def test_v5_several_workers_that_do_not_boot(tmp_path: Path) -> None:
    pidfile, mark = tmp_path / "pid", tmp_path / "exited"
    config = f"workers = 3\npidfile = '{pidfile}'\ndef on_exit(server):\n    open('{mark}', 'w').close()\n"
    files = {"mine.py": "raise ValueError('boot marker')\n"}
    with Site(config, app="mine:application", files=files, wait=False, expects=NO_BOOT) as server:
        assert server.wait_exit() == 3
        assert "HaltServer" not in server.log.text
        assert not pidfile.exists()
        assert mark.exists()


@defect(6, "a worker that hangs while it boots is never found out")
def test_v6_a_boot_that_hangs() -> None:
    files = {"mine.py": "import time\ntime.sleep(60)\n"}
    with Site("timeout = 1\nboot_timeout = 1\n", app="mine:application", files=files, wait=False) as server:
        assert server.wait_exit(AT_ONCE) == 3


@defect(7, "the timeout of a gthread worker is none of its requests")
def test_v7_a_request_of_a_gthread_worker_has_the_timeout() -> None:
    with Server("stuck:application", worker_class="gthread", timeout=1) as server, server.connect() as wire:
        wire.send(request("GET", "/sleep"))
        server.log.wait(r"WORKER TIMEOUT \(pid:\d+\)", within=AT_ONCE)


WEBSOCKET = """
async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                print("lifespan marker", flush=True)
                return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
"""


@defect(8, "a WebSocket is not closed at the end: the worker waits for it, and is killed without its shutdown")
def test_v8_a_stop_closes_websockets_and_ends_the_lifespan() -> None:
    files = {"mine.py": WEBSOCKET}
    with Site("worker_class = 'asgi'\n", app="mine:application", files=files) as server:
        key = base64.b64encode(os.urandom(16)).decode()
        fields = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Key", key),
            ("Sec-WebSocket-Version", "13"),
        ]
        with server.connect() as wire:
            wire.send(request("GET", "/", fields))
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += wire.sock.recv(1)
            assert head.startswith(b"HTTP/1.1 101 ")
            server.signal(signal.SIGTERM)
            wire.sock.settimeout(AT_ONCE)
            assert wire.sock.recv(2)[:1] == b"\x88", "a close frame"
            wire.send(b"\x88\x80\0\0\0\0")
            assert server.wait_exit(AT_ONCE) == 0
        assert "lifespan marker" in server.out.text


@defect(9, "with asgi and no access log statsd gets no metrics of requests")
def test_v9_metrics_do_not_depend_on_the_access_log() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as statsd:
        statsd.bind(("127.0.0.1", 0))
        statsd.settimeout(AT_ONCE)
        config = f"worker_class = 'asgi'\nstatsd_host = '127.0.0.1:{statsd.getsockname()[1]}'\n"
        with Site(config, app="mine:application", files={"mine.py": ASGI}) as server:
            server.get("/")
            got = b""
            with contextlib.suppress(TimeoutError):
                while b"gunicorn.request" not in got:
                    got += statsd.recv(1000) + b"\n"
            assert b"gunicorn.request" in got


@defect(10, "a control socket appears in the home directory; where it cannot, every start logs an error")
@pytest.mark.parametrize("home", ["empty", "read_only"])
def test_v10_nothing_is_written_into_the_home_directory(home: str, tmp_path: Path) -> None:
    place = tmp_path if home == "empty" else Path("/proc/self/no-home")
    environment = {"HOME": str(place), "XDG_RUNTIME_DIR": ""}
    with Site("workers = 2\n", workers=2, env=environment) as server:
        server.get("/hello")
        with contextlib.suppress(AssertionError):  # its thread may say so a little later
            server.log.wait("ontrol s", within=1)
        assert home == "read_only" or not list(tmp_path.iterdir())
        server.signal(signal.SIGTERM)
        server.wait_exit()
    assert "ontrol s" not in server.log.text
    assert not server.log.matching(r"\[ERROR\]")
    assert home == "read_only" or not list(tmp_path.iterdir())


@pytest.fixture(autouse=True)
def control_socket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite runs the reference without its control socket; the test about it wants it."""
    if REFERENCE and "v10" in request.node.name:
        command = os.environ["TRICORN_TEST_SERVER"].replace(" --no-control-socket", "")
        monkeypatch.setenv("TRICORN_TEST_SERVER", command)


@defect(11, "after `python -m` and USR2 the package's own directory is on the import path, before the application's")
def test_v11_usr2_finds_the_application_that_is_called_like_a_module_of_the_server(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    files = {"config.py": module("mine")}
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, [".", os.environ.get("PYTHONPATH")]))}
    config = f"pythonpath = None\npidfile = '{pidfile}'\n"
    with Site(config, app="config:application", files=files, env=environment) as server:
        assert server.get("/").body == b"mine"
        server.signal(signal.SIGUSR2)
        successor = Path(f"{pidfile}.2")
        until(successor.exists, "the successor's pidfile")
        new = int(successor.read_text())
        server.log.wait("Booting worker", count=2)
        server.signal(signal.SIGTERM)
        server.process.wait(60)
        try:
            until(lambda: not successor.exists() and pidfile.exists(), "the successor takes over")
            assert server.get("/").body == b"mine"
        finally:
            if proc.is_running(new):
                os.kill(new, signal.SIGTERM)
                until(lambda: not proc.is_running(new), "the successor stops")


@defect(12, "systemd is told READY before there is a worker, and nothing of reloads and the end")
def test_v12_systemd_hears_the_truth(tmp_path: Path) -> None:
    gate, path = tmp_path / "gate", tmp_path / "notify"
    slow = f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)\n" + module("up")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(path))
        notify.settimeout(1)
        told: list[str] = []

        def hear(word: str) -> bool:
            with contextlib.suppress(TimeoutError):
                told.append(notify.recv(4096).decode())
            return any(re.search(rf"^{word}$", message, re.MULTILINE) for message in told)

        environment = {"NOTIFY_SOCKET": str(path)}
        with Site(app="mine:application", files={"mine.py": slow}, env=environment, wait=False) as server:
            server.log.wait("Booting worker")
            assert not hear("READY=1"), told
            gate.touch()
            until(lambda: hear("READY=1"), f"READY: {told}")
            assert server.get("/").body == b"up"
            told.clear()
            server.signal(signal.SIGHUP)
            until(lambda: hear("RELOADING=1"), f"RELOADING: {told}")
            assert any("MONOTONIC_USEC=" in message for message in told)
            until(lambda: hear("READY=1"), f"READY again: {told}")
            server.signal(signal.SIGTERM)
            until(lambda: hear("STOPPING=1"), f"STOPPING: {told}")


@defect(13, "an empty WEB_CONCURRENCY is a crash")
def test_v13_an_empty_web_concurrency_is_none() -> None:
    with Server(env={"WEB_CONCURRENCY": ""}) as server:
        assert server.get("/hello").status == 200


@defect(14, "requests without Host are taken")
def test_v14_a_request_without_host_is_bad() -> None:
    with Server() as server, server.connect() as wire:
        wire.send(b"GET /hello HTTP/1.1\r\n\r\n")
        reply = wire.reply()
        assert (reply.status, reply.reason) == (400, "Bad Request")


@defect(14, "501 is called Bad Request")
def test_v14_an_error_has_its_own_name() -> None:
    with Server() as server, server.connect() as wire:
        wire.send(request("POST", "/hello", [("Transfer-Encoding", "unheard-of, chunked")]), b"0\r\n\r\n")
        reply = wire.reply()
        assert reply.status in (400, 501)
        assert reply.reason == http.HTTPStatus(reply.status).phrase


def network() -> Site:
    """A server whose limits are low, of the class in which gunicorn forgets them."""
    config = "worker_class = 'asgi'\nworker_connections = 5\n"
    if not REFERENCE:
        config += "header_timeout = 1\n"
    return Site(config, app="mine:application", files={"mine.py": ASGI})


@defect(15, "asgi runs more requests at once than worker_connections")
def test_v15_worker_connections_is_a_limit() -> None:
    with network() as server, contextlib.ExitStack() as stack:
        wires = [stack.enter_context(server.connect()).send(request("GET", "/")) for _ in range(20)]
        assert {int(wire.reply().body) for wire in wires} == {1, 2, 3, 4, 5}


@defect(15, "asgi waits for ever for the rest of a head")
def test_v15_half_a_head_has_a_time_limit() -> None:
    with network() as server, server.connect(timeout=AT_ONCE) as wire:
        wire.send(b"GET / HT")
        wire.ended()


@defect(15, "asgi logs no bad request")
def test_v15_a_bad_request_is_logged() -> None:
    with network() as server, server.connect(timeout=AT_ONCE) as wire:
        wire.send(b"GET / NONSENSE/1\r\n\r\n")
        wire.ended()
        server.log.wait(r"[Ii]nvalid|NONSENSE|[Bb]ad request", within=AT_ONCE)
