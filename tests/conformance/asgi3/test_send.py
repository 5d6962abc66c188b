"""What `send` makes of messages: the response on the wire, and exceptions for what is no message."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.asgi3.play import ANSWER, TEXT, Message, Stage, Step, body, head, length, piece, start
from tests.harness import with_each
from tests.harness.front_end_client import FrontEndClient
from tests.harness.http2_client import Http2Client
from tests.harness.wire import Reply, Short

DONE = piece(b"done")


def test_a_response_in_one_piece(stage: Stage, version: str) -> None:
    reply = stage.play(start(200, (b"x-one", b"1")), body(b"done"), version=version)
    assert (reply.status, reply.reason, reply.body) == (200, "OK", b"done")
    assert reply.get("x-one") == "1"
    assert reply.framing in (("close", "length") if version == "1.0" else ("chunked", "length"))


def test_a_response_in_pieces(stage: Stage, version: str) -> None:
    reply = stage.play(
        start(), body(b"one", True), body(b"", True), body(b"two", True), body(b"three"), version=version
    )
    assert reply.body == b"onetwothree"
    assert reply.framing == ("close" if version == "1.0" else "chunked")


@with_each("end", [body(), body(b"", False), ("send", {"type": "http.response.body"})])
def test_how_a_response_may_end(stage: Stage, end: Step) -> None:
    assert stage.play(start(), body(b"one", True), end).body == b"one"


def test_an_empty_response(stage: Stage, version: str) -> None:
    assert stage.play(start(), body(), version=version).body == b""
    assert stage.play(start(200, length(0)), body(), version=version).body == b""


@with_each("size", [1, 65_536, 1_000_001, 10_000_000])
def test_every_byte_is_sent(stage: Stage, version: str, size: int) -> None:
    count = max(1, size // 50_000)
    steps = [start(), ("pour", count, size // count), body(b"end")]
    reply = stage.play(*steps, version=version)
    assert len(reply.body) == count * (size // count) + 3
    assert reply.body.strip(b"p") == b"end"


def test_a_large_body_in_one_message(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(("echo_whole",), method="POST", body=b"x" * 4_000_000))
        assert wire.reply().body == b"x" * 4_000_000


def test_fields_keep_their_order_and_may_repeat(stage: Stage) -> None:
    fields = [(b"x-b", b"1"), (b"set-cookie", b"a=1"), (b"x-a", b"2"), (b"set-cookie", b"b=2"), (b"x-b", b"t\xe9st")]
    reply = stage.play(start(200, *fields), body(b"done"))
    own = [(name.lower(), value) for name, value in reply.fields if name.lower().startswith(("x-", "set-"))]
    assert own == [(name.decode(), value.decode("latin-1")) for name, value in fields]


@with_each(
    "fields", [[[b"x-a", b"1"], [b"x-b", b"2"]], ((b"x-a", b"1"), (b"x-b", b"2")), [(b"x-a", b"1"), [b"x-b", b"2"]]]
)
def test_fields_are_any_iterable_of_pairs(stage: Stage, fields: Any) -> None:
    start = ("send", {"type": "http.response.start", "status": 200, "headers": fields})
    reply = stage.play(start, body(b"done"))
    assert (reply.get("x-a"), reply.get("x-b"), reply.body) == ("1", "2", b"done")
    assert stage.play(("send_made", head(200, (b"x-a", b"1")), "iterator"), body(b"done")).get("x-a") == "1"


def test_without_fields(stage: Stage) -> None:
    reply = stage.play(("send", {"type": "http.response.start", "status": 200}), body(b"done"))
    assert (reply.status, reply.body, reply.get("content-type")) == (200, b"done", None)


@with_each("kind", ["bytearray", "memoryview", "subclass"])
def test_bodies_of_bytes_in_other_objects(stage: Stage, kind: str) -> None:
    """Starlette's StreamingResponse hands memoryviews on."""
    assert stage.play(start(), ("send_made", piece(b"one", True), kind), body(b"two")).body == b"onetwo"


@with_each("status", [200, 201, 299, 302, 404, 418, 500, 599])
def test_response_statuses(stage: Stage, status: int) -> None:
    reply = stage.play(start(status), body(b"done"))
    assert (reply.status, reply.body) == (status, b"done")


def test_a_length_is_kept(stage: Stage, version: str) -> None:
    reply = stage.play(start(200, length(6)), body(b"one", True), body(b"two"), version=version)
    assert (reply.framing, reply.body) == ("length", b"onetwo")


@with_each("value", [b"chunked", b"gzip, chunked", b"identity"])
def test_the_framing_is_the_servers_affair(stage: Stage, value: bytes) -> None:
    """ "You may send a Transfer-Encoding header in this message, but the server must ignore it." """
    codings = [] if stage.server.wire_type in (Http2Client, FrontEndClient) else ["chunked"]
    reply = stage.play(start(200, (b"transfer-encoding", value)), body(b"one", True), body(b"two"))
    assert (reply.body, reply.all("transfer-encoding")) == (b"onetwo", codings)
    reply = stage.play(start(200, (b"transfer-encoding", value), length(4)), body(b"done"))
    assert (reply.body, reply.all("transfer-encoding")) == (b"done", [])


def test_date_and_server_are_sent_once(stage: Stage) -> None:
    reply = stage.play(*ANSWER)
    assert len(reply.all("date")) == 1
    reply = stage.play(start(200, (b"date", b"Thu, 01 Jan 1970 00:00:00 GMT"), (b"server", b"mine")), body())
    assert reply.all("date") == ["Thu, 01 Jan 1970 00:00:00 GMT"]
    assert reply.all("server") == ["mine"]


def test_close_is_obeyed(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(start(200, length(4), (b"connection", b"close")), body(b"done")))
        assert wire.reply().closes
        wire.closed()


# Responses without a body.


def test_response_to_head(stage: Stage, version: str) -> None:
    reply = stage.play(*ANSWER, method="HEAD", version=version)
    assert (reply.status, reply.get("content-length"), reply.body) == (200, "4", b"")
    reply = stage.play(start(), body(b"one", True), body(b"two"), method="HEAD", version=version)
    assert (reply.status, reply.body) == (200, b"")


@with_each("status", [204, 304])
@with_each("data", [b"", b"not to be sent"])
def test_statuses_that_have_no_body(stage: Stage, version: str, status: int, data: bytes) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(start(status), body(data, True), body(), version=version))
        reply = wire.reply()
        assert (reply.status, reply.body, reply.framing) == (status, b"", "none")
        assert reply.get("transfer-encoding") is None
        if reply.closes:
            wire.closed()
        else:
            wire.send(stage.request(*ANSWER))
            assert wire.reply().body == b"done"


def test_the_length_of_what_is_not_modified(stage: Stage) -> None:
    reply = stage.play(start(304, length(1000)), body())
    assert (reply.status, reply.body) == (304, b"")


# Bodies that are not as long as they were said to be.


@with_each("steps", [(body(b"longer than said"),), (body(b"longer ", True), body(b"than said"))])
def test_a_body_longer_than_its_length_is_cut_and_harms_nobody(stage: Stage, steps: tuple[Step, ...]) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(start(200, length(8)), *steps), stage.request(*ANSWER))
        try:
            assert wire.reply().body == b"longer t"
        except Short:
            pass  # as good: the client knows that something is wrong
        else:
            rest = wire.ended() if not wire.still_open() else wire.reply().body
            assert rest in (b"", b"done")
    assert stage.alive()


def test_a_body_shorter_than_its_length_does_not_look_complete(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(start(200, length(8)), body(b"short")))
        with pytest.raises(Short):
            wire.reply()
    assert stage.alive()


# What is no message.

BAD: dict[str, Any] = {
    "no_dict": "http.response.start",
    "none": None,
    "no_type": {"status": 200, "headers": []},
    "type_none": {"type": None},
    "type_unknown": {"type": "http.response.begin", "status": 200},
    "type_of_another_protocol": {"type": "websocket.accept"},
    "type_of_a_receive_event": {"type": "http.request", "body": b""},
    "body_first": piece(b"done"),
    "status_missing": {"type": "http.response.start", "headers": []},
    "status_str": head("200"),  # type: ignore[arg-type]
    "status_none": head(None),  # type: ignore[arg-type]
    "status_bytes": head(b"200"),  # type: ignore[arg-type]
    "status_small": head(99),
    "status_large": head(1000),
    "status_huge": head(1 << 40),
    "status_negative": head(-200),
    "status_interim": head(103),
    "status_switching": head(101),
    "fields_none": {"type": "http.response.start", "status": 200, "headers": None},
    "fields_int": {"type": "http.response.start", "status": 200, "headers": 5},
    "fields_triples": {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b", b"c")]},
    "name_str": head(200, ("x-a", b"yes")),  # type: ignore[arg-type]
    "name_none": head(200, (None, b"yes")),  # type: ignore[arg-type]
    "name_empty": head(200, (b"", b"yes")),
    "name_space": head(200, (b"x a", b"yes")),
    "name_colon": head(200, (b"x-a:", b"yes")),
    "name_crlf": head(200, (b"x-a\r\nx-injected", b"yes")),
    "value_str": head(200, (b"x-a", "yes")),  # type: ignore[arg-type]
    "value_int": head(200, (b"x-a", 1)),  # type: ignore[arg-type]
    "value_none": head(200, (b"x-a", None)),  # type: ignore[arg-type]
    "value_crlf": head(200, (b"x-a", b"a\r\nx-injected: yes")),
    "value_lf": head(200, (b"x-a", b"a\nx-injected: yes")),
    "value_cr": head(200, (b"x-a", b"a\rx-injected: yes")),
    "value_nul": head(200, (b"x-a", b"a\0b")),
    "length_words": head(200, (b"content-length", b"four")),
    "length_negative": head(200, (b"content-length", b"-4")),
    "length_twice": head(200, (b"content-length", b"4"), (b"content-length", b"5")),
}
BAD_BODIES: dict[str, Any] = {
    "str": {"type": "http.response.body", "body": "text"},
    "int": {"type": "http.response.body", "body": 5},
    "none": {"type": "http.response.body", "body": None},
    "list": {"type": "http.response.body", "body": [b"x"]},
    "start_again": head(),
    "type_unknown": {"type": "http.response.end"},
}


@with_each("bad", BAD)
def test_what_is_no_beginning_of_a_response_is_refused_and_may_be_mended(stage: Stage, bad: Any) -> None:
    stage = stage.another()
    reply = stage.play(("attempt", bad), *ANSWER)
    (outcome,) = stage.told(1)
    assert outcome not in (None, "OSError"), reply.text
    assert (reply.status, reply.body) == (200, b"done")
    assert reply.get("x-injected") is None
    assert reply.all("content-type") == ["text/plain"], "nothing is left of the first attempt"


@with_each("bad", BAD)
def test_what_is_no_beginning_of_a_response_is_the_applications_error(stage: Stage, bad: Any) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(("send", bad), body(b"done")))
        reply = wire.reply()
    assert (reply.status, reply.get("x-injected")) == (500, None)
    assert stage.alive()


@pytest.mark.parametrize("status", [99, 101, 1000, 65_736, 1 << 80, -200])
def test_a_status_out_of_range_is_said_to_be_so(stage: Stage, status: int) -> None:
    stage.play(("protest", head(status)), *ANSWER)
    expected = f"the status is out of range: it must be from 200 to 999, not {status}"
    assert stage.told(1) == [("ValueError", expected)]


@with_each("bad", BAD_BODIES)
def test_what_is_no_piece_of_a_body_is_refused(stage: Stage, bad: Any) -> None:
    stage = stage.another()
    assert stage.play(start(), ("attempt", bad), body(b"done")).body == b"done"
    (outcome,) = stage.told(1)
    assert outcome not in (None, "OSError")


@with_each("bad", BAD_BODIES)
def test_what_is_no_next_piece_of_a_body_is_refused(stage: Stage, bad: Any) -> None:
    stage = stage.another()
    reply = stage.play(start(), body(b"one ", True), ("attempt", bad), body(b"done"))
    assert reply.body == b"one done"
    (outcome,) = stage.told(1)
    assert outcome not in (None, "OSError")


def test_keys_that_nobody_knows_do_no_harm(stage: Stage) -> None:
    message: Message = {"type": "http.response.start", "status": 200, "headers": [TEXT], "own": {"key": 1}}
    assert stage.play(("send", message), ("send", {**DONE, "own": 2})).body == b"done"


@with_each("late", [piece(b"late"), piece(b"late", True), piece()])
def test_what_comes_after_the_response_is_ignored(stage: Stage, late: Message) -> None:
    """ "Any further messages on the channel will be ignored": nothing of it may be seen on the wire."""
    stage = stage.another()
    with stage.connect() as wire:
        for _ in range(2):
            wire.send(stage.request(*ANSWER, ("attempt", late)))
            assert wire.reply().body == b"done"
    assert stage.told(2) == [None] * 2


def test_several_tasks_may_send(stage: Stage) -> None:
    pieces = [
        ("beside", [body(b"%d " % number, True), ("sleep", 0.01), body(b"%d " % number, True)]) for number in range(8)
    ]
    reply = stage.play(start(), *pieces, ("join",), body(b"8"))
    assert sorted(reply.body.split()) == sorted([b"%d" % number for number in range(8)] * 2 + [b"8"])


def test_interim_responses_are_not_the_applications_fields(stage: Stage) -> None:
    reply: Reply = stage.play(*ANSWER)
    assert reply.interims == []
