"""One task and one context for each request; work after the response; requests side by side and one behind another."""

from __future__ import annotations

import time

from tests.conformance.asgi3.play import ANSWER, Stage, body, start
from tests.harness import until
from tests.harness.http2_client import Http2Client, has_no_such
from tests.harness.wire import request


def test_each_request_has_a_task_of_its_own(stage: Stage) -> None:
    with stage.connect() as wire:
        for _ in range(3):
            wire.send(stage.request(("task",), *ANSWER))
            assert wire.reply().body == b"done"
    assert stage.told(3) == [True] * 3


def test_receive_and_send_are_taken_for_coroutine_functions(stage: Stage) -> None:
    """asgiref warns of others; Channels' synchronous consumers give it `send`."""
    stage.play(("inspect",), *ANSWER)
    assert stage.told(2) == [(True, []), (True, ["event"])]


def test_each_request_has_a_context_of_its_own(stage: Stage) -> None:
    with stage.connect() as wire:
        for number in range(3):
            wire.send(stage.request(("context", f"n{number}"), ("context",), *ANSWER))
            assert wire.reply().body == b"done"
    assert stage.told(6) == ["unset", "n0", "unset", "n1", "unset", "n2"]


def test_a_context_is_kept_where_the_request_waits(stage: Stage) -> None:
    wires = [stage.connect() for _ in range(10)]
    for number, wire in enumerate(wires):
        steps = [("context", f"n{number}"), stage.gate, ("context",), start(), body(b"n%d" % number)]
        wire.send(stage.request(*steps, tag=f"{stage.tag}{number}"))
    until(lambda: all(stage.told(tag=f"{stage.tag}{number}") for number in range(10)), "all wait")
    stage.go()
    for number, wire in enumerate(wires):
        with wire:
            assert wire.reply().body == b"n%d" % number
        assert stage.told(2, tag=f"{stage.tag}{number}") == ["unset", f"n{number}"]


def test_work_after_the_response_holds_nobody_back(stage: Stage) -> None:
    """Neither the response itself nor the next one on the same connection."""
    with stage.connect() as wire:
        for number in range(5):
            wire.send(stage.request(*ANSWER, stage.gate, ("say", f"worked {number}")))
            assert wire.reply().body == b"done"
        assert stage.told() == []
        stage.go()
    assert sorted(stage.told(5)) == [f"worked {number}" for number in range(5)]


def test_work_after_a_response_that_closes(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(*ANSWER, stage.gate, ("say", "worked"), fields=[("Connection", "close")]))
        assert wire.reply().body == b"done"
        wire.closed()
    stage.go()
    assert stage.told(1) == ["worked"]


def test_pipelined_requests_are_answered_in_order(stage: Stage) -> None:
    with stage.connect() as wire:
        if isinstance(wire, Http2Client):
            has_no_such()  # streams run side by side
        first = stage.request(("say", "first"), stage.gate, ("say", "answers"), start(), body(b"first"))
        wire.send(first, *(stage.request(("say", f"n{nr}"), start(), body(b"n%d" % nr)) for nr in range(10)))
        assert stage.told(1) == ["first"], "the others wait until it has been answered"
        stage.go()
        assert wire.reply().body == b"first"
        for number in range(10):
            assert wire.reply().body == b"n%d" % number
    assert stage.told(12) == ["first", "answers", *(f"n{number}" for number in range(10))]


def test_a_request_behind_one_with_a_body_that_nobody_received(stage: Stage) -> None:
    """It is answered, or the connection is announced to close: a good request is never called a bad one."""
    with stage.connect() as wire:
        wire.send(stage.request(*ANSWER, method="POST", body=b"b" * 100_000), request("GET", "/pid"))
        reply = wire.reply()
        assert reply.body == b"done"
        if reply.closes:
            assert wire.ended() == b""
        else:
            assert wire.reply().body.isdigit()


def test_five_hundred_that_sleep_sleep_side_by_side(stage: Stage) -> None:
    wires = [stage.connect() for _ in range(500)]
    began = time.monotonic()
    for wire in wires:
        wire.send(stage.request(("sleep", 0.5), *ANSWER))
    for wire in wires:
        with wire:
            assert wire.reply().body == b"done"
    assert time.monotonic() - began < 500 * 0.5 / 10
