"""The lifespan protocol, in a loop of its own and with nothing around it."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tricorn.errors import BootError
from tricorn.gateway.lifespan import Lifespan, drive

from tests.harness import groups

Scope, Receive, Send = dict[str, Any], Callable[..., Any], Callable[..., Any]


@dataclass
class Log:
    """What was logged: level, text."""

    lines: list[tuple[str, str]] = field(default_factory=list)

    def __getattr__(self, level: str) -> Callable[..., None]:
        def note(text: str, *arguments: object, exc_info: BaseException | None = None) -> None:
            told = text % arguments if arguments else text
            self.lines.append((level, f"{told} {exc_info!r}" if exc_info else told))

        return note

    def at(self, *levels: str) -> list[str]:
        return [text for level, text in self.lines if level in levels]


@pytest.fixture
def log() -> Log:
    return Log()


def live(application: Any, log: Log, mode: str = "auto", serve: Any = None) -> Lifespan:
    """A whole life: startup, a request's worth of time (or `serve`), shutdown."""
    loop = asyncio.new_event_loop()

    async def wait(*futures: asyncio.Future[Any], timeout: float | None = None) -> bool:
        first = asyncio.FIRST_COMPLETED
        return bool(loop.run_until_complete(asyncio.wait(futures, timeout=timeout, return_when=first))[0])

    lifespan = Lifespan(application, loop, mode, log)
    try:
        assert drive(lifespan.startup(wait))
        loop.run_until_complete((serve or (lambda: asyncio.sleep(0)))())
        assert drive(lifespan.shutdown(wait))
        return lifespan
    finally:
        loop.run_until_complete(asyncio.sleep(0))  # a task that was cancelled ends; else the collector reports it later
        loop.close()


class Ordinary:
    """What the specification shows."""

    def __init__(self, startup: str = "complete", shutdown: str = "complete", **message: str) -> None:
        self.answers = {"lifespan.startup": startup, "lifespan.shutdown": shutdown}
        self.message = message
        self.seen: list[str] = []
        self.scope: Scope = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        while True:
            message = await receive()
            self.seen.append(message["type"])
            answer = self.answers[message["type"]]
            await send({"type": f"{message['type']}.{answer}", **self.message})
            self.seen.append(answer)
            if message["type"] == "lifespan.shutdown":
                return


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_whole_life(mode: str, log: Log) -> None:
    application = Ordinary()
    live(application, log, mode)
    assert application.seen == ["lifespan.startup", "complete", "lifespan.shutdown", "complete"]
    assert log.at("error", "warning") == []


def test_lifespan_scope(log: Log) -> None:
    application = Ordinary()
    lifespan = live(application, log)
    assert application.scope == {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
    assert application.scope["state"] is lifespan.state


def test_lifespan_off_is_never_called(log: Log) -> None:
    application = Ordinary()
    live(application, log, "off")
    assert application.seen == []


def test_the_state_is_there_for_requests(log: Log) -> None:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["pool"] = "a pool"
        await Ordinary()(scope, receive, send)

    assert live(application, log).state == {"pool": "a pool"}


@pytest.mark.parametrize("mode", ["auto", "on"])
class TestAStartupThatFails:
    def test_is_told_in_the_applications_words(self, mode: str, log: Log) -> None:
        with pytest.raises(BootError) as caught:
            live(Ordinary(startup="failed", message="no database"), log, mode)
        assert str(caught.value) == "The application failed to start: no database"
        assert caught.value.details == ""

    def test_with_a_traceback_in_its_last_line_and_in_full(self, mode: str, log: Log) -> None:
        with pytest.raises(BootError) as caught:
            live(Ordinary(startup="failed", message="Traceback:\n  File\nOSError: no database\n"), log, mode)
        assert str(caught.value) == "The application failed to start: OSError: no database"
        assert caught.value.details == "Traceback:\n  File\nOSError: no database\n"

    @pytest.mark.parametrize("kind", ["ExceptionGroup", "BaseExceptionGroup"])
    def test_of_a_group_with_its_members(self, mode: str, kind: str, log: Log) -> None:
        """Starlette sends the traceback, whose last line is a rule."""

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            try:
                raise group(kind)
            except BaseException:
                await send({"type": "lifespan.startup.failed", "message": traceback.format_exc()})
                raise

        with pytest.raises(BootError) as caught:
            live(application, log, mode)
        assert str(caught.value) == f"The application failed to start: {PREFIX}{WORDS[kind]}"
        assert "| OSError: no database" in caught.value.details
        assert log.at("error", "warning") == []

    def test_without_words(self, mode: str, log: Log) -> None:
        with pytest.raises(BootError, match="failed to start: no reason given"):
            live(Ordinary(startup="failed"), log, mode)

    def test_and_is_raised_too(self, mode: str, log: Log) -> None:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": "said"})
            raise OSError("raised")

        with pytest.raises(BootError, match="said"):
            live(application, log, mode)
        assert log.at("error", "warning") == []

    def test_by_sys_exit(self, mode: str, log: Log) -> None:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            raise SystemExit(9)

        with pytest.raises(SystemExit) as caught:
            live(application, log, mode)
        assert caught.value.code == 9


def group(kind: str) -> BaseException:
    if kind == "ExceptionGroup":
        return groups.ExceptionGroup("of tasks", [OSError("no database"), ValueError("no port\nat all")])
    return groups.BaseExceptionGroup("of tasks", [OSError("no database"), KeyboardInterrupt()])


PREFIX = "" if groups.ExceptionGroup.__module__ == "builtins" else f"{groups.ExceptionGroup.__module__}."
WORDS = {
    "ExceptionGroup": "ExceptionGroup: of tasks (2 sub-exceptions): OSError: no database; ValueError: no port",
    "BaseExceptionGroup": "BaseExceptionGroup: of tasks (2 sub-exceptions): OSError: no database; KeyboardInterrupt",
}


async def does_not_know_it(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"


async def returns(scope: Scope, receive: Receive, send: Send) -> None:
    return


async def listens_and_raises(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    raise ValueError("a mistake")


class TestNotSpoken:
    @pytest.mark.parametrize("application", [does_not_know_it, returns])
    def test_it_is_served_quietly(self, application: Any, log: Log) -> None:
        live(application, log)
        assert log.at("error", "warning") == []

    def test_what_looks_like_a_mistake_is_told(self, log: Log) -> None:
        live(listens_and_raises, log)
        (text,) = log.at("warning")
        assert "serving the application without lifespan" in text
        assert "ValueError: a mistake" in text

    @pytest.mark.parametrize(
        ("application", "reason"),
        [(does_not_know_it, "AssertionError"), (returns, "did not answer"), (listens_and_raises, "a mistake")],
    )
    def test_lifespan_on_is_required(self, application: Any, reason: str, log: Log) -> None:
        with pytest.raises(BootError, match=rf"failed to start \(asgi_lifespan is on\): .*{reason}"):
            live(application, log, "on")

    @pytest.mark.parametrize("kind", ["ExceptionGroup", "BaseExceptionGroup"])
    def test_a_group_is_told_with_its_members(self, kind: str, log: Log) -> None:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            raise group(kind)

        with pytest.raises(BootError) as caught:
            live(application, log, "on")
        assert str(caught.value) == f"The application failed to start (asgi_lifespan is on): {PREFIX}{WORDS[kind]}"
        live(application, log)
        (text,) = log.at("warning")
        assert "serving the application without lifespan" in text
        assert "| OSError: no database" in text


class TestWhileItServes:
    @pytest.mark.parametrize("kind", ["ExceptionGroup", "BaseExceptionGroup"])
    def test_an_exception_is_logged(self, kind: str, log: Log) -> None:
        event = asyncio.Event()

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await event.wait()
            raise group(kind)

        async def serve() -> None:
            event.set()
            await asyncio.sleep(0.01)

        live(application, log, serve=serve)
        (text,) = log.at("error")
        assert text.startswith(f"Exception in the application's lifespan {kind}")

    def test_who_cancels_it_is_told(self, log: Log) -> None:
        async def serve() -> None:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0.01)

        live(Ordinary(), log, serve=serve)
        assert log.at("warning") == ["The application cancelled its lifespan task; the worker keeps serving without it"]


class TestTheEnd:
    def test_a_failure_is_logged(self, log: Log) -> None:
        live(Ordinary(shutdown="failed", message="disk full"), log)
        assert log.at("error") == ["The application failed to shut down: disk full"]

    def test_an_exception_is_logged(self, log: Log) -> None:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            raise OSError("disk full")

        live(application, log)
        assert log.at("error") == ["Exception in the application's lifespan OSError('disk full')"]

    def test_one_that_told_its_failure_and_raises_is_told_once(self, log: Log) -> None:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.failed", "message": "disk full"})
            raise OSError("disk full")

        live(application, log)
        assert len(log.at("error")) == 1

    def test_one_that_has_ended_is_not_asked(self, log: Log) -> None:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "lifespan.startup.complete"})

        live(application, log)
        assert log.at("error", "warning") == []

    def test_what_comes_after_the_last_answer_is_done(self, log: Log) -> None:
        done: list[str] = []

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await Ordinary()(scope, receive, send)
            for _ in range(5):
                await asyncio.sleep(0)
            done.append("all")

        live(application, log)
        assert done == ["all"]

    def test_one_that_listens_on_is_not_waited_for(self, log: Log) -> None:
        ended: list[str] = []

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                while True:
                    await send({"type": f"{(await receive())['type']}.complete"})
            finally:
                ended.append("cancelled")

        live(application, log)
        assert ended == ["cancelled"]

    def test_startup_and_shutdown_happen_in_one_task(self, log: Log) -> None:
        tasks: set[Any] = set()

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            for _ in range(2):
                event = await receive()
                tasks.add(asyncio.current_task())
                await send({"type": f"{event['type']}.complete"})

        live(application, log)
        assert len(tasks) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        "lifespan.shutdown.complete",
        "lifespan.startup.perhaps",
        "http.response.start",
        "lifespan.startup",
        "startup.complete",
    ],
)
def test_a_wrong_message_is_raised_where_it_is_sent(wrong: str, log: Log) -> None:
    refused: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        async def attempt(message: str) -> None:
            with pytest.raises(RuntimeError, match=re.escape(repr(message))):
                await send({"type": message})
            refused.append(message)

        await receive()
        await attempt(wrong)
        await send({"type": "lifespan.startup.complete"})
        await attempt("lifespan.startup.complete")
        await attempt("lifespan.shutdown.complete")
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    live(application, log)
    assert refused == [wrong, "lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert log.at("error", "warning") == []
