"""What can be done to a server by way of a WebSocket: it stays small, it stays awake, and it ends what is broken."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.conftest import Pool
from tests.harness import Server, proc, until
from tests.harness.frames import BINARY, CLOSE, COMPRESSED, DEFLATE, PING, TEXT, Frames, deflated, frame, handshake

MEGABYTE = 1 << 20
LIMIT = MEGABYTE


@pytest.fixture
def server(pool: Pool) -> Iterator[Server]:
    """The worker must live on, and serve."""
    server = pool.get(
        "sockets:application", worker_class="asgi", websocket_max_message_size=LIMIT, websocket_ping_interval=0
    )
    worker = server.worker_pids()
    yield server
    with Frames(server.address) as socket:
        socket.echoes()
        socket.goodbye()
    assert server.worker_pids() == worker, server.log.text[-3000:]


class Weighed:
    """By how much the worker may grow meanwhile, in bytes."""

    def __init__(self, server: Server, most: int) -> None:
        self.pid, self.most = server.worker_pid(), most

    def __enter__(self) -> None:
        self.before = proc.private_bytes(self.pid)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        grown = proc.private_bytes(self.pid) - self.before
        assert kind is not None or grown <= self.most, f"{grown} bytes"


def crowd(server: Server, stack: ExitStack, count: int, *fields: tuple[str, str]) -> list[Frames]:
    return [stack.enter_context(Frames(server.address, "/echo", *fields)) for _ in range(count)]


def test_a_bomb_in_every_connection(server: Server) -> None:
    """64 MB in 64 KB, fifty times; none of them is ever larger than the limit."""
    bomb = frame(BINARY | COMPRESSED, deflated(bytes(64 * MEGABYTE)))
    assert len(bomb) < 100_000
    with ExitStack() as stack:
        sockets = crowd(server, stack, 50, DEFLATE)
        with Weighed(server, 16 * MEGABYTE):
            for socket in sockets:
                socket.send(bomb)
            for socket in sockets:
                assert socket.failed(1009)


def test_bombs_below_the_limit_wait_for_the_application_one_at_a_time(server: Server) -> None:
    """A thousand messages of a megabyte in one megabyte, for an application that does not receive."""
    bombs = frame(BINARY | COMPRESSED, deflated(bytes(LIMIT))) * 1000
    with Frames(server.address, "/gated?name=never-bombs", DEFLATE) as socket:
        socket.sock.setblocking(False)
        with Weighed(server, 16 * MEGABYTE):
            for _ in range(4):
                try:
                    socket.sock.send(bombs)
                except BlockingIOError:
                    break
            assert server.get("/hello").status == 200


def test_announced_and_never_sent(server: Server) -> None:
    """Nothing is reserved for bytes that were only promised."""
    with ExitStack() as stack:
        sockets = crowd(server, stack, 100)
        with Weighed(server, 16 * MEGABYTE):
            for socket in sockets:
                socket.send(frame(BINARY, b"x", announce=LIMIT))
            assert server.get("/hello").status == 200


def test_messages_that_never_end(server: Server) -> None:
    """Fragments of a byte, or of none, for ever: the limit counts what they come to."""
    with Frames(server.address) as socket:
        socket.send(frame(0x02, b"x"))
        empty = frame(0x00) * 10_000
        with Weighed(server, 8 * MEGABYTE):
            for _ in range(20):
                socket.send(empty)
        try:
            while True:
                socket.send(frame(0x00, bytes(50_000)))
        except ConnectionError:
            pass  # it was cut off before all was sent
        assert b"message is too big" in socket.ended()


def test_a_flood_of_pings(server: Server) -> None:
    """From a client that reads no answers; others are served meanwhile."""
    pings = frame(PING, bytes(125)) * 1000
    with Frames(server.address, receive_buffer=4096) as socket:
        socket.sock.setblocking(False)
        with Weighed(server, 16 * MEGABYTE):
            for _ in range(200):
                try:
                    socket.sock.send(pings)
                except BlockingIOError:
                    pass
            assert server.get("/hello").status == 200


def test_a_flood_of_tiny_messages_nobody_receives(server: Server) -> None:
    """An empty message is not nothing: the inbox counts what it takes."""
    messages = frame(TEXT) * 10_000
    with Frames(server.address, "/gated?name=never-tiny") as socket:
        socket.sock.setblocking(False)
        with Weighed(server, 16 * MEGABYTE):
            for _ in range(200):
                try:
                    socket.sock.send(messages)
                except BlockingIOError:
                    break
            assert server.get("/hello").status == 200


def test_a_client_that_never_answers_our_close(server: Server) -> None:
    """It is left after a while, with everything it holds."""
    with Frames(server.address, "/close") as socket:
        assert socket.frame().first == CLOSE
        socket.sock.settimeout(15)
        socket.closed()


def test_a_byte_at_a_time(server: Server) -> None:
    """What is not complete is read once, however it comes."""
    stream = frame(TEXT, b"x" * 3000) + frame(PING, bytes(125))
    with Frames(server.address) as socket:
        before = proc.cpu_seconds(server.worker_pid())
        for byte in stream:
            socket.send(bytes([byte]))
        assert {len(socket.frame().payload) for _ in range(2)} == {3000, 125}
        assert proc.cpu_seconds(server.worker_pid()) - before < 2


def test_a_request_hidden_behind_a_refused_handshake(server: Server) -> None:
    """Bytes behind a handshake are frames of no WebSocket, and no request."""
    smuggled = b"GET /open/smuggled HTTP/1.1\r\nHost: t\r\n\r\n"
    for asked in (handshake("/reject"), handshake("/deny"), handshake("/echo", drop=("Sec-WebSocket-Key",))):
        with server.connect() as wire:
            wire.send(asked, smuggled)
            assert wire.reply().status in (400, 401, 403)
            assert wire.ended() == b""


def test_noise_on_a_websocket(server: Server) -> None:
    """Random bytes end a WebSocket, and nothing else."""
    for _ in range(100):
        with Frames(server.address, "/echo", DEFLATE) as socket:
            try:
                socket.send(os.urandom(2000)).finish_sending()
            except ConnectionError:
                pass
            socket.ended()


def test_clients_that_vanish(server: Server) -> None:
    """Resets at every stage give back what they held."""
    descriptors = proc.descriptors(server.worker_pid())
    for stage in (b"", frame(TEXT, b"hi"), frame(TEXT, b"hi")[:4], frame(CLOSE, b"\x03\xe8"), frame(0x01, b"part")):
        for _ in range(20):
            with Frames(server.address) as socket:
                socket.send(stage)
                socket.reset()
    until(lambda: proc.descriptors(server.worker_pid()) <= descriptors, "their descriptors are closed")
