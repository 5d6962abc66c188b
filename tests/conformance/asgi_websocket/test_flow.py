"""Back-pressure both ways: what is not taken is not gathered without end, and nothing of it is lost."""

from __future__ import annotations

import select

from tests.conftest import Pool
from tests.harness import Server, proc, until
from tests.harness.frames import BINARY, PING, PONG, TEXT, Frames, frame, handshake
from tests.harness.wire import Wire

MEGABYTE = 1 << 20


def test_an_application_that_does_not_receive_stops_the_client(tcp_server: Server) -> None:
    message = frame(BINARY, bytes(64 * 1024))
    with Frames(tcp_server.address, "/gated?name=slow") as socket:
        socket.sock.setblocking(False)
        sent, at = 0, 0
        # Until nothing has been taken for a while; what kernels buffer is bounded.
        while select.select([], [socket.sock], [], 0.5)[1] and sent < 256 * MEGABYTE:
            at += socket.sock.send(message[at:])
            sent, at = sent + at // len(message), at % len(message)
        assert sent < 1024, "64 MB were taken for an application that receives nothing"
        socket.sock.settimeout(10)
        assert tcp_server.get("/open/slow").status == 200
        socket.send(message[at:]) if at else None
        count = sent + (1 if at else 0)
        for _ in range(count):
            assert socket.message() == "65536"
        socket.goodbye()


def test_a_client_that_does_not_receive_stops_the_application(tcp_server: Server) -> None:
    with Frames(tcp_server.address, "/flood?count=2000&size=65536", receive_buffer=64 * 1024) as socket:
        tcp_server.out.wait('"sending"')
        assert not tcp_server.out.matching("flooded")
        for _ in range(2000):
            got = socket.frame()
            assert (got.first, len(got.payload)) == (BINARY, 65536)
        tcp_server.out.wait("flooded")
        socket.goodbye()


def test_pings_of_a_client_that_does_not_receive(pool: Pool, tcp_server: Server) -> None:
    """One Pong is owed, not thousands (RFC 6455 section 5.5.3)."""
    before = proc.private_bytes(tcp_server.worker_pid())
    with Frames(tcp_server.address, "/flood?count=200&size=1000000", receive_buffer=4096) as socket:
        pings = b"".join(frame(PING, b"%0125d" % number) for number in range(2000))
        for _ in range(20):
            socket.send(pings)
        grown = proc.private_bytes(tcp_server.worker_pid()) - before
        assert grown < 16 * MEGABYTE, grown
        pongs = 0
        for _ in range(200):
            # Where this takes long the server asks, too, whether the client is there.
            while (got := socket.frame()).first in (PING, PONG):
                pongs += got.first == PONG
                if got.first == PING:
                    socket.put(PONG, got.payload)
            assert len(got.payload) == 1_000_000
        assert pongs < 20_000
        socket.put(PING, b"last")
        until(lambda: socket.frame().payload == b"last", "the last ping is answered")
        socket.goodbye()


def test_answers_to_many_frames_of_one_read(tcp_server: Server) -> None:
    messages = b"".join(frame(TEXT, b"%d" % number) for number in range(500))
    with Frames(tcp_server.address) as socket:
        for _ in range(20):
            socket.send(messages)
            assert [socket.message() for _ in range(500)] == [str(number) for number in range(500)]
        socket.goodbye()


def test_a_denial_that_is_not_read_waits(tcp_server: Server) -> None:
    with Wire(tcp_server.address, receive_buffer=64 * 1024) as wire:
        wire.send(handshake("/deny-flood?name=slow"))
        tcp_server.out.wait('"denying", "name": "slow"')
        # There is one loop, so a task that does not wait is done before this is answered.
        assert tcp_server.get("/").status == 200
        assert not tcp_server.out.matching('"denied at length", "name": "slow"')
        reply = wire.reply()
        assert (reply.status, len(reply.body)) == (403, 400 * 65536)
        wire.closed()
    tcp_server.out.wait('"denied at length", "name": "slow"')


def test_a_denied_client_that_leaves_is_not_waited_for(tcp_server: Server) -> None:
    with Wire(tcp_server.address, receive_buffer=64 * 1024) as wire:
        wire.send(handshake("/deny-flood?name=lost"))
        tcp_server.out.wait('"denying", "name": "lost"')
        assert tcp_server.get("/").status == 200
        wire.reset()
    tcp_server.out.wait('"denied in vain", "name": "lost"')
