"""Responses that go on while the application does, clients that do not keep up, and both directions at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.asgi3.play import Stage, Step, body, start
from tests.harness import Wire, proc, until
from tests.harness.front_end_client import needs_an_end
from tests.harness.wire import Short

MEGABYTE = 1 << 20
FAIL: Step = ("fail", "RuntimeError", "crash marker")


def heard(wire: Wire, what: bytes) -> None:
    """Reads until `what` has come."""
    while what not in wire.unread:
        more = wire.sock.recv(65536)
        assert more, f"the connection ended before {what!r}: {wire.unread!r}"
        wire.unread += more


def test_each_piece_is_there_before_the_next_is_sent(stage: Stage, version: str) -> None:
    """As server-sent events need it."""
    gates = [f"{stage.tag}{number}" for number in range(3)]
    steps = [start(200, (b"cache-control", b"no-store"))]
    for gate in gates:
        steps += [body(f"data: {gate}\n\n".encode(), True), ("wait", gate)]
    with stage.connect() as wire:
        wire.send(stage.request(*steps, body(), version=version))
        for gate in gates:
            heard(wire, f"data: {gate}\n\n".encode())
            stage.go(gate)
        reply = wire.reply()
    assert reply.body.count(b"data: ") == 3


def test_an_empty_piece_sends_the_head(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(start(200, (b"x-early", b"yes")), body(b"", True), stage.gate, body(b"done")))
        heard(wire, b"x-early: yes\r\n")
        heard(wire, b"\r\n\r\n")
        stage.go()
        assert wire.reply().body == b"done"


@pytest.mark.parametrize("before", [(), (("sleep", 0.001),)], ids=["first step", "later"])
def test_a_head_does_not_wait_for_its_body(stage: Stage, version: str, before: tuple[Step, ...]) -> None:
    """`EventSource.onopen`, `fetch()` and timers of the first byte wait for it; what is sent after it is as ever."""
    with stage.connect() as wire:
        steps = [*before, start(200, (b"x-early", b"yes")), stage.gate, body(b"one", True), body(b"two")]
        wire.send(stage.request(*steps, version=version))
        heard(wire, b"x-early: yes\r\n")
        heard(wire, b"\r\n\r\n")
        stage.go()
        assert wire.reply().body == b"onetwo"


@pytest.mark.parametrize("steps", [(body(b"one"),), (FAIL,), ()], ids=["one piece", "fails", "returns"])
def test_what_follows_a_head_that_was_sent_alone(stage: Stage, steps: tuple[Step, ...]) -> None:
    needs_an_end(stage.server)
    with stage.connect() as wire:
        wire.send(stage.request(start(200, (b"x-early", b"yes")), stage.gate, *steps))
        heard(wire, b"x-early: yes\r\n")
        stage.go()
        if steps and steps != (FAIL,):
            assert (wire.reply().body, wire.still_open(0.01)) == (b"one", True)
        else:
            with pytest.raises(Short):
                wire.reply()


def test_a_head_with_a_length_goes_with_its_body(stage: Stage) -> None:
    """It comes at once, or the application does not know what it promises."""
    with stage.connect() as wire:
        wire.send(stage.request(start(200, (b"content-length", b"3")), stage.gate, body(b"one")))
        stage.another().play(("sleep", 0.01), start(), body(b"turned"))
        assert not wire.unread
        assert wire.still_open(0.01)
        stage.go()
        assert wire.reply().body == b"one"


def test_both_directions_at_once(stage: Stage) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(start(), ("echo",), method="POST", fields=[("Transfer-Encoding", "chunked")]))
        for number in range(5):
            wire.send(b"6\r\npiece%d\r\n" % number)
            heard(wire, b"piece%d" % number)
        wire.send(b"0\r\n\r\n")
        assert wire.reply().body == b"".join(b"piece%d" % number for number in range(5))


@pytest.mark.parametrize("size", [65_536, 4 * MEGABYTE])
def test_a_client_that_does_not_read_holds_the_application_back(stage: Stage, tmp_path: Path, size: int) -> None:
    """And no other request: the worker's memory stays as it is, and other requests are answered."""
    progress = tmp_path / "progress"
    count = 64 * MEGABYTE // size
    (worker,) = stage.server.worker_pids()
    stage.alive()
    before = proc.private_bytes(worker)
    with stage.connect(receive_buffer=4096) as wire:
        wire.send(stage.request(start(), ("pour", count, size, str(progress)), body(b"end")))
        until(lambda: wire.still_open(0.1) and stalled(progress), "it is held back", every=0.2)
        assert int(progress.read_text() if progress.exists() else "0") < count
        # The doctor may look for the first time on a busy machine, and keeps what it has read of symbols (5 MiB).
        assert proc.private_bytes(worker) - before < 3 * size + 20 * MEGABYTE, "of 64 MiB"
        assert stage.alive()
        assert len(wire.reply().body) == count * size + 3
    assert int(progress.read_text()) == count


def stalled(progress: Path) -> bool:
    """Whether the number in the file stays for a while: the condition that is waited for has no other sign."""
    seen = progress.read_text() if progress.exists() else ""
    try:
        until(lambda: progress.exists() and progress.read_text() != seen, "it moves", within=0.3)
    except AssertionError:
        return True
    return False


def test_many_streams_at_once(stage: Stage) -> None:
    wires = [stage.connect() for _ in range(50)]
    for wire in wires:
        wire.send(stage.request(start(), body(b"one", True), stage.gate, body(b"two")))
    for wire in wires:
        heard(wire, b"one")
    stage.go()
    for wire in wires:
        with wire:
            assert wire.reply().body == b"onetwo"
