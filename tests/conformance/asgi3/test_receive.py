"""What `receive` gives: `http.request` until the body has ended, `http.disconnect` when the client has left."""

from __future__ import annotations

import fcntl
import hashlib
import socket
import sys
import termios
from contextlib import suppress

import pytest

from tests.conformance.asgi3.play import ANSWER, DISCONNECT, RECEIVE, REQUEST, Stage, body, start
from tests.harness import proc, until
from tests.harness.front_end_client import FrontEndClient
from tests.harness.http2_client import Http2Client, has_no_such
from tests.harness.wire import chunked

ALL = ("body",)
CHUNKED = ("Transfer-Encoding", "chunked")
MEGABYTE = 1 << 20


def test_without_a_body_there_is_one_empty_message(stage: Stage, version: str) -> None:
    assert stage.play(RECEIVE, *ANSWER, version=version).body == b"done"
    assert stage.told(1) == [REQUEST]


@pytest.mark.parametrize("fields", [[("Content-Length", "0")], [CHUNKED]], ids=["length", "chunked"])
def test_an_empty_body_is_one_empty_message(stage: Stage, fields: list[tuple[str, str]]) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(("body",), *ANSWER, method="POST", fields=fields), b"0\r\n\r\n" * (fields == [CHUNKED]))
        assert wire.reply().body == b"done"
    (got,) = stage.told(1)
    assert (got["length"], got["types"], got["last"]) == (0, ["bytes"], "http.request")


@pytest.mark.parametrize("size", [1, 1000, 65_536, 300_001, 5_000_000])
@pytest.mark.parametrize("framing", ["length10", "length", "chunked"])
def test_every_byte_of_a_body_arrives(stage: Stage, size: int, framing: str) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    with stage.connect() as wire:
        if framing == "chunked":
            wire.send(stage.request(ALL, *ANSWER, method="POST", fields=[CHUNKED]))
            wire.send(chunked(data[at : at + 70_000] for at in range(0, size, 70_000)))
        else:
            wire.send(
                stage.request(ALL, *ANSWER, method="POST", body=data, version="1.0" if "10" in framing else "1.1")
            )
        assert wire.reply().body == b"done"
    assert stage.told(1) == [
        {
            "length": size,
            "sha256": hashlib.sha256(data).hexdigest(),
            "types": ["bytes"],
            "last": "http.request",
        }
    ]


def test_a_small_body_is_one_message(stage: Stage) -> None:
    stage.play(RECEIVE, *ANSWER, method="POST", body=b"abc")
    assert stage.told(1) == [{"type": "http.request", "body": b"abc", "more_body": False}]


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_body_streams(stage: Stage, framing: str) -> None:
    """The application is called when the head is there, and sees each piece as it comes."""
    field = CHUNKED if framing == "chunked" else ("Content-Length", "9")
    pieces = [b"one", b"two", b"end"]
    with stage.connect() as wire:
        wire.send(stage.request(("say", "called"), RECEIVE, RECEIVE, ALL, *ANSWER, method="POST", fields=[field]))
        assert stage.told(1) == ["called"]
        for count, data in enumerate(pieces[:2], 2):
            wire.send(b"3\r\n%b\r\n" % data if framing == "chunked" else data)
            assert stage.told(count)[-1] == {"type": "http.request", "body": data, "more_body": True}
        wire.send(b"3\r\nend\r\n0\r\n\r\n" if framing == "chunked" else b"end")
        assert wire.reply().body == b"done"
    assert stage.told(4)[-1]["length"] == 3


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_what_has_come_is_one_message(stage: Stage, framing: str) -> None:
    """Over the borders of writes and chunks, and with what came together with the head."""
    field = CHUNKED if framing == "chunked" else ("Content-Length", "48000")
    pieces = [bytes([letter]) * 12_000 for letter in b"abcd"]
    framed = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces] if framing == "chunked" else pieces
    framed[-1] += b"0\r\n\r\n" * (framing == "chunked")
    with stage.connect() as wire:
        steps = (("say", "called"), stage.gate, RECEIVE, *ANSWER)
        wire.send(stage.request(*steps, method="POST", fields=[field]), framed[0])
        assert stage.told(1) == ["called"]
        for piece in framed[1:]:
            wire.send(piece)
        if wire.sock.family != socket.AF_UNIX:
            until(lambda: unacknowledged(wire.sock) == 0, "it has come")
        stage.go()
        assert wire.reply().body == b"done"
    assert stage.told(2)[1] == {"type": "http.request", "body": b"".join(pieces), "more_body": False}


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_message_is_at_most_256_kib(stage: Stage, framing: str) -> None:
    data = b"x" * 3_000_000
    with stage.connect() as wire:
        field = CHUNKED if framing == "chunked" else ("Content-Length", str(len(data)))
        wire.send(stage.request(("sizes",), *ANSWER, method="POST", fields=[field]))
        wire.send(chunked([data]) if framing == "chunked" else data)
        assert wire.reply().body == b"done"
    (sizes,) = stage.told(1)
    assert sum(sizes) == len(data)
    assert max(sizes) <= 256 * 1024


def unacknowledged(sock: socket.socket) -> int:
    """Bytes sent that the other side's kernel has not acknowledged (tcp(7), SIOCOUTQ)."""
    return int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def test_after_the_body_nothing_comes_as_long_as_the_client_stays(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(RECEIVE, ("receive", 0.2), RECEIVE, method="POST", body=b"abc"))
        assert stage.told(2) == [{"type": "http.request", "body": b"abc", "more_body": False}, "nothing"]
    assert stage.told(3)[-1] == DISCONNECT


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_client_that_leaves_is_a_disconnect_and_stays_one(stage: Stage, end: str) -> None:
    wire = stage.connect()
    wire.send(stage.request(RECEIVE, ("say", "waits"), RECEIVE, RECEIVE, RECEIVE))
    stage.told(2)
    getattr(wire, end)()
    assert stage.told(5)[2:] == [DISCONNECT] * 3


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_body_that_breaks_off_ends_in_a_disconnect(stage: Stage, framing: str, end: str) -> None:
    field = CHUNKED if framing == "chunked" else ("Content-Length", "9")
    wire = stage.connect()
    wire.send(stage.request(RECEIVE, ALL, RECEIVE, method="POST", fields=[field]))
    wire.send(b"3\r\none\r\n" if framing == "chunked" else b"one")
    assert stage.told(1) == [{"type": "http.request", "body": b"one", "more_body": True}]
    getattr(wire, end)()
    _, rest, last = stage.told(3)
    assert (rest["length"], rest["last"]) == (0, "http.disconnect")
    assert last == DISCONNECT


def test_a_body_that_turns_out_to_be_malformed_ends_in_a_disconnect(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(RECEIVE, ALL, method="POST", fields=[CHUNKED]), b"3\r\none\r\n")
        stage.told(1)
        wire.send(b"zz\r\n")
        reply = wire.reply()
        assert (reply.status, reply.closes) == (400, True)
        wire.closed()
    assert stage.told(2)[1]["last"] == "http.disconnect"


def test_after_the_response_there_is_a_disconnect_although_the_client_stays(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(RECEIVE, *ANSWER, RECEIVE, RECEIVE))
        assert wire.reply().body == b"done"
        assert stage.told(3)[1:] == [DISCONNECT] * 2
        wire.send(stage.request(*ANSWER))
        assert wire.reply().body == b"done"


def test_a_receive_that_waits_is_told_of_the_end_of_the_response(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(RECEIVE, ("beside", [RECEIVE]), ("sleep", 0.05), *ANSWER, ("join",)))
        assert wire.reply().body == b"done"
        assert stage.told(2)[1:] == [DISCONNECT]


def test_a_receive_that_is_cancelled_loses_nothing(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(("receive", 0.05), RECEIVE, *ANSWER, method="POST", fields=[("Content-Length", "3")]))
        assert stage.told(1) == ["nothing"]
        wire.send(b"abc")
        assert wire.reply().body == b"done"
    assert stage.told(2)[1] == {"type": "http.request", "body": b"abc", "more_body": False}


def test_several_tasks_may_wait_for_the_end(stage: Stage) -> None:
    wire = stage.connect()
    wire.send(stage.request(RECEIVE, ("beside", [RECEIVE]), ("beside", [RECEIVE]), ("say", "waits"), ("join",)))
    stage.told(2)
    wire.close()
    assert stage.told(4)[2:] == [DISCONNECT] * 2


def test_a_body_that_is_not_received_is_not_the_next_request(stage: Stage) -> None:
    smuggled = b"GET /go?gate=smuggled HTTP/1.1\r\nHost: t\r\n\r\n" * 500
    with stage.connect() as wire:
        wire.send(stage.request(*ANSWER, method="POST", body=smuggled))
        reply = wire.reply()
        assert reply.body == b"done"
        if not reply.closes:
            wire.send(stage.request(start(200, (b"x-second", b"yes")), body()))
            assert wire.reply().get("x-second") == "yes"
        else:
            assert wire.ended() == b""


def test_an_application_that_does_not_receive_holds_the_client_back(stage: Stage) -> None:
    """Neither is the body gathered in memory, nor is anything of it lost."""
    size = 48 * MEGABYTE
    (worker,) = stage.server.worker_pids()
    stage.alive()
    before = proc.private_bytes(worker)
    data = b"u" * MEGABYTE
    with stage.connect(timeout=0.5) as wire:
        if isinstance(wire, Http2Client | FrontEndClient):
            has_no_such()  # its own bytes are sent; the windows are asked for in tests/integration/test_http2.py
        wire.send(
            stage.request(
                ("say", "called"), stage.gate, ALL, *ANSWER, method="POST", fields=[("Content-Length", str(size))]
            )
        )
        stage.told(1)
        sent = 0
        with suppress(TimeoutError):
            while sent < size:
                sent += wire.sock.send(data[: size - sent])
        assert sent < size
        assert proc.private_bytes(worker) - before < 8 * MEGABYTE
        assert stage.alive(), "no other request is held back"
        stage.go()
        wire.sock.settimeout(20)
        while sent < size:
            sent += wire.sock.send(data[: size - sent])
        assert wire.reply().body == b"done"
    assert stage.told(2)[1]["length"] == size


# 100 Continue.

EXPECT = [("Expect", "100-continue"), ("Content-Length", "3")]


def test_continue_comes_before_the_body(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(RECEIVE, *ANSWER, method="POST", fields=EXPECT))
        assert (interim := wire.interim()).status == 100
        assert interim.fields == []
        wire.send(b"abc")
        assert wire.reply().body == b"done"
    assert stage.told(1)[0]["body"] == b"abc"


def test_who_answers_without_the_body_need_not_ask_for_it(stage: Stage) -> None:
    """RFC 9110 section 10.1.1: a final status instead of 100 tells the client not to send."""
    with stage.connect() as wire:
        wire.send(stage.request(start(413), body(), method="POST", fields=EXPECT))
        reply = wire.reply()
        assert (reply.status, reply.interims) == (413, [])


def test_an_impatient_client_may_send_the_body_at_once(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(RECEIVE, *ANSWER, method="POST", fields=EXPECT), b"abc")
        reply = wire.reply()
    assert reply.body == b"done"
    assert [interim.status for interim in reply.interims] in ([], [100])
