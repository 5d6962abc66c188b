"""Clients that leave before their answer: what runs for them is told, cancelled and cleaned up after."""

from __future__ import annotations

import pytest

from tests.conformance.asgi3.conftest import playing
from tests.conformance.asgi3.play import ANSWER, DISCONNECT, RECEIVE, Stage, body, piece, start
from tests.conftest import Pool
from tests.harness import Wire, until
from tests.harness.wire import request

ENDS = pytest.mark.parametrize("end", ["close", "reset"])


def leave(wire: Wire, end: str) -> None:
    getattr(wire, end)()


@ENDS
def test_an_application_that_waits_for_something_else_is_cancelled(hasty: Stage, end: str) -> None:
    wire = hasty.connect()
    wire.send(hasty.request(RECEIVE, ("say", "waits"), ("endless",)))
    hasty.told(2)
    leave(wire, end)
    assert hasty.told(4)[2:] == ["cancelled", "cleaned up"]


@ENDS
def test_a_response_that_has_begun_is_cancelled_too(hasty: Stage, end: str) -> None:
    wire = hasty.connect()
    wire.send(hasty.request(start(), body(b"one", True), ("endless",)))
    assert wire.sock.recv(1000)
    leave(wire, end)
    assert hasty.told(2) == ["cancelled", "cleaned up"]


def test_one_that_receives_the_disconnect_may_end_as_it_likes(stage: Stage) -> None:
    wire = stage.connect()
    wire.send(stage.request(RECEIVE, RECEIVE, ("say", "cleaned up")))
    stage.told(1)
    wire.close()
    assert stage.told(3)[1:] == [DISCONNECT, "cleaned up"]


def test_one_that_takes_no_notice_of_being_cancelled_goes_on(hasty: Stage) -> None:
    wire = hasty.connect()
    wire.send(hasty.request(("say", "waits"), ("stubborn",), ("attempt", piece(b"never")), ("say", "went on")))
    hasty.told(1)
    wire.close()
    told = hasty.told(4)
    assert (told[1], told[3]) == ("cancelled", "went on")


AGAIN_AND_AGAIN = [step for _ in range(20) for step in (("attempt", piece(b"two", True)), ("sleep", 0.01))]


@ENDS
def test_sending_to_nobody_is_an_oserror(stage: Stage, end: str) -> None:
    """As the specification asks for. A client that may have only stopped sending is sent to until it says more."""
    wire = stage.connect()
    wire.send(stage.request(start(), body(b"one", True), RECEIVE, RECEIVE, *AGAIN_AND_AGAIN))
    assert wire.sock.recv(1000)
    leave(wire, end)
    _, event, *sends = stage.told(22)
    assert event == DISCONNECT
    assert set(sends) <= {None, "OSError"}
    assert sends[3:] == ["OSError"] * 17
    if end == "reset":
        assert sends[0] == "OSError"


def test_even_the_first_message_to_nobody_is_an_oserror(stage: Stage) -> None:
    wire = stage.connect()
    first = ("attempt", {"type": "http.response.start", "status": 200})
    wire.send(stage.request(RECEIVE, RECEIVE, first, *AGAIN_AND_AGAIN))
    stage.told(1)
    wire.reset()
    told = stage.told(23)
    assert (told[1], told[-1]) == (DISCONNECT, "OSError")


def test_without_a_grace_period_too_one_that_receives_is_told_first(hasty: Stage) -> None:
    wire = hasty.connect()
    wire.send(hasty.request(RECEIVE, RECEIVE, ("say", "knows"), ("endless",)))
    hasty.told(1)
    wire.close()
    assert hasty.told(5)[1:] == [DISCONNECT, "knows", "cancelled", "cleaned up"]


def test_who_sends_without_end_hears_that_nobody_reads(stage: Stage) -> None:
    wire = stage.connect()
    wire.send(stage.request(start(), ("pour", 10_000, 65_536), ("say", "never")))
    assert wire.sock.recv(1000)
    wire.reset()
    until(lambda: stage.told() != ["never"] and stage.alive(), "it ends")
    assert stage.told() == []


def test_what_a_client_that_left_has_caused_is_no_error_of_the_application(hasty: Stage) -> None:
    before = len(hasty.server.log.matching("Traceback|Error handling request"))
    for steps in [(start(), ("pour", 10_000, 65_536)), (("say", "waits"), ("endless",)), (RECEIVE, RECEIVE, *ANSWER)]:
        wire = hasty.connect()
        wire.send(hasty.request(*steps))
        wire.sock.settimeout(0.3)
        wire.still_open(0.1)
        wire.reset()
    hasty.told(4)
    assert hasty.alive()
    assert len(hasty.server.log.matching("Traceback|Error handling request")) == before


def test_a_disconnect_after_the_response_cancels_nothing(hasty: Stage) -> None:
    """What runs then is background work: no client waits for it."""
    wire = hasty.connect()
    wire.send(hasty.request(*ANSWER, ("say", "answered"), ("sleep", 0.3), ("say", "worked")))
    assert wire.reply().body == b"done"
    wire.close()
    assert hasty.told(2) == ["answered", "worked"]


def test_a_client_that_only_stops_sending_gets_its_answer_within_the_grace_period(stage: Stage) -> None:
    """It looks like one that has left, until something is sent to it."""
    with stage.connect() as wire:
        wire.send(stage.request(RECEIVE, stage.gate, *ANSWER)).finish_sending()
        stage.told(1)
        stage.go()
        assert wire.reply().body == b"done"


def test_a_request_behind_this_one_is_no_disconnect(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(RECEIVE, ("receive", 0.2), *ANSWER), request("GET", "/pid"))
        assert wire.reply().body == b"done"
        assert wire.reply().status == 200
    assert stage.told()[1] == "nothing"


def test_a_client_that_leaves_behind_its_pipelined_requests(hasty: Stage) -> None:
    wire = hasty.connect()
    wire.send(hasty.request(RECEIVE, ("say", "waits"), ("endless",)), hasty.request(*ANSWER) * 3)
    hasty.told(2)
    wire.close()
    assert hasty.told(4)[2:] == ["cancelled", "cleaned up"]


def test_within_the_grace_period_nothing_is_cancelled(pool: Pool) -> None:
    server = playing(pool, "asyncio", grace=1)
    stage, slow = Stage(server), Stage(server)
    wires = [stage.connect(), slow.connect()]
    wires[0].send(stage.request(("say", "waits"), ("sleep", 0.4), ("say", "has finished")))
    wires[1].send(slow.request(("say", "waits"), ("endless",)))
    stage.told(1)
    slow.told(1)
    for wire in wires:
        wire.close()
    assert stage.told(2) == ["waits", "has finished"]
    assert slow.told(3) == ["waits", "cancelled", "cleaned up"]


def test_those_who_left_leave_nothing_behind(pool: Pool) -> None:
    """No task of theirs is left, whatever they waited for."""
    server = playing(pool, "asyncio", grace=0)
    stage = Stage(server)
    before = int(server.get("/tasks").body)
    wires = [stage.connect() for _ in range(60)]
    for number, wire in enumerate(wires):
        steps = [(("endless",),), (RECEIVE, RECEIVE), (start(), ("pour", 10_000, 65_536))][number % 3]
        wire.send(stage.request(*steps))
    until(lambda: int(server.get("/tasks").body) >= before + 60, "they run")
    for number, wire in enumerate(wires):
        leave(wire, ["close", "reset"][number % 2])
    until(lambda: int(server.get("/tasks").body) <= before, "their tasks have ended")
