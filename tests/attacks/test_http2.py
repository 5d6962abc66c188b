"""Attacks by way of HTTP/2: each costs its client the connection or the request, and nobody else anything.

Frames are written by hand: libraries refuse to send most of these.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from hpack import Decoder, Encoder

from tests.attacks.conftest import unharmed
from tests.conftest import Pool
from tests.harness import Server, each, proc
from tests.harness.http2 import ENHANCE_YOUR_CALM, Http2Wire
from tests.harness.wire import Wire

pytestmark = pytest.mark.beyond_reference("its HTTP/2 is a setting of another name")

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
FLOW_CONTROL_ERROR = 3
MANY = 5000
MEMORY = 8 << 20
"""Bytes that a worker may have grown by."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


HEAD = [(":method", "GET"), (":scheme", "http"), (":authority", "t"), (":path", "/sleep?s=0.05")]
BEGIN = PREFACE + frame(SETTINGS, 0, 0)


def head(stream: int, flags: int = END_STREAM | END_HEADERS, fields: object = HEAD) -> bytes:
    return frame(HEADERS, flags, stream, bytes(Encoder().encode(fields, huffman=False)))


def frames(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    while len(data) >= 9:
        length = int.from_bytes(data[:3], "big")
        if len(data) < 9 + length:
            return
        kind, flags, stream = struct.unpack(">BBI", data[3:9])
        yield kind, flags, stream, data[9 : 9 + length]
        data = data[9 + length :]


@pytest.fixture(params=each("sync", "gthread", "gevent", "asgi", "tornado", "aiohttp"))
def server(request: pytest.FixtureRequest, pool: Pool) -> Iterator[Server]:
    """A client over HTTP/2 is served before, during and after an attack."""
    options = {"http_protocols": "h2,h1", "http2_cleartext": "prior-knowledge", "write_timeout": 1}
    # The doctor reads unwind tables when a request takes long on a busy machine: megabytes that are not HTTP/2's.
    found = pool.get(worker_class=request.param, doctor="off", **options)
    with unharmed(found), Http2Wire(found.connect()) as other:
        assert other.get("/hello").status == 200
        before = proc.private_bytes(found.worker_pid())
        yield found
        assert other.get("/hello").body == b"Hello\n"
        assert proc.private_bytes(found.worker_pid()) - before < MEMORY


def attacked(server: Server, *parts: bytes) -> bytes:
    """Sends all, reading meanwhile as a client does that wants its acknowledgements; what came to the end."""
    with server.connect() as wire:
        thread = threading.Thread(target=_send, args=(wire, b"".join(parts)), daemon=True)
        thread.start()
        came = wire.ended()
        thread.join(30)
    return came


def _send(wire: Wire, data: bytes) -> None:
    try:
        wire.sock.sendall(data)
    except OSError:
        pass  # the server has had enough


def goaway(came: bytes) -> int | None:
    """The code of GOAWAY."""
    codes = [int.from_bytes(payload[4:8], "big") for kind, _, _, payload in frames(came) if kind == GOAWAY]
    return codes[-1] if codes else None


FLOODS: dict[str, Callable[[], bytes]] = {
    "rapid-reset-cve-2023-44487": lambda: b"".join(
        head(id_) + frame(RST_STREAM, 0, id_, struct.pack(">I", 8)) for id_ in range(1, 2 * MANY, 2)
    ),
    "made-you-reset-cve-2025-8671": lambda: b"".join(
        head(id_) + frame(WINDOW_UPDATE, 0, id_, struct.pack(">I", 0)) for id_ in range(1, 2 * MANY, 2)
    ),
    "ping-flood-cve-2019-9512": lambda: frame(PING, 0, 0, b"12345678") * MANY,
    "settings-flood-cve-2019-9515": lambda: frame(SETTINGS, 0, 0) * MANY,
    "empty-data-flood-cve-2019-9518": lambda: head(1, END_HEADERS) + frame(DATA, 0, 1) * MANY,
    "priority-flood": lambda: frame(PRIORITY, 0, 1, b"\0\0\0\0\x10") * MANY,
    "unknown-frames": lambda: frame(0x42, 0, 0) * MANY,
    "continuation-flood-cve-2024-27316": lambda: (
        frame(HEADERS, END_STREAM, 1, b"") + frame(CONTINUATION, 0, 1, b"") * MANY
    ),
    "long-continuation-flood": lambda: (
        frame(HEADERS, END_STREAM, 1, b"") + frame(CONTINUATION, 0, 1, b"\0\1a\x7f\x80\x7f" + b"x" * 10_000) * 100
    ),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_floods_end_the_connection(server: Server, flood: str) -> None:
    assert goaway(attacked(server, BEGIN, FLOODS[flood]())) == ENHANCE_YOUR_CALM


def test_hpack_bomb_cve_2026_49975(server: Server) -> None:
    """A field of 3,500 bytes in the table, and thousands of bytes that stand for it: 431, and nothing is stored."""
    encoder = Encoder()
    first = bytes(encoder.encode([*HEAD, ("x", "b" * 3500)], huffman=False))
    bomb = bytes(encoder.encode(HEAD, huffman=False)) + b"\xbe" * 15_000
    parts = b"".join(frame(HEADERS, END_STREAM | END_HEADERS, id_, bomb) for id_ in range(3, 60, 2))
    with server.connect() as wire:
        wire.send(BEGIN, frame(HEADERS, END_STREAM | END_HEADERS, 1, first), parts)
        data, statuses = b"", dict[int, str]()
        while len(statuses) < 30:
            piece = wire.sock.recv(65_536)
            assert piece, "the connection ended"
            data += piece
            decoder = Decoder()
            statuses = {
                id_: dict(decoder.decode(payload))[":status"]
                for kind, _, id_, payload in frames(data)
                if kind == HEADERS
            }
    assert statuses == {1: "200", **dict.fromkeys(range(3, 60, 2), "431")}


def test_windows_that_stay_shut(server: Server) -> None:
    """Streams whose windows are 0 for ever: `write_timeout` ends them, and their memory is bounded."""
    no_window = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    target = [(":method", "GET"), (":scheme", "http"), (":authority", "t"), (":path", "/blob?size=10000")]
    with server.connect() as wire:
        wire.send(PREFACE, no_window, *(head(id_, fields=target) for id_ in range(1, 100, 2)))
        data, ended = b"", set[int]()
        while len(ended) < 50:
            piece = wire.sock.recv(65_536)
            assert piece, "the connection ended"
            data += piece
            ended = {id_ for kind, _, id_, _ in frames(data) if kind == RST_STREAM}
        assert not [id_ for kind, _, id_, payload in frames(data) if kind == DATA and payload]


def test_windows_that_are_exceeded(server: Server) -> None:
    """The stream is reset; what comes for it afterwards has no content, and ends the connection."""
    came = attacked(server, BEGIN, head(1, END_HEADERS), frame(DATA, 0, 1, b"x" * 16_384) * 1000)
    resets = [(id_, int.from_bytes(payload, "big")) for kind, _, id_, payload in frames(came) if kind == RST_STREAM]
    assert resets == [(1, FLOW_CONTROL_ERROR)]
    assert goaway(came) == ENHANCE_YOUR_CALM
