"""The order of things in an event-loop worker, around a core and a loop server that only take notes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tricorn.errors import BootError
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.workers import registry
from tricorn.workers.loops import LoopWorker
from tricorn.workers.messages import BootFailed, Ready

from tests.unit.workers.conftest import Arbiter, Core

Hire = Callable[..., Arbiter]


class LoopServer:
    """Done when the core is drained or stopped and its WebSockets were told; `calls` go on for so many looks."""

    calls = 0
    websockets = 1

    def __init__(self, core: Core, gateway: object, done: Callable[[], object]) -> None:
        self.core, self.done = core, done
        self.loop = asyncio.get_event_loop()
        self.pipe = os.pipe()
        self.descriptors = (self.pipe[0], self.pipe[0])
        core.note("serves")
        self.loop.call_soon(core.script)
        self.look()

    def look(self) -> None:
        if self.core.over.is_set() and LoopServer.websockets == 0:
            self.core.note("done")
            self.done()
        else:
            self.loop.call_later(0.001, self.look)

    def poll(self) -> None: ...

    def late_call(self) -> None: ...

    def sample_with(self, sample: Callable[..., object]) -> None: ...

    def running(self) -> int:
        LoopServer.calls -= 1
        return max(LoopServer.calls, 0)

    def cancel_all(self) -> None:
        self.core.note("cancel_all")
        LoopServer.calls = 0

    def leave(self, code: int) -> int:
        self.core.note(f"leave {code}")
        return LoopServer.websockets

    def dismiss(self, most: int) -> None:
        LoopServer.websockets -= most
        self.core.note(f"dismiss {most}")

    def last_call(self) -> None:
        self.core.note("last_call")

    def enforce(self, at_once: bool = False) -> None: ...

    def closed(self) -> tuple[int, int]:
        return 0, 0

    def close(self) -> None:
        for end in self.pipe:
            os.close(end)
        self.core.note("server.close")


class LoopClock:
    """Keeps no time."""

    def __init__(self, core: Core) -> None: ...

    def begin(self) -> None: ...

    def around(self, wait: Callable[..., object]) -> Callable[..., object]:
        return wait

    def select(self, epoll: int, keys: dict[int, Any]) -> Callable[..., object]:
        selector: Any = vars(asyncio.get_event_loop())["_selector"]
        return type(selector).select.__get__(selector)


@pytest.fixture(autouse=True)
def worker_class(core: Core, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[LoopWorker]]:
    import sys

    vars(sys.modules["tricorn._core"]).update(LoopServer=LoopServer, LoopClock=LoopClock)
    LoopServer.calls, LoopServer.websockets = 0, 1

    class Noting(LoopWorker):
        alias = "asgi"

        def start_up(self) -> bool:
            core.note("start_up")
            return True

        def shut_down(self) -> bool:
            core.note("shut_down")
            return True

        def make_gateway(self) -> Any:
            core.note("make_gateway")

    monkeypatch.setattr(registry, "load", lambda alias: Noting)
    core.start = lambda: core.note("start")  # type: ignore[method-assign]
    return Noting


def stop_by(name: str) -> Callable[[], None]:
    return lambda: signal.raise_signal(signal.Signals[f"SIG{name}"])


def test_life_of_an_event_loop(core: Core, hire: Hire) -> None:
    core.script = stop_by("TERM")
    arbiter = hire(worker_class="asgi")
    assert arbiter.worker.live() == 0
    assert arbiter.heard() == [Ready(kind="asgi")]
    assert core.notes == [
        "start_up",
        "make_gateway",
        "start",
        "serves",
        "drain",
        "leave 1001",
        "dismiss 1",
        "done",
        "server.close",
        "shut_down",
        "close",
    ]
    with pytest.raises(RuntimeError):
        asyncio.get_event_loop_policy().get_event_loop().run_until_complete(asyncio.sleep(0))


def test_websockets_are_told_whether_others_serve_on(core: Core, hire: Hire) -> None:
    arbiter = hire(worker_class="asgi")
    Scoreboard(arbiter.worker.spec.page).order(replaced=True)
    core.script = stop_by("TERM")
    assert arbiter.worker.live() == 0
    assert "leave 1012" in core.notes


def test_a_quick_stop_does_not_spread_the_ends_of_websockets(core: Core, hire: Hire) -> None:
    LoopServer.websockets = 1_000

    def both() -> None:
        stop_by("TERM")()
        asyncio.get_running_loop().call_later(0.05, stop_by("QUIT"))

    core.script = both
    assert hire(worker_class="asgi", argv="--stream-drain 10").worker.live() == 0
    told = [int(note.split()[1]) for note in core.notes if note.startswith("dismiss")]
    assert told[0] == 1
    assert told[-1] > 900
    assert sum(told) == 1_000


@pytest.mark.parametrize("argv", ["--stream-drain 0", "--reload", "--graceful-timeout 0.03"])
def test_websocket_closes_that_are_not_spread(core: Core, hire: Hire, argv: str) -> None:
    LoopServer.websockets = 3
    core.script = stop_by("TERM")
    assert hire(worker_class="asgi", argv=argv).worker.live() == 0
    told = [int(note.split()[1]) for note in core.notes if note.startswith("dismiss")]
    assert sum(told) == 3
    assert len(told) == 1 or "graceful" in argv


def test_what_goes_on_after_its_reply_is_waited_for(core: Core, hire: Hire) -> None:
    LoopServer.calls = 4
    core.script = stop_by("TERM")
    assert hire(worker_class="asgi").worker.live() == 0
    assert LoopServer.calls < 0
    assert "cancel_all" not in core.notes


@pytest.mark.parametrize(("name", "argv"), [("TERM", "--graceful-timeout 0.05"), ("QUIT", "")])
def test_but_not_for_ever(core: Core, hire: Hire, name: str, argv: str) -> None:
    LoopServer.calls = 10**9
    core.script = stop_by(name)
    assert hire(worker_class="asgi", argv=argv).worker.live() == 0
    assert core.notes[-4:] == ["cancel_all", "server.close", "shut_down", "close"]


def test_quit_while_calls_are_waited_for(core: Core, hire: Hire) -> None:
    LoopServer.calls = 10**9

    def both() -> None:
        stop_by("TERM")()
        asyncio.get_running_loop().call_later(0.05, stop_by("QUIT"))

    core.script = both
    assert hire(worker_class="asgi").worker.live() == 0
    assert core.notes[-4:] == ["cancel_all", "server.close", "shut_down", "close"]


def test_a_shutdown_that_does_not_end_is_cancelled(core: Core, hire: Hire, worker_class: Any) -> None:
    async def last_steps() -> None:
        core.note("shut_down")
        stop_by("QUIT")()
        try:
            await asyncio.Event().wait()
        finally:
            core.note("cancelled")

    worker_class.shut_down = lambda self: self.complete(last_steps(), 0.1)
    core.script = stop_by("TERM")
    assert hire(worker_class="asgi").worker.live() == 0
    assert core.notes[-4:] == ["shut_down", "stop", "cancelled", "close"]


def test_a_shutdown_that_raises_is_logged(core: Core, hire: Hire, worker_class: Any) -> None:
    async def last_steps() -> None:
        raise OSError("disk full")

    worker_class.shut_down = lambda self: self.complete(last_steps())
    core.script = stop_by("TERM")
    assert hire(worker_class="asgi").worker.live() == 0
    assert core.notes[-1] == "close"


@pytest.mark.parametrize("error", [BootError("no database"), OSError("no database"), SystemExit("no database")])
def test_a_startup_that_fails_is_a_failed_boot(
    core: Core,
    hire: Hire,
    worker_class: Any,
    error: BaseException,
) -> None:
    async def first_steps() -> None:
        raise error

    worker_class.start_up = lambda self: self.complete(first_steps())
    arbiter = hire(worker_class="asgi")
    assert arbiter.worker.live() == 3
    (message,) = arbiter.heard()
    assert isinstance(message, BootFailed)
    assert message.reason.endswith("no database")
    assert core.notes == []


def test_what_fails_after_the_startup_is_followed_by_the_shutdown(core: Core, hire: Hire, worker_class: Any) -> None:
    def fail(self: LoopWorker) -> None:
        raise OSError("no gateway")

    worker_class.make_gateway = fail
    assert hire(worker_class="asgi").worker.live() == 3
    assert core.notes == ["start_up", "shut_down"]


def test_a_server_that_fails_ends_the_worker_but_not_without_the_shutdown(core: Core, hire: Hire) -> None:
    def fail(*_: object) -> None:
        raise OSError("epoll is gone")

    LoopServer.close, close = fail, LoopServer.close  # type: ignore[spec,method-assign]
    try:
        core.script = stop_by("TERM")
        assert hire(worker_class="asgi").worker.live() == 1
    finally:
        LoopServer.close = close  # type: ignore[method-assign]
    assert core.notes[-2:] == ["shut_down", "close"]


def test_hooks_of_signals_run_in_the_loop(core: Core, hire: Hire) -> None:
    def worker_int(worker: object) -> None:
        assert asyncio.get_running_loop()
        core.note("worker_int")

    core.script = stop_by("INT")
    assert hire(worker_class="asgi", worker_int=worker_int).worker.live() == 0
    assert core.notes[4:6] == ["worker_int", "stop"]


def test_the_loop_is_there_when_the_application_is_imported(core: Core, hire: Hire, tmp_path: Any) -> None:
    (tmp_path / "life_app.py").write_text(
        "import asyncio\nloop = asyncio.get_event_loop()\nasync def application(scope, receive, send): ...\n"
    )
    core.script = stop_by("TERM")
    arbiter = hire(worker_class="asgi", argv="-k asgi")
    assert arbiter.worker.live() == 0
    import life_app  # type: ignore[import-not-found]

    assert life_app.loop.is_closed()
