"""Clients that leave before their answer: what runs for them is told, cancelled and cleaned up after."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.asgi3.conftest import playing
from tests.conformance.asgi3.play import ANSWER, DISCONNECT, RECEIVE, Stage, body, head, piece, start
from tests.conftest import Pool
from tests.harness import Server, Wire, until
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
    wire.send(hasty.request(start(), body(b"one", True), ("say", "waits"), ("endless",)))
    wire.wait_begun()
    hasty.told(1)  # `send` may give way to others, and a task that is cancelled there says nothing
    leave(wire, end)
    assert hasty.told(3)[1:] == ["cancelled", "cleaned up"]


def test_one_that_receives_the_disconnect_may_end_as_it_likes(stage: Stage) -> None:
    wire = stage.connect()
    wire.send(stage.request(RECEIVE, RECEIVE, ("say", "cleaned up")))
    stage.told(1)
    wire.close()
    assert stage.told(3)[1:] == [DISCONNECT, "cleaned up"]


@ENDS
@pytest.mark.parametrize("length", [3, 10], ids=["whole", "part"])
def test_what_came_of_a_request_is_received_before_the_departure(stage: Stage, end: str, length: int) -> None:
    """Also by an application that receives only afterwards: frameworks take the first event for the request."""
    wire = stage.connect()
    asked = stage.request(("say", "waits"), stage.gate, RECEIVE, RECEIVE, method="POST", body=b"pay")
    wire.send(asked.replace(b"Content-Length: 3", b"Content-Length: %d" % length))
    stage.told(1)
    leave(wire, end)
    assert stage.alive()  # what came before this request was seen before its answer
    stage.go()
    assert stage.told(3)[1:] == [{"type": "http.request", "body": b"pay", "more_body": length > 3}, DISCONNECT]


def test_one_that_takes_no_notice_of_being_cancelled_goes_on(hasty: Stage) -> None:
    wire = hasty.connect()
    wire.send(hasty.request(("say", "waits"), ("stubborn",), ("attempt", piece(b"never")), ("say", "went on")))
    hasty.told(1)
    wire.close()
    told = hasty.told(4)
    assert (told[1], told[3]) == ("cancelled", "went on")


AGAIN_AND_AGAIN = [step for _ in range(20) for step in (("attempt", piece(b"two", True)), ("sleep", 0.01))]


@ENDS
def test_sending_to_a_client_that_left_does_nothing(stage: Stage, end: str) -> None:
    """Until 2.4 of the specification, which is what is announced: frameworks do not expect an OSError."""
    wire = stage.connect()
    wire.send(stage.request(start(), body(b"one", True), RECEIVE, RECEIVE, *AGAIN_AND_AGAIN))
    wire.wait_begun()
    leave(wire, end)
    _, event, *sends = stage.told(22)
    assert event == DISCONNECT
    assert sends == [None] * 20


@ENDS
def test_what_is_sent_to_a_client_that_left_is_not_looked_at(stage: Stage, end: str) -> None:
    """As in the endpoints of MCP, where a second response begins after a stream whose client has left."""
    wire = stage.connect()
    wrong = ["http.response.trailers", "http.response.start", "http.response.early_hint", "http.response.pathsend"]
    events = [{"type": kind, "status": "none", "headers": 5, "path": 5} for kind in wrong]
    steps = [("attempt", event) for event in (*events, piece(b"", False), head(), piece(b""))]
    wire.send(stage.request(start(), body(b"one", True), RECEIVE, RECEIVE, ("wait", stage.tag), *steps))
    wire.wait_begun()
    leave(wire, end)
    stage.told(2)
    stage.go()
    assert stage.told(9)[2:] == [None] * 7
    assert not [line for line in stage.server.log.lines if "Unexpected ASGI message" in line]


def test_a_response_to_a_client_that_left_holds_no_connection(stage: Stage) -> None:
    """A response that is complete is over, whether or not a client was there."""
    wire = stage.connect()
    wire.send(stage.request(("say", "begun"), stage.gate, *ANSWER, RECEIVE, ("sleep", 0.1), ("say", "worked")))
    stage.told(1)
    wire.reset()
    stage.go()
    assert stage.told(3)[2] == "worked"


def test_without_a_grace_period_too_one_that_receives_is_told_first(hasty: Stage) -> None:
    wire = hasty.connect()
    wire.send(hasty.request(RECEIVE, RECEIVE, ("say", "knows"), ("endless",)))
    hasty.told(1)
    wire.close()
    assert hasty.told(5)[1:] == [DISCONNECT, "knows", "cancelled", "cleaned up"]


def test_who_sends_without_end_lets_others_have_their_turn_and_is_cancelled(server: Server) -> None:
    stage = Stage(server)
    wire = stage.connect()
    wire.send(stage.request(start(), body(b"one", True), ("pour_forever",)))
    wire.wait_begun()
    wire.reset()
    until(lambda: stage.alive() and stage.told() == ["CancelledError"], "it ends")


def test_who_sends_without_end_after_the_response_lets_others_have_their_turn(server: Server) -> None:
    stage = Stage(server)
    stage.play(*ANSWER, ("say", "answered"), ("pour", 50_000, 1), ("say", "poured"))
    stage.told(1)
    for _ in range(5):
        assert stage.alive()
    assert stage.told(2) == ["answered", "poured"]


@pytest.mark.parametrize("steps", [(), (start(),), ANSWER], ids=["awaited", "started", "answered"])
def test_who_receives_again_and_again_lets_others_have_their_turn(server: Server, steps: tuple[Any, ...]) -> None:
    """The first disconnect comes at once, and each later one after the loop's other callbacks."""
    stage = Stage(server)
    wire = stage.connect()
    most = 50_000 if steps == ANSWER else 1 << 40  # the others are cancelled
    wire.send(stage.request(*steps, RECEIVE, ("say", "loops"), ("receive_forever", most)))
    stage.told(2)
    wire.close()
    for _ in range(5):
        assert stage.alive()
    if steps != ANSWER:
        until(lambda: stage.told()[2:] == ["CancelledError"], "when the grace is over it is cancelled")


def test_a_handler_whose_client_has_left_runs_to_its_end(server: Server) -> None:
    """Of those without a response only one that asks again after it was told is cancelled; by default, that is."""
    unaware, told, working, streaming = stages = [Stage(server) for _ in range(4)]
    wires = [stage.connect() for stage in stages]
    wires[0].send(unaware.request(("say", "pays"), unaware.gate, ("say", "has paid"), *ANSWER, ("say", "after")))
    wires[1].send(told.request(RECEIVE, ("say", "pays"), RECEIVE, told.gate, ("say", "has paid")))
    wires[2].send(working.request(start(), body(b"one", True), RECEIVE, RECEIVE, working.gate, ("say", "background")))
    wires[3].send(streaming.request(start(), body(b"one", True), ("endless",)))
    unaware.told(1)
    told.told(2)
    working.told(1)
    for wire in wires[2:]:
        wire.wait_begun()
    for wire in wires:
        wire.reset()
    assert streaming.told(2) == ["cancelled", "cleaned up"], "a stream that is not read, when the grace is over"
    server.log.wait(r"\[INFO\] GET /play: cancelled: client disconnected 3 s ago")
    for stage in stages[:3]:
        stage.go()
    assert unaware.told(3) == ["pays", "has paid", "after"]
    assert told.told(4)[2:] == [DISCONNECT, "has paid"]
    assert working.told(3)[1:] == [DISCONNECT, "background"]


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
    server = playing(pool, "asyncio", asgi_disconnect_grace_period=1)
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
    server = playing(pool, "asyncio", asgi_disconnect_grace_period=0)
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
