"""Applications that fail, end too early, or forget to answer."""

from __future__ import annotations

import pytest

from tests.conformance.asgi3.play import ANSWER, RECEIVE, Stage, Step, body, head, length, start
from tests.conformance.asgi3.test_streaming import heard
from tests.harness.front_end_client import needs_an_end
from tests.harness.wire import Short

FAIL = ("fail", "RuntimeError", "crash marker")


@pytest.mark.parametrize(
    "before", [(), (RECEIVE,), (start(),), (start(200, length(4)),)], ids=["call", "receive", "start", "length"]
)
def test_an_error_before_the_first_byte_is_a_500(stage: Stage, version: str, before: tuple[Step, ...]) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(*before, FAIL, version=version))
        reply = wire.reply()
        wire.closed()
    assert (reply.status, reply.reason) == (500, "Internal Server Error")
    assert b"crash marker" not in reply.body
    assert b"Traceback" not in reply.body


def test_the_log_has_the_request_and_the_traceback(stage: Stage) -> None:
    text = f"crash marker {stage.tag}"
    stage.play(("fail", "RuntimeError", text))
    log = stage.server.log
    log.wait(r"\[ERROR\] Error handling request.*/play")
    log.wait("Traceback")
    log.wait(r"asgi.play\.py")
    log.wait(f"RuntimeError: {text}")


def test_an_error_within_a_body_ends_the_connection(stage: Stage) -> None:
    needs_an_end(stage.server)
    with stage.connect() as wire:
        wire.send(stage.request(start(), body(b"begun", True), FAIL))
        with pytest.raises(Short):
            wire.reply()
        assert wire.ended() == b""


def test_an_old_clients_body_is_cut_too(stage: Stage) -> None:
    assert stage.play(start(), body(b"begun", True), FAIL, version="1.0").body == b"begun"


def test_an_error_after_the_response_is_logged_and_no_more(stage: Stage) -> None:
    text = f"crash marker {stage.tag}"
    with stage.connect() as wire:
        wire.send(stage.request(*ANSWER, ("fail", "RuntimeError", text)))
        assert wire.reply().body == b"done"
    stage.server.log.wait(f"RuntimeError: {text}")
    assert stage.alive()


WAIT: Step = ("sleep", 0.001)
BEGUN: tuple[Step, ...] = (start(), body(b"begun", True))
MOMENTS: dict[str, tuple[Step, ...]] = {
    "before the response": (),
    "before it, after a wait": (WAIT,),
    "within it": BEGUN,
    "within it, after a wait": (*BEGUN, WAIT),
    "after it": ANSWER,
    "after it and a wait": (*ANSWER, WAIT),
    "after a wait and the response": (WAIT, *ANSWER),
}


@pytest.mark.parametrize("kind", ["RuntimeError", "ExceptionGroup", "OSError"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_every_exception_has_its_traceback_and_its_request_once(stage: Stage, moment: str, kind: str) -> None:
    """A task that ends in its first step, and one whose response is out, lose neither."""
    marker = f"crash marker {stage.tag}"
    with stage.connect() as wire:
        wire.send(stage.request(*MOMENTS[moment], ("fail", kind, marker)))
        wire.ended() if "after" not in moment.partition(",")[0] else wire.reply()
        error = "OSError" if kind == "OSError" else "RuntimeError"
        stage.server.log.wait(f"{error}: {marker}")
    assert stage.alive()
    log = stage.server.log.text
    record = log[log.rindex("[ERROR]", 0, log.index(marker)) : log.index(marker)]
    assert record.startswith("[ERROR] Error handling request GET /play")
    assert record.count("Traceback (most recent call last)") == 1
    assert 'play.py", line ' in record
    assert "in fail" in record
    assert ("after its response was sent" in record) == (ANSWER[1] in MOMENTS[moment])
    assert log.count(f"{error}: {marker}") == 1


def test_a_response_that_was_begun_while_its_headers_were_read(stage: Stage) -> None:
    """No request ends without a line."""
    reply = stage.play(("send_within", head(200, length(4)), head(201)), ("say", "never"))
    assert reply.status == 500
    stage.server.log.wait("RuntimeError: .* while its headers were read")
    assert stage.alive()


@pytest.mark.parametrize("steps", [(), (RECEIVE,), (start(),)], ids=["nothing", "receive", "start"])
def test_who_forgets_to_answer_is_a_500(stage: Stage, steps: tuple[Step, ...]) -> None:
    reply = stage.play(*steps)
    assert (reply.status, reply.closes) == (500, True)


@pytest.mark.parametrize("fields", [(), (length(10),)], ids=["chunked", "length"])
def test_who_forgets_the_end_is_cut_off(stage: Stage, fields: tuple[tuple[bytes, bytes], ...]) -> None:
    if not fields:
        needs_an_end(stage.server)
    with stage.connect() as wire:
        wire.send(stage.request(start(200, *fields), body(b"begun", True)))
        with pytest.raises(Short):
            wire.reply()
        assert wire.ended() == b""


@pytest.mark.parametrize("kind", ["SystemExit", "CancelledError", "KeyboardInterrupt", "OSError"])
def test_no_exception_ends_the_worker(stage: Stage, kind: str) -> None:
    before = stage.server.worker_pids()
    assert stage.play(("fail", kind, "crash marker")).status == 500
    assert stage.alive()
    assert stage.server.worker_pids() == before


def test_a_failing_request_fails_alone(stage: Stage) -> None:
    with stage.connect() as other:
        other.send(stage.request(start(), body(b"one", True), stage.gate, body(b"two")))
        heard(other, b"one")
        assert stage.play(FAIL).status == 500
        stage.go()
        assert other.reply().body == b"onetwo"
