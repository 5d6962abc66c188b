"""The gateway's callbacks: `before` and `after` each request that meets the application."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tricorn.gateway.wsgi import FileWrapper

from tests.harness.core import serving
from tests.harness.deadline import until

Environ = dict[str, Any]
# Words of the scoreboard.
CONNECTIONS, ACCEPTED = 8, 16
PAGE = 141
"""Bytes of the server's own page of a 500."""


@dataclass
class Calls:
    """What was called, in order."""

    seen: list[str] = field(default_factory=list)
    after: list[tuple[Any, ...]] = field(default_factory=list)
    log: Path | None = None

    def before_call(self, environ: Environ) -> str:
        self.seen.append(f"before {environ['PATH_INFO']}")
        return f"token of {environ['PATH_INFO']}"

    def after_call(self, *arguments: Any) -> None:
        self.seen.append("after")
        self.after.append(arguments)

    def last(self, count: int = 1) -> tuple[Any, ...]:
        until(lambda: len(self.after) >= count, "the callback after a reply")
        return self.after[-1]


def hello(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 Fine", [("Content-Type", "text/plain"), ("X-One", "1"), ("X-One", "caf\xe9")])
    return [b"hello"]


@pytest.fixture
def calls() -> Calls:
    return Calls()


def test_a_reply_is_told_when_it_is_complete(calls: Calls) -> None:
    with serving(hello, before=calls.before_call, after=calls.after_call) as core, core.wire() as wire:
        assert wire.get("/path?q").body == b"hello"
        environ, token, status, headers, sent, micros = calls.last()
    assert calls.seen == ["before /path", "after"]
    assert environ["QUERY_STRING"] == "q"
    assert token == "token of /path"
    assert status == "200 Fine"
    assert headers == [("Content-Type", "text/plain"), ("X-One", "1"), ("X-One", "caf\xe9")]
    assert sent == 5
    assert 0 < micros < 10_000_000


def test_each_works_without_the_other(calls: Calls) -> None:
    with serving(hello, after=calls.after_call) as core, core.wire() as wire:
        wire.get("/")
        assert calls.last()[1] is None
    with serving(hello, before=calls.before_call) as core, core.wire() as wire:
        assert wire.get("/").status == 200
    assert calls.seen == ["after", "before /"]


def test_what_is_not_sent_to_head_is_not_counted(calls: Calls) -> None:
    with serving(hello, after=calls.after_call) as core, core.wire() as wire:
        wire.ask("HEAD", "/")
        assert calls.last()[2:5] == ("200 Fine", calls.last()[3], 0)


def test_files_are_told_like_others(calls: Calls, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100_000)

    def application(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("206 Partial Content", [("Content-Length", "70000")])
        return FileWrapper(path.open("rb"))

    with serving(application, after=calls.after_call) as core, core.wire() as wire:
        assert len(wire.get("/").body) == 70_000
        assert calls.last()[2:5] == ("206 Partial Content", [("Content-Length", "70000")], 70_000)


def test_streams_are_told_at_their_end(calls: Calls) -> None:
    def application(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [])("a")  # type: ignore[arg-type]
        return []

    def stream(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        write = start_response("200 OK", [])
        write(b"one")
        for _ in range(3):
            yield b"two"
            assert not calls.after

    with serving(stream, after=calls.after_call) as core, core.wire() as wire:
        assert wire.get("/").body == b"onetwotwotwo"
        assert calls.last()[2:5] == ("200 OK", [], 12)
    with serving(application, after=calls.after_call) as core, core.wire() as wire:
        assert wire.get("/").status == 500
        assert calls.last(2)[2:5] == ("500 Internal Server Error", [], PAGE)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), KeyboardInterrupt()])
def test_an_application_that_fails_is_told_too(calls: Calls, error: BaseException) -> None:
    def application(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("X-Not", "sent")])
        raise error

    with serving(application, before=calls.before_call, after=calls.after_call) as core, core.wire() as wire:
        assert wire.get("/").status == 500
        assert calls.last()[1:5] == ("token of /", "500 Internal Server Error", [], PAGE)
        assert [message for message, _ in core.errors] == ["Error handling request GET /"]


def test_an_application_that_fails_within_its_body_has_sent_its_head(calls: Calls) -> None:
    def application(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("X-Was", "sent")])
        yield b"begun"
        raise ValueError("no")

    with serving(application, after=calls.after_call) as core, core.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n").ended()
        assert calls.last()[2:5] == ("200 OK", [("X-Was", "sent")], 5)


def test_an_error_before_the_application_is_a_500(calls: Calls) -> None:
    def before(environ: Environ) -> None:
        raise SystemExit("refused")

    with serving(hello, before=before, after=calls.after_call) as core, core.wire() as wire:
        assert wire.get("/").status == 500
        assert calls.last()[1:4] == (None, "500 Internal Server Error", [])
        assert [(message, type(error)) for message, error in core.errors] == [
            ("Error handling request GET /", SystemExit)
        ]
        assert core.word(26) == 1  # application errors


def test_an_error_after_the_reply_is_logged_and_changes_nothing(calls: Calls) -> None:
    def after(*_: Any) -> None:
        raise ValueError("too late")

    with serving(hello, after=after) as core, core.wire() as wire:
        assert [wire.get("/").status for _ in range(3)] == [200] * 3
        until(lambda: len(core.errors) == 3, "the errors")
        assert {(message, str(error)) for message, error in core.errors} == {
            ("Exception in post_request hook", "too late")
        }
        assert core.word(26) == 0


def test_the_line_of_the_log_comes_first(calls: Calls, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    lines: list[int] = []

    def after(*_: Any) -> None:
        # Written by the monitor's next tick, which does not wait for this call to return.
        until(lambda: log.read_text() != "", "the line")
        lines.append(len(log.read_text().splitlines()))

    options = {"access_log": str(log), "access_log_format": "%(r)s"}
    with serving(hello, after=after, **options) as core, core.wire() as wire:
        wire.get("/")
        until(lambda: lines == [1], "the callback that saw the line")


def test_the_line_of_a_long_call_comes_first(tmp_path: Path) -> None:
    """By then the monitor waits for events, as no other thread can, and there are none."""
    log = tmp_path / "access.log"
    lines: list[str] = []

    def long(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with core.wire():
            until(lambda: core.word(ACCEPTED) == 2, "the monitor accepts")
        until(lambda: core.word(CONNECTIONS) == 1, "the monitor sees that it is gone")
        return hello(environ, start_response)

    def after(*_: Any) -> None:
        until(lambda: log.read_text() != "", "the line")
        lines.append(log.read_text())

    with serving(long, after=after, access_log=str(log), access_log_format="%(r)s") as core, core.wire() as wire:
        wire.get("/")
        until(lambda: lines == ["GET / HTTP/1.1\n"], "the callback that saw the line")


def test_refused_requests_meet_no_callback(calls: Calls) -> None:
    with serving(hello, before=calls.before_call, after=calls.after_call) as core:
        with core.wire() as wire:
            assert wire.send(b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n").reply().status == 400
        with core.wire() as wire:
            wire.get("/next")
        calls.last()
    assert calls.seen == ["before /next", "after"]


def test_a_callback_that_takes_long_holds_no_answer_back() -> None:
    """Answers of a busy worker go out together, but none waits for a callback."""
    block, entered = threading.Event(), threading.Event()

    def after(environ: Environ, *_: Any) -> None:
        if environ["PATH_INFO"] == "/slow":
            entered.set()
            block.wait(10)

    with serving(hello, after=after) as core, core.wire() as wire:
        try:
            assert wire.get("/slow").body == b"hello"
            assert entered.wait(5)
        finally:
            block.set()


def test_the_environ_may_be_kept(calls: Calls) -> None:
    kept: list[Environ] = []
    with serving(hello, before=kept.append, after=calls.after_call) as core, core.wire() as wire:
        for number in range(5):
            wire.get(f"/{number}")
        calls.last(5)
    assert [environ["PATH_INFO"] for environ in kept] == [f"/{number}" for number in range(5)]
    assert all(environ is called[0] for environ, called in zip(kept, calls.after, strict=True))
