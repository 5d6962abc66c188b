"""The worker's task on its event loop: libraries find it among all tasks, and what ends it ends no worker.

anyio keeps a thread for its next call until the task ends that the program runs (`asyncio.run`).
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import REFERENCE, Server, until
from tests.harness.deadline import AT_ONCE
from tests.harness.frames import TEXT, Frames
from tests.harness.needs import needs
from tests.harness.site import replaced

pytestmark = pytest.mark.skipif(REFERENCE, reason="the reference server is not held to this")

COLUMNS = {
    "asyncio": {"app": "threads:application", "worker_class": "asgi", "asgi_loop": "asyncio"},
    "uvloop": {"app": "threads:application", "worker_class": "asgi", "asgi_loop": "uvloop"},
    "aiohttp": {"app": "threads:make_aiohttp()", "worker_class": "aiohttp"},
    "tornado": {"app": "threads:make_tornado()", "worker_class": "tornado"},
}
CANCELLED = "The application cancelled all tasks of the event loop; the worker keeps serving"
STOPPED = "The application stopped the event loop; the worker runs it again"


def serve(column: str, **options: Any) -> Server:
    needs("anyio", "sniffio", *({column} - {"asyncio"}))
    return Server(**{**COLUMNS[column], **options})


@pytest.fixture(params=COLUMNS)
def column(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(column: str) -> Iterator[Server]:
    with serve(column) as made:
        yield made


@pytest.fixture(params=["asyncio", "uvloop"])
def asgi(request: pytest.FixtureRequest) -> Iterator[Server]:
    with serve(request.param) as made:
        yield made


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_threads_are_used_again(server: Server) -> None:
    server.get("/thread")
    before = threads_of(server.worker_pid())
    with server.connect() as wire:
        used = {wire.get("/thread").body for _ in range(200)}
    used |= {server.get("/thread").body for _ in range(20)}
    assert used == {b"1"}
    assert threads_of(server.worker_pid()) <= before


def test_they_are_the_same_for_requests_messages_and_the_lifespan(asgi: Server) -> None:
    with Frames(asgi.address) as websocket:
        for _ in range(20):
            assert websocket.put(TEXT, b"?").message() == "1"
    assert asgi.get("/thread").body == b"1"
    asgi.signal(signal.SIGTERM)
    assert asgi.wait_exit(AT_ONCE) == 0
    assert asgi.out.lines == ["lifespan.startup in 1 threads", "lifespan.shutdown in 1 threads"]


def test_idle_threads_do_not_hold_up_the_end(server: Server) -> None:
    """Those of another library than the server's: the interpreter waits for each of them."""
    asked = [threading.Thread(target=server.get, args=("/thread",)) for _ in range(8)]
    for each in asked:
        each.start()
    for each in asked:
        each.join()
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert not server.log.matching("SIGKILL")


def test_they_are_used_again_after_a_reload(asgi: Server) -> None:
    asgi.get("/thread")
    replaced(asgi, lambda: asgi.signal(signal.SIGHUP))
    assert {asgi.get("/thread").body for _ in range(20)} == {b"1"}


def test_the_task_of_a_request_is_current_from_its_first_step_on(server: Server) -> None:
    assert server.get("/task").body == b"asyncio, True"


class TestWhoCancelsAllTasks:
    @pytest.mark.parametrize("target", ["/cancels", "/gathers"])
    def test_ends_requests_only(self, server: Server, column: str, target: str) -> None:
        if (column, target) == ("aiohttp", "/gathers"):
            target = "/cancels"  # a task of aiohttp's waits for that of the handler: they would wait for each other
        before = server.worker_pid()
        with server.connect() as sleeper:
            sleeper.send(b"GET /sleep HTTP/1.1\r\nHost: x\r\n\r\n")
            server.out.wait("sleeps")
            assert server.get(target).body == b"done"
            server.log.wait(CANCELLED)
        assert server.get("/thread").status == 200
        assert server.get(target).body == b"done"
        until(lambda: len(server.log.matching(CANCELLED)) == 2, "the second time is told, too")
        assert {server.get("/task").body for _ in range(3)} == {b"asyncio, True"}
        assert server.worker_pid() == before
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert not server.log.matching("SIGKILL")

    def test_makes_threads_anew_only_once(self, asgi: Server) -> None:
        asgi.get("/thread")
        asgi.get("/cancels")
        asgi.log.wait(CANCELLED)
        asgi.get("/thread")
        before = asgi.get("/thread").body
        assert {asgi.get("/thread").body for _ in range(20)} == {before}

    def test_may_stop_the_loop_too(self, server: Server) -> None:
        assert server.get("/stops").body == b"done"
        server.log.wait(re.escape(STOPPED))
        assert server.get("/thread").status == 200

    def test_and_its_lifespan_hears_of_it(self, asgi: Server) -> None:
        asgi.get("/cancels")
        asgi.log.wait("The application cancelled its lifespan task; the worker keeps serving without it")
