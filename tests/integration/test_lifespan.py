"""The life of an event-loop worker: startup before the first request, shutdown after the last one, whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import REFERENCE, Server, Site, until
from tests.harness.deadline import AT_ONCE
from tests.harness.frames import CLOSE, Frame, Frames
from tests.harness.needs import needs
from tests.harness.server import free_port, run
from tests.harness.site import replaced

pytestmark = pytest.mark.skipif(REFERENCE, reason="the reference server is not held to this")

APP = "lifespan:application"
LAST = "shutdown, the poller runs"
GOING_AWAY, SERVICE_RESTART = (code.to_bytes(2, "big") for code in (1001, 1012))


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> str:
    if request.param == "uvloop":
        needs("uvloop")
    name: str = request.param
    return name


def serve(how: str = "complete", **options: Any) -> Server:
    return Server(APP, worker_class="asgi", env={"LIFESPAN": how}, **options)


@pytest.fixture
def server(loop: str) -> Iterator[Server]:
    with serve(asgi_loop=loop) as made:
        yield made


def in_background(server: Server, target: str) -> threading.Thread:
    def ask() -> None:
        try:
            answers.append(server.get(target).status)
        except (AssertionError, OSError):
            answers.append(0)

    answers: list[int] = []
    thread = threading.Thread(target=ask)
    thread.answers = answers  # type: ignore[attr-defined]
    thread.start()
    return thread


class TestLife:
    def test_the_state_of_the_startup_is_a_shallow_copy_for_each_request(self, server: Server) -> None:
        assert server.get("/state").json() == {"pool": "a pool", "list": []}
        assert server.get("/state").json() == {"pool": "a pool", "list": [1]}

    def test_an_idle_worker_shuts_down_at_once(self, server: Server) -> None:
        server.get("/")
        server.signal(signal.SIGTERM)
        assert server.wait_exit(AT_ONCE) == 0
        assert server.out.lines == ["startup", LAST]

    def test_requests_and_what_comes_after_them_end_before_the_shutdown(self, server: Server) -> None:
        threads = [in_background(server, target) for target in ("/sleep?0.5", "/after?0.7")]
        for path in ("/sleep", "/after"):
            server.out.wait(f"{path} begins")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert server.out.lines[-3:] == ["/sleep ends", "/after ends", LAST]
        for thread in threads:
            thread.join()
            assert thread.answers == [200]  # type: ignore[attr-defined]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
    def test_at_a_quick_stop_calls_are_cancelled_before_the_shutdown(self, server: Server, number: int) -> None:
        threads = [in_background(server, target) for target in ("/sleep?60", "/after?60")]
        for path in ("/sleep", "/after"):
            server.out.wait(f"{path} begins")
        server.signal(number)
        assert server.wait_exit(AT_ONCE) == 0
        assert sorted(server.out.lines[-3:]) == ["/after is cancelled", "/sleep is cancelled", LAST]
        assert server.out.lines[-1] == LAST
        assert not server.log.matching("SIGKILL")
        for thread in threads:
            thread.join()

    def test_a_worker_that_was_told_before_it_serves_shuts_down_too(self, loop: str, tmp_path: Path) -> None:
        with serve(f"{tmp_path}/go", asgi_loop=loop, wait=False) as server:
            server.out.wait("startup")
            server.signal(signal.SIGTERM)
            server.log.wait("Handling signal: term")
            (tmp_path / "go").touch()
            assert server.wait_exit() == 0
            assert server.out.lines == ["startup", LAST]

    def test_a_quick_stop_does_not_wait_for_the_startup(self, loop: str, tmp_path: Path) -> None:
        with serve(f"{tmp_path}/go", asgi_loop=loop, wait=False) as server:
            server.out.wait("startup")
            server.signal(signal.SIGINT)
            assert server.wait_exit(AT_ONCE) == 0
            assert server.log.matching("cancelled the application's startup")
            assert not server.log.matching("SIGKILL")


class TestWebSockets:
    """They would stay for ever: at the end they are told, and given the time to say goodbye."""

    def test_at_a_stop_the_server_goes_away(self, server: Server) -> None:
        with Frames(server.address) as websocket:
            websocket.echoes()
            server.signal(signal.SIGTERM)
            assert websocket.frame() == Frame(CLOSE, GOING_AWAY)
            websocket.put(CLOSE, GOING_AWAY).closed()
        assert server.wait_exit(AT_ONCE) == 0
        assert server.out.lines == ["startup", "the WebSocket ended with 1001", LAST]

    def test_at_a_reload_they_may_come_back(self, server: Server) -> None:
        with Frames(server.address) as websocket:
            websocket.echoes()
            server.signal(signal.SIGHUP)
            assert websocket.frame() == Frame(CLOSE, SERVICE_RESTART)
            with Frames(server.address) as again:
                again.echoes()
                websocket.put(CLOSE, SERVICE_RESTART).closed()
                server.out.wait("the WebSocket ended with 1012")
                server.out.wait(LAST)
                again.echoes()
                again.goodbye()

    def test_they_do_not_hold_up_requests_that_are_under_way(self, server: Server) -> None:
        with Frames(server.address) as websocket:
            asked = in_background(server, "/sleep?0.5")
            server.out.wait("/sleep begins")
            server.signal(signal.SIGTERM)
            assert websocket.frame() == Frame(CLOSE, GOING_AWAY)
            assert "/sleep ends" not in server.out.lines
            asked.join()
            assert asked.answers == [200]  # type: ignore[attr-defined]

    def test_a_client_that_says_nothing_is_not_waited_for(self, server: Server) -> None:
        with Frames(server.address) as websocket:
            websocket.echoes()
            server.signal(signal.SIGTERM)
            assert server.wait_exit(AT_ONCE) == 0
        assert server.out.lines[-1] == LAST
        assert not server.log.matching("SIGKILL")

    def test_an_application_that_goes_on_is_cancelled_before_the_shutdown(self, loop: str) -> None:
        with serve(asgi_loop=loop, graceful_timeout=1) as server, Frames(server.address, "/stubborn") as websocket:
            websocket.echoes()
            server.signal(signal.SIGTERM)
            websocket.frame()
            websocket.put(CLOSE, GOING_AWAY)
            assert server.wait_exit(AT_ONCE) == 0
            assert server.out.lines[-2:] == ["/stubborn is cancelled", LAST]
            assert not server.log.matching("SIGKILL")

    def test_at_a_quick_stop(self, server: Server) -> None:
        with Frames(server.address) as websocket:
            websocket.echoes()
            server.signal(signal.SIGQUIT)
            assert server.wait_exit(AT_ONCE) == 0
        assert server.out.lines[-1] == LAST
        assert not server.log.matching("SIGKILL")


def test_calls_are_cancelled_when_graceful_timeout_is_over(loop: str) -> None:
    with serve(asgi_loop=loop, graceful_timeout=1) as server:
        threads = [in_background(server, target) for target in ("/sleep?60", "/after?60")]
        for path in ("/sleep", "/after"):
            server.out.wait(f"{path} begins")
        server.signal(signal.SIGTERM)
        assert server.wait_exit(AT_ONCE) == 0
        assert server.out.lines[-1] == LAST
        assert not server.log.matching("SIGKILL")
        for thread in threads:
            thread.join()


class TestBoot:
    @pytest.mark.parametrize(
        ("how", "lifespan", "text"),
        [
            ("fails", "auto", "The application failed to start: OSError: no database"),
            ("fails", "on", "The application failed to start: OSError: no database"),
            ("raises", "on", r"The application failed to start \(asgi_lifespan is on\): OSError: no database"),
            ("other", "on", r"asgi_lifespan is on\): AssertionError"),
            ("exits", "auto", r"sys.exit\(9\)"),
        ],
    )
    def test_a_startup_that_fails_is_a_worker_that_does_not_boot(self, how: str, lifespan: str, text: str) -> None:
        with serve(how, asgi_lifespan=lifespan, workers=2, wait=False) as server:
            assert server.wait_exit() == 3
            assert server.log.matching(text), server.log.text
            assert server.log.matching("Worker failed to boot")
            assert not server.log.matching("Exception in worker process")

    @pytest.mark.parametrize(("how", "lifespan"), [("other", "auto"), ("raises", "auto"), ("fails", "off")])
    def test_one_that_does_not_speak_it_is_served(self, how: str, lifespan: str) -> None:
        with serve(how, asgi_lifespan=lifespan) as server:
            assert server.get("/state").json() == {}
            server.signal(signal.SIGTERM)
            assert server.wait_exit(AT_ONCE) == 0
        assert "shutdown" not in server.out.text

    def test_requests_wait_for_the_startup(self, loop: str, tmp_path: Path) -> None:
        with serve(f"{tmp_path}/go", asgi_loop=loop) as server:
            server.out.wait("startup")
            asked = in_background(server, "/sleep?0")
            asked.join(0.2)
            assert asked.is_alive()
            (tmp_path / "go").touch()
            asked.join(10)
            assert asked.answers == [200]  # type: ignore[attr-defined]


MODULE = """
import os

async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        {startup}
        await send({{"type": "lifespan.startup.complete"}})
        await receive()
        os.write(1, b"{text} is shut down\\n")
        await send({{"type": "lifespan.shutdown.complete"}})
        return
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": b"{text}"}})
"""

FAILS = 'await send({"type": "lifespan.startup.failed", "message": "marker"}); return'


def source(text: str, startup: str = "") -> str:
    return MODULE.format(text=text, startup=startup.replace("{", "{").replace("}", "}") or "pass")


class TestReload:
    def test_a_startup_that_fails_rolls_the_generation_back(self) -> None:
        files = {"mine.py": source("old")}
        settings = "worker_class = 'asgi'\nworkers = 2\nloglevel = 'debug'\n"
        with Site(settings, app="mine:application", workers=2, files=files) as server:
            server.log.wait("is ready", count=2)
            before = set(server.worker_pids())
            server.write("mine.py", source("new", FAILS))
            server.signal(signal.SIGHUP)
            server.log.wait("The application failed to start: marker")
            server.log.wait("Reload failed; the old workers keep serving")
            until(lambda: set(server.worker_pids()) == before, "only the old workers are left")
            assert server.get("/").body == b"old"
            server.write("mine.py", source("mended"))
            server.hup(workers=2)
            assert server.get("/").body == b"mended"
            assert server.out.lines.count("old is shut down") == 2

    def test_a_worker_that_is_replaced_shuts_down(self) -> None:
        with serve(max_requests=3) as server:
            before = server.worker_pid()
            replaced(server, lambda: [server.get("/") for _ in range(3)])
            assert server.worker_pid() != before
            server.out.wait(LAST)

    @pytest.mark.parametrize("broken", ["1 / 0\n", source("new", "1 / 0"), source("new", FAILS)])
    def test_under_reload_a_broken_application_is_shown_until_it_is_mended(self, broken: str) -> None:
        settings = "worker_class = 'asgi'\nasgi_lifespan = 'on'\nreload = True\n"
        with Site(settings, app="mine:application", files={"mine.py": broken}) as server:
            reply = server.get("/")
            assert reply.status == 500
            assert (b"marker" if FAILS in broken else b"ZeroDivisionError") in reply.body
            server.write("mine.py", source("mended"))
            until(lambda: server.get("/").body == b"mended", "the mended one")


def test_a_worker_whose_arbiter_is_gone_shuts_down_too(loop: str) -> None:
    with serve(asgi_loop=loop, graceful_timeout=5) as server:
        asked = in_background(server, "/after?60")
        server.out.wait("/after begins")
        server.signal(signal.SIGKILL)
        server.out.wait("/after is cancelled")
        server.out.wait(LAST)
        asked.join()
        until(lambda: not server.leftovers(), "the worker has ended")


def test_preloaded_applications(loop: str) -> None:
    with serve(asgi_loop=loop, workers=2, preload=True) as server:
        until(lambda: server.out.lines.count("startup") == 2, "both have started")
        assert server.get("/state").json()["pool"] == "a pool"
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert server.out.lines.count(LAST) == 2


class TestTheLoop:
    def test_a_task_that_calls_sys_exit_ends_itself(self, server: Server) -> None:
        before = server.worker_pid()
        assert server.get("/task-exits").status == 200
        server.log.wait("SystemExit in the event loop; the loop keeps running")
        assert server.get("/").body == b"%d" % before

    def test_who_stops_the_loop_does_not(self, server: Server) -> None:
        before = server.worker_pid()
        assert server.get("/stops").body == b"%d" % before
        assert server.get("/").body == b"%d" % before

    def test_signals_that_mean_nothing_to_a_worker(self, server: Server) -> None:
        pid = int(server.get("/").body)
        for number in (signal.SIGHUP, signal.SIGUSR2, signal.SIGWINCH, signal.SIGUSR1, signal.SIGTTIN):
            os.kill(pid, number)
        assert server.get("/").body == b"%d" % pid


HOOKS = """
import os

worker_class = "asgi"

def say(text):
    os.write(1, text.encode() + b"\\n")

def post_fork(server, worker): say("post_fork")
def post_worker_init(worker):
    say("post_worker_init")
    inner = worker.wsgi
    async def outer(scope, receive, send):
        say(f"outer {scope['type']}")
        await inner(scope, receive, send)
    worker.wsgi = outer
def pre_request(worker, req):
    say(f"pre_request {req.method} {req.path}")
    req.headers.append(("X-ADDED", "1"))
def post_request(worker, req, environ, resp): say(f"post_request {resp.status} {environ['HTTP_X_ADDED']}")
def worker_int(worker): say("worker_int")
def worker_exit(server, worker): say("worker_exit")
"""


def test_hooks_in_their_order() -> None:
    with Site(HOOKS, app=APP, env={"LIFESPAN": "complete"}) as server:
        server.get("/one?q=1")
        server.signal(signal.SIGINT)
        assert server.wait_exit() == 0
        assert server.out.lines == [
            "post_fork",
            "post_worker_init",
            "outer lifespan",
            "startup",
            "pre_request GET /one",
            "outer http",
            "post_request 200 OK 1",
            "worker_int",
            LAST,
            "worker_exit",
        ]


class TestTheWrongClass:
    @pytest.mark.parametrize("extra", [(), ("--preload",), ("--check-config",)])
    def test_an_asgi_application_under_sync(self, extra: tuple[str, ...]) -> None:
        done = run("-b", f"127.0.0.1:{free_port()}", "-k", "sync", *extra, APP)
        assert done.returncode == (1 if "--check-config" in extra else 4), done.stderr
        assert (
            "'lifespan:application' is an ASGI application, which the worker class 'sync' cannot run. "
            "Use --worker-class asgi, or remove the setting."
        ) in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_wsgi_application_under_asgi(self) -> None:
        done = run("-b", f"127.0.0.1:{free_port()}", "-k", "asgi", "gallery:application")
        assert done.returncode == 4, done.stderr
        assert "is a WSGI application, which the worker class 'asgi' cannot run" in done.stderr
        assert "App failed to load" in done.stderr


def test_other_names_of_the_class() -> None:
    for name in ("uvicorn.workers.UvicornWorker", "uvicorn_worker.UvicornWorker", "gunicorn.workers.gasgi.ASGIWorker"):
        with Server(APP, worker_class=name) as server:
            assert server.get("/").status == 200
            assert server.log.matching("Using worker: asgi$")


def test_a_worker_of_its_own_port_listens_when_it_has_started(tmp_path: Path) -> None:
    """With reuse_port no worker would answer a connection that came before."""
    with serve(f"{tmp_path}/go", reuse_port=True, wait=False) as server:
        server.out.wait("startup")
        with socket.socket() as sock, pytest.raises(ConnectionRefusedError):
            sock.connect(("127.0.0.1", server.port))
        (tmp_path / "go").touch()
        until(server._accepts, "it listens")
        assert server.get("/").status == 200
