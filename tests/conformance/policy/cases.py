"""What clients do: a function provokes one ending of one request, and returns what was heard.

A case is provoked once for each subject, and all rows of the table that are about it look at that. Where requests run
side by side, so do the cases: most of their time is spent in waiting for deadlines.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass

from tests.conformance.policy.stage import (
    BODY_SECONDS,
    MOST_REQUESTS,
    RATE,
    SUBJECTS,
    WRITE_SECONDS,
    Kind,
    Stage,
    post,
)
from tests.conftest import Pool
from tests.harness import Wire, elapse, until
from tests.harness.frames import CLOSE, TEXT, frame, handshake
from tests.harness.slow import until_let_go, until_stuck
from tests.harness.wire import request

# The kernel's buffers grow while they fill, which counts as progress; and the machine that tests may be busy.
SLACK = 10.0
LENGTH = [("Content-Length", "1000")]
CHUNKED = [("Transfer-Encoding", "chunked")]
MUCH = 1 << 20
"""More than any library reads ahead of its application."""

BODY_TEXT = b"The request body did not come in time (10 bytes so far, "
LATER = 0.4
"""Seconds between a request and its half-close."""
NOTICED = 0.2
"""Seconds between a client's leaving and what its application does next: what there is to be seen can be seen."""
LEAST = 0.2
"""Seconds that an observed request takes at least."""

AT_MOST = 70
"""Seconds for all cases of a subject: a test has 90, and says what is missing."""

Provoke = Callable[[Stage, str], bytes]


@dataclass
class Outcome:
    """What came of a case for one subject."""

    stage: Stage
    tag: str
    heard: bytes


CASES: dict[str, Provoke] = {}
KINDS: dict[str, Kind] = {}


def case(kind: Kind = Kind.MAIN) -> Callable[[Provoke], Provoke]:
    """Notes the function as a case for servers of this kind."""

    def note(function: Provoke) -> Provoke:
        CASES[function.__name__], KINDS[function.__name__] = function, kind
        return function

    return note


def ask(stage: Stage, path: str, tag: str, *, timeout: float = 10) -> bytes:
    """One request, and all that comes until the server closes the connection."""
    with stage.connect(timeout=timeout) as wire:
        wire.send(request("GET", f"/{path}/{tag}"))
        return wire.ended()


@case()
def normal(stage: Stage, tag: str) -> bytes:
    """The connection is used again."""
    with stage.connect() as wire:
        reply = wire.get(f"/hello/{tag}")
        assert reply.get("X-Policy") == "one"
        assert not reply.closes
        assert wire.get(f"/hello/{stage.tag()}").body == b"Hello"
    return reply.body


@case(Kind.LATE)
def last(stage: Stage, tag: str) -> bytes:
    """As many requests as a connection may have; what is heard is the last reply, and all that comes behind it."""
    with stage.connect() as wire:
        for _ in range(MOST_REQUESTS - 1):
            assert not wire.get(f"/hello/{stage.tag()}").closes
        wire.send(request("GET", f"/hello/{tag}"))
        return wire.ended()


@case(Kind.OBSERVED)
def observed(stage: Stage, tag: str) -> bytes:
    """For how long it lasted at most, in microseconds: until it was in the log."""
    with stage.gate() as gate, stage.connect() as wire:
        began = time.monotonic()
        wire.send(request("GET", f"/works/{tag}?{gate}"))
        stage.told(tag, "in")
        elapse(LEAST)
        gate.touch()
        assert wire.reply().body == b"worked"
        stage.lines(tag)
        return str(int((time.monotonic() - began) * 1e6)).encode()


@case()
def raises(stage: Stage, tag: str) -> bytes:
    return ask(stage, "raises", tag)


@case()
def raises_late(stage: Stage, tag: str) -> bytes:
    return ask(stage, "raises-late", tag)


@case()
def short(stage: Stage, tag: str) -> bytes:
    """Nothing more comes: a client that is not told so waits for the rest."""
    return ask(stage, "short", tag, timeout=4)


@case()
def refused_by_hook(stage: Stage, tag: str) -> bytes:
    return ask(stage, "refused-by-hook", tag)


@case(Kind.LATE)
def late(stage: Stage, tag: str) -> bytes:
    return ask(stage, "works", tag)


@case(Kind.LATE)
def late_begun(stage: Stage, tag: str) -> bytes:
    return ask(stage, "begins", tag)


# Bodies.


def begin(stage: Stage, wire: Wire, head: bytes, tag: str, *, buffered: bool) -> None:
    """Sends the head, and waits until the application has begun, where it does before the body is there."""
    wire.send(head)
    if not buffered:
        stage.told(tag, "in")


def silence(stage: Stage, tag: str, *, buffered: bool) -> bytes:
    """Beside the one with the tag come two that began fast: at the minimum rate they would have paid for a while."""
    with ExitStack() as stack:
        wire, *fast = [stack.enter_context(stage.connect(timeout=2 * BODY_SECONDS + SLACK)) for _ in range(3)]
        fast[0].send(post(f"/body/{stage.tag()}", [("Content-Length", "1000000")], b"b" * 200_000))
        fast[1].send(post(f"/body/{stage.tag()}", CHUNKED, b"f4240\r\n", b"b" * 200_000))
        begin(stage, wire, post(f"/body/{tag}", LENGTH, b"x" * 10), tag, buffered=buffered)
        heard = wire.ended()
        for other in fast:
            assert other.ended().startswith(b"HTTP/1.1 408 ")
    return heard


@case()
def silent(stage: Stage, tag: str) -> bytes:
    return silence(stage, tag, buffered=stage.subject.is_wsgi)


@case(Kind.READING)
def silent_read(stage: Stage, tag: str) -> bytes:
    return silence(stage, tag, buffered=False)


@case(Kind.READING)
def silent_begun(stage: Stage, tag: str) -> bytes:
    """The response has begun."""
    with stage.connect(timeout=BODY_SECONDS + SLACK) as wire:
        wire.send(post(f"/later/{tag}", LENGTH, b"x" * 10))
        return wire.ended()


def drip(wire: Wire, piece: bytes, is_over: Callable[[], bool]) -> bytes:
    """Sends it again and again until the server has had enough; what it said."""

    def given_up() -> bool:
        try:
            wire.send(piece)
        except ConnectionError:
            return True
        return is_over()

    until(given_up, "a client that drips is given up", within=2 * BODY_SECONDS + SLACK, every=0.1)
    return wire.ended()


def drip_until_answered(wire: Wire) -> bytes:
    began = time.monotonic()
    heard = drip(wire, b"x", lambda: bool(select.select([wire.sock], [], [], 0)[0]))
    assert time.monotonic() - began >= 0.9 * BODY_SECONDS, "it had its time"
    return heard


@case()
def slow(stage: Stage, tag: str) -> bytes:
    assert RATE > 2 * 10, "ten bytes a second are too slow"
    with stage.connect() as wire:
        wire.send(post(f"/body/{tag}", LENGTH))
        return drip_until_answered(wire)


@case(Kind.READING)
def slow_read(stage: Stage, tag: str) -> bytes:
    return slow(stage, tag)


@case()
def trailers(stage: Stage, tag: str) -> bytes:
    """They are no progress of the body."""
    with stage.connect() as wire:
        wire.send(post(f"/body/{tag}", CHUNKED, b"30d40\r\n", b"b" * 200_000, b"\r\n0\r\nX-Sum: "))
        return drip_until_answered(wire)


@case(Kind.READING)
def trailers_read(stage: Stage, tag: str) -> bytes:
    return trailers(stage, tag)


@case(Kind.READING)
def not_asked_for(stage: Stage, tag: str) -> bytes:
    """The application reads nothing for longer than a body may take; a library that reads ahead has its fill."""
    with stage.gate() as gate, stage.connect() as wire:
        size = MUCH
        wire.send(post(f"/asks-late/{tag}?{gate}", [("Content-Length", str(size + 10))]))
        sending = threading.Thread(target=wire.send, args=(b"x" * size,), daemon=True)
        sending.start()
        stage.told(tag, "in")
        elapse(2 * BODY_SECONDS)
        gate.touch()
        sending.join(20)
        return wire.send(b"0123456789").reply().body


def wrong(stage: Stage, tag: str, *, buffered: bool) -> bytes:
    with stage.connect() as wire:
        begin(stage, wire, post(f"/body/{tag}", CHUNKED, b"3\r\nabc\r\n"), tag, buffered=buffered)
        wire.send(b"zz\r\n")
        return wire.ended()


@case()
def refused(stage: Stage, tag: str) -> bytes:
    return wrong(stage, tag, buffered=stage.subject.is_wsgi)


@case(Kind.READING)
def refused_read(stage: Stage, tag: str) -> bytes:
    return wrong(stage, tag, buffered=False)


@case(Kind.READING)
def refused_begun(stage: Stage, tag: str) -> bytes:
    with stage.connect() as wire:
        wire.send(post(f"/later/{tag}", CHUNKED, b"3\r\nabc\r\n"))
        head = b""
        while b"begun" not in head:
            head += wire.sock.recv(1000)
        wire.send(b"zz\r\n")
        return head + wire.ended()


def cut(stage: Stage, tag: str, *, buffered: bool) -> bytes:
    with stage.connect() as wire:
        begin(stage, wire, post(f"/body/{tag}", LENGTH, b"x" * 10), tag, buffered=buffered)
        wire.finish_sending()
        return wire.ended()


@case()
def truncated(stage: Stage, tag: str) -> bytes:
    return cut(stage, tag, buffered=stage.subject.is_wsgi)


@case(Kind.READING)
def truncated_read(stage: Stage, tag: str) -> bytes:
    return cut(stage, tag, buffered=False)


# Back-pressure.


def give_up(wire: Wire) -> bytes:
    """The client reads nothing."""
    until_stuck(wire)
    until_let_go(wire, 2 * WRITE_SECONDS + SLACK)
    return wire.ended()


def unread(stage: Stage, tag: str, path: str) -> bytes:
    with stage.connect(receive_buffer=4096) as wire:
        wire.send(request("GET", f"/{path}/{tag}"))
        return give_up(wire)


@case()
def unread_stream(stage: Stage, tag: str) -> bytes:
    return unread(stage, tag, "pours")


@case()
def unread_whole(stage: Stage, tag: str) -> bytes:
    return unread(stage, tag, "blob")


@case()
def unread_with_a_body(stage: Stage, tag: str) -> bytes:
    """Pieces of the body come while the client reads nothing: two waits of one request have two deadlines.

    Beside it is a client whose body is complete then.
    """
    with stage.connect(receive_buffer=4096) as wire, stage.connect(receive_buffer=4096) as other:
        wire.send(post(f"/duplex/{tag}", [("Content-Length", str(1 << 20))], b"0" * RATE))
        other.send(post(f"/duplex/{stage.tag()}", [("Content-Length", "10")], b"01234"))
        until_stuck(other)
        other.send(b"56789")
        heard = drip(wire, b"0" * RATE, wire.is_let_go)
        give_up(other)
    return heard


def read_slowly(wire: Wire, end: bytes) -> bytes:
    """A little all the time, for several times as long as a client may do nothing, and then the rest."""
    until_stuck(wire)
    heard = bytearray()
    for _ in range(60):
        heard += wire.sock.recv(1000)
        elapse(2.5 * WRITE_SECONDS / 60)
    wire.sock.settimeout(20)
    while not heard.endswith(end):
        piece = wire.sock.recv(1 << 20)
        assert piece, f"cut off after {len(heard)} bytes"
        heard += piece
    return bytes(heard[:100])


@case()
def slow_reader(stage: Stage, tag: str) -> bytes:
    with stage.connect(receive_buffer=4096) as wire:
        wire.send(request("GET", f"/pours/{tag}"))
        return read_slowly(wire, b"\r\n0\r\n\r\n")


# Clients that leave.


@case()
def half_closed(stage: Stage, tag: str) -> bytes:
    """Together with its request."""
    with stage.connect() as wire:
        wire.send(request("GET", f"/hello/{tag}")).finish_sending()
        return wire.ended()


@case()
def half_closed_later(stage: Stage, tag: str) -> bytes:
    """Some time after its request: nothing tells how long a client waits before it closes its sending side."""
    with stage.gate() as gate, stage.connect() as wire:
        wire.send(request("GET", f"/works/{tag}?{gate}"))
        stage.told(tag, "in")
        elapse(LATER)
        wire.finish_sending()
        elapse(NOTICED)
        gate.touch()
        return wire.ended()


@case(Kind.LATE)
def half_closed_for_good(stage: Stage, tag: str) -> bytes:
    """Where a half-closed client has no grace, and the application goes on for longer than `request_timeout`."""
    with stage.gate() as gate, stage.connect() as wire:
        wire.send(request("GET", f"/works/{tag}?{gate}"))
        stage.told(tag, "in")
        wire.finish_sending()
        return wire.ended()


@case()
def half_closed_begun(stage: Stage, tag: str) -> bytes:
    """In the middle of the response."""
    with stage.gate() as gate, stage.connect() as wire:
        wire.send(request("GET", f"/begins/{tag}?{gate}"))
        stage.told(tag, "in")
        elapse(LATER)
        wire.finish_sending()
        elapse(NOTICED)
        gate.touch()
        return wire.ended()


def leave(wire: Wire, how: str) -> None:
    getattr(wire, how)()


def gone(stage: Stage, tag: str, path: str, how: str) -> bytes:
    with stage.gate() as gate, contextlib.closing(stage.connect()) as wire:
        wire.send(request("GET", f"/{path}/{tag}?{gate}"))
        stage.told(tag, "in")
        leave(wire, how)
        elapse(NOTICED)
    return b""


@case()
def closed(stage: Stage, tag: str) -> bytes:
    return gone(stage, tag, "works", "close")


@case()
def reset(stage: Stage, tag: str) -> bytes:
    return gone(stage, tag, "works", "reset")


@case()
def closed_begun(stage: Stage, tag: str) -> bytes:
    return gone(stage, tag, "begins", "close")


@case()
def reset_begun(stage: Stage, tag: str) -> bytes:
    return gone(stage, tag, "begins", "reset")


@case()
def listens_closed(stage: Stage, tag: str) -> bytes:
    return gone(stage, tag, "listens", "close")


@case()
def listens_reset(stage: Stage, tag: str) -> bytes:
    return gone(stage, tag, "listens", "reset")


# The same for WebSockets.


def open_socket(stage: Stage, path: str, tag: str) -> Wire:
    wire = stage.connect()
    wire.send(handshake(f"/{path}/{tag}"))
    return wire


def socket_hears(stage: Stage, path: str, tag: str) -> bytes:
    with open_socket(stage, path, tag) as wire:
        return wire.ended()


def socket_normal(stage: Stage, tag: str) -> bytes:
    with open_socket(stage, "echo", tag) as wire:
        heard = b""
        wire.send(frame(TEXT, b"hello"))
        while not heard.endswith(b"hello"):
            heard += wire.sock.recv(1000)
        wire.send(frame(CLOSE, b"\x03\xe8"))
        return heard + wire.ended()


def socket_refused(stage: Stage, tag: str) -> bytes:
    with stage.connect() as wire:
        wire.send(handshake(f"/echo/{tag}", [("Sec-WebSocket-Version", "12")]))
        return wire.ended()


def socket_unread(stage: Stage, tag: str) -> bytes:
    with stage.connect(receive_buffer=4096) as wire:
        wire.send(handshake(f"/pours/{tag}"))
        return give_up(wire)


def socket_slow_reader(stage: Stage, tag: str) -> bytes:
    with stage.connect(receive_buffer=4096) as wire:
        wire.send(handshake(f"/pours/{tag}"))
        heard = read_slowly(wire, b"\x88\x02\x03\xe8")
        wire.send(frame(CLOSE, b"\x03\xe8"))
    return heard


def socket_gone(stage: Stage, tag: str, path: str, how: str) -> bytes:
    with stage.gate() as gate, contextlib.closing(stage.connect()) as wire:
        wire.send(handshake(f"/{path}/{tag}?{gate}"))
        stage.told(tag, "in")
        leave(wire, how)
        elapse(NOTICED)
    return b""


SOCKET_CASES: dict[str, Provoke] = {
    "normal": socket_normal,
    "raises": lambda stage, tag: socket_hears(stage, "raises", tag),
    "raises_late": lambda stage, tag: socket_hears(stage, "raises-late", tag),
    "refused_by_hook": lambda stage, tag: socket_hears(stage, "refused-by-hook", tag),
    "refused": socket_refused,
    "late": lambda stage, tag: socket_hears(stage, "works", tag),
    "unread_stream": socket_unread,
    "slow_reader": socket_slow_reader,
    "closed": lambda stage, tag: socket_gone(stage, tag, "works", "close"),
    "reset": lambda stage, tag: socket_gone(stage, tag, "works", "reset"),
    "reset_begun": lambda stage, tag: socket_gone(stage, tag, "echo", "reset"),
    "closed_begun": lambda stage, tag: socket_gone(stage, tag, "echo", "close"),
    "listens_closed": lambda stage, tag: socket_gone(stage, tag, "echo", "close"),
    "listens_reset": lambda stage, tag: socket_gone(stage, tag, "echo", "reset"),
}


class Provoked:
    """The outcomes, by subject and case; all cases of a subject begin when the first of them is asked for.

    Where a request holds the only thread of a server, they come one after another, and begin at once.
    """

    def __init__(self, pool: Pool, wanted: dict[str, list[str]]) -> None:
        """`wanted`: the cases of each subject that rows are about."""
        self._pool, self._wanted = pool, wanted
        self._stages: dict[tuple[str, Kind], Stage] = {}
        self._outcomes: dict[tuple[str, str], Future[Outcome]] = {}
        self._begun: set[str] = set()
        self._settled: set[str] = set()
        self._failed: dict[str, Exception] = {}
        for subject in wanted:
            if SUBJECTS[subject].is_single and SUBJECTS[subject].is_installed:
                self._try(self._begin, subject)  # these take longest

    def stage(self, subject: str, kind: Kind) -> Stage:
        own = SUBJECTS[subject]
        if kind is Kind.READING:
            kind = Kind.OBSERVED if own.is_wsgi else Kind.MAIN
        if (subject, kind) not in self._stages:
            self._stages[subject, kind] = Stage(self._pool, own, kind)
        return self._stages[subject, kind]

    def outcome(self, subject: str, case: str) -> Outcome:
        """What came of the case, when all cases of the subject are over and their lines are in the logs."""
        self.settle(subject)
        return self._outcomes[subject, case].result(0)

    def settle(self, subject: str) -> None:
        """All cases of the subject are over, whatever came of them; a server that is not up to it fails every row."""
        if subject not in self._settled and subject not in self._failed:
            self._try(self._settle, subject)
            self._settled.add(subject)
        if error := self._failed.get(subject):
            raise AssertionError(f"{subject}: {error}") from error

    def _try(self, step: Callable[[str], None], subject: str) -> None:
        """What fails once is not tried again for each row."""
        try:
            step(subject)
        except Exception as error:
            self._failed[subject] = error

    def _settle(self, subject: str) -> None:
        if subject not in self._begun:
            self._begin(subject)
        wait((self._outcomes[subject, case] for case in self._wanted[subject]), timeout=AT_MOST)
        for (own, _), stage in self._stages.items():
            if own == subject:
                stage.settle()

    def _begin(self, subject: str) -> None:
        self._begun.add(subject)
        table = SOCKET_CASES if subject == "asgi-websocket" else CASES
        by_stage: dict[Stage, list[str]] = {}
        for name in self._wanted[subject]:
            by_stage.setdefault(self.stage(subject, KINDS[name]), []).append(name)
        for stage, names in by_stage.items():
            threads = ThreadPoolExecutor(1 if SUBJECTS[subject].is_single else len(names))
            for name in names:
                self._outcomes[subject, name] = threads.submit(_provoke, stage, table[name])
            threads.shutdown(wait=False)


def _provoke(stage: Stage, provoke: Provoke) -> Outcome:
    tag = stage.tag()
    return Outcome(stage, tag, provoke(stage, tag))
