"""Responses that go on while the application does, clients that do not keep up, and both directions at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.asgi3.play import Stage, body, start
from tests.harness import Wire, proc, until

MEGABYTE = 1 << 20


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
