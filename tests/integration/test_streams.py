"""Responses that last: how they end when their worker leaves, and when their reader does."""

from __future__ import annotations

import re
import signal
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness import ALL_CLASSES, Server, Wire, until
from tests.harness.classes import each
from tests.harness.wire import Reply, Short, request

if TYPE_CHECKING:
    from typing_extensions import Self

pytestmark = pytest.mark.beyond_reference("gunicorn cuts streams off when graceful_timeout is over")

APP = "streams:application"
LOOPS = pytest.mark.parametrize("worker_class", each("asgi", "tornado", "aiohttp"))
SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])


class Stream:
    """A response under way, of which at least one piece has come."""

    def __init__(self, server: Server, path: str, method: str = "GET") -> None:
        self.wire: Wire = server.connect()
        self.wire.send(request(method, path, [("Content-Length", "0")] if method == "POST" else []))
        while b"\r\n\r\n" not in self.wire.unread[:-4]:
            self.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def read(self) -> int:
        self.wire.unread += self.wire.sock.recv(65536)
        return len(self.wire.unread)

    def rest(self) -> Reply:
        """The whole response; raises `Short` if it was cut off."""
        return self.wire.reply()


def quiet(server: Server) -> None:
    """What the server ends itself is no error, and has no line of its own."""
    assert not server.log.matching(r"Traceback|\[ERROR\]|\[WARNING\]|Error handling request"), server.log.text


@SIGNALS
@ALL_CLASSES
def test_an_event_stream_ends_whole_when_its_worker_leaves(worker_class: str, number: signal.Signals) -> None:
    count = 1 if worker_class == "sync" else 3
    patience = {"graceful_timeout": 3600, "timeout": 0}
    with Server(APP, worker_class=worker_class, **patience) as server, ExitStack() as stack:
        streams = [stack.enter_context(Stream(server, "/ticks")) for _ in range(count)]
        server.signal(number)
        for stream in streams:
            reply = stream.rest()
            assert reply.framing == "chunked"
            assert set(reply.chunks) == {b"data: tick\n\n"}
            stream.wire.closed()
        server.log.wait("ended GET /ticks", count=count)
        server.log.wait(rf"\[INFO\].* Closed {count} streams?$")
        if number == signal.SIGTERM:
            assert server.wait_exit() == 0
        quiet(server)


@ALL_CLASSES
def test_a_silent_one_ends_as_well(worker_class: str) -> None:
    """On event loops it is told, and on threads and greenlets it can know (`tricorn.leaving`)."""
    with Server(APP, worker_class=worker_class, graceful_timeout=3600, timeout=0) as server:
        with Stream(server, "/silent") as stream:
            server.signal(signal.SIGTERM)
            assert stream.rest().body == b"data: begun\n\n"
            assert server.wait_exit() == 0
        quiet(server)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
@LOOPS
def test_a_quick_stop_ends_them_at_once_and_whole(worker_class: str, number: signal.Signals) -> None:
    with Server(APP, worker_class=worker_class, graceful_timeout=3600, stream_drain=3600) as server:
        with Stream(server, "/ticks") as ticks, Stream(server, "/silent") as silent:
            server.signal(number)
            assert ticks.rest().body.endswith(b"data: tick\n\n")
            assert silent.rest().body == b"data: begun\n\n"
            assert server.wait_exit() == 0
        quiet(server)


@LOOPS
def test_one_that_stops_within_an_event_is_cut_off(worker_class: str, tmp_path: Path) -> None:
    log = tmp_path / "access"
    options: dict[str, Any] = {"access_logfile": log, "access_logformat": "%(U)s %(outcome)s"}
    with Server(APP, worker_class=worker_class, asgi_disconnect_grace_period=1, **options) as server:
        with Stream(server, "/half") as half, Stream(server, "/ticks") as ticks:
            server.signal(signal.SIGTERM)
            ticks.rest()
            with pytest.raises(Short):
                half.rest()
            assert server.wait_exit() == 0
        quiet(server)
    assert sorted(log.read_text().split("\n")) == ["", "/half leaving", "/ticks leaving"]


@LOOPS
def test_the_application_is_told_shuts_down_and_the_metric_counts(worker_class: str, tmp_path: Path) -> None:
    """A second worker stays, and tells what the first has counted."""
    admin = tmp_path / "admin"
    with Server(APP, worker_class=worker_class, admin_bind=f"unix:{admin}", metrics_path="/metrics") as server:
        with Stream(server, "/ticks") as stream:
            server.signal(signal.SIGHUP)
            stream.rest()
            server.log.wait("Closed 1 stream$")

        def counted() -> bool:
            with Wire(str(admin)) as wire:
                return "\ntricorn_streams_closed_total 1\n" in wire.get("/metrics").body.decode()

        until(counted, "it is counted")
        if worker_class != "tornado":
            server.log.wait("lifespan shutdown")


def test_what_answers_a_post_goes_on_until_the_last_third_of_the_patience() -> None:
    """No client repeats it by itself: the answer of a language model is not given up for a deployment."""
    with Server(APP, worker_class="asgi", graceful_timeout=6) as server:
        paths = [("/ticks", "GET"), ("/ticks", "POST"), ("/text", "GET")]
        with ExitStack() as stack:
            get, post, text = (stack.enter_context(Stream(server, path, method)) for path, method in paths)
            began = time.monotonic()
            server.signal(signal.SIGTERM)
            ended = len(get.rest().chunks)
            assert len(post.rest().chunks) > ended + 20
            assert time.monotonic() - began > 3.9, "two thirds of graceful_timeout"
            with pytest.raises(Short):
                text.rest()
            assert server.wait_exit() == 0
        quiet(server)


def test_an_application_hears_of_it_by_the_disconnect_and_may_send_a_last_event() -> None:
    with Server(APP, worker_class="asgi") as server, Stream(server, "/listens") as stream:
        server.signal(signal.SIGTERM)
        assert stream.rest().body == b"data: begun\n\ndata: last\n\n"
        assert server.wait_exit() == 0
        quiet(server)


def test_an_application_that_knows_may_say_goodbye() -> None:
    with Server(APP, worker_class="asgi") as server, Stream(server, "/knows") as stream:
        server.signal(signal.SIGTERM)
        assert stream.rest().body == b"data: begun\n\ndata: bye\n\n"
        assert server.wait_exit() == 0
        quiet(server)


def test_one_that_does_not_stop_is_raised_an_error_and_named_in_the_line() -> None:
    """It takes no notice of being cancelled; `send` raises when its last pieces had a second."""
    options = {"asgi_disconnect_grace_period": 0.2, "graceful_timeout": 3600}
    with Server(APP, worker_class="asgi", **options) as server, Stream(server, "/deaf") as stream:
        server.signal(signal.SIGTERM)
        assert stream.rest().body.endswith(b"data: deaf\n\n")
        server.log.wait(r"Closed 1 stream; 1 of them did not stop in time")
        assert server.wait_exit() == 0
        quiet(server)


def test_many_are_spread_evenly_the_oldest_first() -> None:
    count = 300
    with Server(APP, worker_class="asgi", stream_drain=2) as server, ExitStack() as stack:
        streams = [stack.enter_context(Stream(server, "/listens")) for _ in range(count)]
        server.signal(signal.SIGTERM)
        ended = []
        for stream in streams:
            stream.rest()
            ended.append(time.monotonic())
        assert ended[-1] - ended[0] > 1.5, "evenly would be 2 s"
        assert sum(later - sooner > 0.01 for sooner, later in pairwise(ended)) > 30, "not in a few bursts"
        server.log.wait(f"Closed {count} streams$")
        assert server.wait_exit() == 0


def test_few_are_no_reason_to_wait() -> None:
    with Server(APP, worker_class="asgi", stream_drain=3600, graceful_timeout=3600) as server, ExitStack() as stack:
        streams = [stack.enter_context(Stream(server, "/silent")) for _ in range(3)]
        server.signal(signal.SIGHUP)
        for stream in streams:
            stream.rest()


@pytest.mark.parametrize("worker_class", each("asgi", "tornado", "aiohttp", "gthread"))
def test_clients_are_asked_to_come_back_spread(worker_class: str) -> None:
    with Server(APP, worker_class=worker_class, sse_retry="500-3000") as server, ExitStack() as stack:
        streams = [stack.enter_context(Stream(server, "/ticks")) for _ in range(4)]
        server.signal(signal.SIGTERM)
        times = []
        for stream in streams:
            found = re.fullmatch(rb"(?:data: tick\n\n)+retry: (\d+)\n\n", stream.rest().body)
            assert found
            times.append(int(found[1]))
        assert all(500 <= time <= 3000 for time in times)
        assert len(set(times)) > 1


@LOOPS
def test_a_silent_event_stream_gets_comments(worker_class: str) -> None:
    with Server(APP, worker_class=worker_class, sse_ping=0.2) as server, ExitStack() as stack:
        silent, half = (stack.enter_context(Stream(server, path)) for path in ("/silent", "/half"))
        until(lambda: silent.read() and silent.wire.unread.count(b": ping\n\n") >= 3, "three comments")
        server.signal(signal.SIGTERM)
        assert re.fullmatch(rb"data: begun\n\n(: ping\n\n){3,}", silent.rest().body)
        assert b"ping" not in half.wire.ended()


def test_what_is_no_event_stream_or_encoded_gets_none() -> None:
    with Server(APP, worker_class="asgi", sse_ping=0.1, sse_retry="1") as server, ExitStack() as stack:
        others = [stack.enter_context(Stream(server, path)) for path in ("/packed", "/mute")]
        with Stream(server, "/silent") as silent:
            until(lambda: silent.read() and silent.wire.unread.count(b": ping\n\n") >= 3, "three comments")
        server.signal(signal.SIGINT)
        for other in others:
            body = other.wire.ended()
            assert b"ping" not in body
            assert b"retry" not in body


@pytest.mark.parametrize("end", ["close", "reset"])
@LOOPS
def test_a_reader_that_leaves_an_event_stream_ends_it_at_once(worker_class: str, end: str) -> None:
    """The grace period is for clients that may still read, as of `/mute`."""
    with Server(APP, worker_class=worker_class) as server:
        mute = Stream(server, "/mute") if worker_class == "asgi" else None
        stream = Stream(server, "/silent")
        if mute is not None:
            mute.wire.close()
        getattr(stream.wire, end)()
        server.log.wait("ended GET /silent")
        (ended, *_) = server.log.matching(r"ended GET (/\w+)")
        assert ended[1] == "/silent", "the other one left before, and has its grace"
        quiet(server)


@LOOPS
def test_a_half_close_is_the_end_of_an_event_stream_unless_a_grace_period_is_given(worker_class: str) -> None:
    with Server(APP, worker_class=worker_class) as server, Stream(server, "/silent") as stream:
        stream.wire.finish_sending()
        server.log.wait("ended GET /silent")
    careful = Server(APP, worker_class=worker_class, asgi_disconnect_grace_period=3600)
    with careful as server, Stream(server, "/ticks") as stream:
        stream.wire.finish_sending()
        before = stream.wire.unread.count(b"data: tick")
        until(lambda: stream.read() and stream.wire.unread.count(b"data: tick") > before + 5, "it goes on")


def test_one_that_only_sends_ends_with_its_reader() -> None:
    """A stream of any type: what it sends next is what ends it."""
    with Server(APP, worker_class="asgi") as server:
        stream = Stream(server, "/text")
        stream.wire.reset()
        server.log.wait("ended GET /text")
        assert not server.log.matching("asgi_disconnect_grace_period"), "its grace was not waited for"
        quiet(server)
