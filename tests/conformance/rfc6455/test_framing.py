"""RFC 6455 sections 5.2 to 5.4: frames of every length, masks, fragments, and what breaks the rules."""

from __future__ import annotations

import pytest

from tests.conformance.rfc6455.conftest import MESSAGE_LIMIT, Open
from tests.harness.frames import BINARY, PING, PONG, TEXT, Frames, frame

LENGTHS = [0, 1, 124, 125, 126, 127, 128, 4095, 65535, 65536, 131_072, MESSAGE_LIMIT]


@pytest.mark.parametrize("length", LENGTHS)
def test_frame_lengths(socket: Frames, length: int) -> None:
    socket.echoes("*" * length)
    socket.echoes(bytes(range(256)) * (length // 256) + b"z" * (length % 256))
    socket.goodbye()


@pytest.mark.parametrize("size", [1, 2, 13, 997])
def test_octets_in_any_split(socket: Frames, size: int) -> None:
    stream = frame(TEXT, b"first") + frame(PING, b"?") + frame(0x02, b"se") + frame(0x80, b"cond") + frame(TEXT, b"")
    stream += frame(TEXT, b"x" * 200) if size < 13 else frame(TEXT, b"x" * 66_000)
    for start in range(0, len(stream), size):
        socket.send(stream[start : start + size])
    got = [socket.frame() for _ in range(5)]
    # The Pong need not wait for the application.
    (pong,) = (one for one in got if one.first == PONG)
    got.remove(pong)
    assert pong.payload == b"?"
    assert [one.payload for one in got[:3]] == [b"first", b"second", b""]
    assert [one.first for one in got] == [TEXT, BINARY, TEXT, TEXT]
    assert set(got[3].payload) == {ord("x")}
    socket.goodbye()


@pytest.mark.parametrize("mask", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x01\x02\x03\x04"])
def test_frame_masks(socket: Frames, mask: bytes) -> None:
    for length in (0, 1, 2, 3, 5, 7, 8, 9, 31, 33, 1000):
        socket.put(BINARY, bytes(length), mask=mask)
        assert socket.message() == bytes(length)


def test_many_messages_at_once(socket: Frames) -> None:
    """More than any buffer holds: all come back, in order."""
    messages = [str(number) for number in range(3000)]
    socket.send(b"".join(frame(TEXT, message.encode()) for message in messages))
    assert [socket.message() for _ in messages] == messages


def test_message_fragments(socket: Frames) -> None:
    """Section 5.4, with control frames between."""
    socket.send(frame(0x01, b"one"), frame(0x00, b""), frame(PING, b"between"), frame(0x00, b"two"), frame(0x80, b"!"))
    pong = socket.frame()
    assert (pong.first, pong.payload) == (PONG, b"between")
    assert socket.message() == "onetwo!"
    socket.send(frame(0x02), frame(0x80))
    assert socket.message() == b""
    socket.send(frame(0x01), *[frame(0x00, b"a") for _ in range(1000)], frame(0x80))
    assert socket.message() == "a" * 1000
    socket.goodbye()


BROKEN = {
    "RSV1": frame(0xC1, b"x"),
    "RSV2": frame(0xA1, b"x"),
    "RSV3": frame(0x91, b"x"),
    "RSV on a control frame": frame(0xD9),
    "opcode 3": frame(0x83),
    "opcode 7": frame(0x87),
    "opcode 11": frame(0x8B),
    "opcode 15": frame(0x8F),
    "no mask": frame(TEXT, b"x", mask=None),
    "no mask on a control frame": frame(PING, mask=None),
    "fragmented ping": frame(0x09, b"x"),
    "fragmented close": frame(0x08),
    "long ping": frame(PING, bytes(126)),
    "long pong": frame(PONG, bytes(126)),
    "long close": frame(0x88, b"\x03\xe8" + bytes(124)),
    "continuation of nothing": frame(0x80, b"x"),
    "continuation of nothing, to go on": frame(0x00, b"x"),
    "message in a message": frame(0x01, b"x") + frame(TEXT, b"y"),
    "binary in a text": frame(0x01, b"x") + frame(BINARY, b"y"),
    "length of 16 bits for 5": b"\x81\xfe\x00\x05\0\0\0\0hello",
    "length of 64 bits for 5": b"\x81\xff\0\0\0\0\0\0\x00\x05\0\0\0\0hello",
    "length of 64 bits": b"\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0",
}


@pytest.mark.parametrize("stream", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("after", [b"", frame(TEXT, b"never read")], ids=["alone", "with more"])
def test_broken_frames(open_socket: Open, stream: bytes, after: bytes) -> None:
    """The connection is failed with 1002; what came before is answered, what comes after is not."""
    socket = open_socket()
    socket.send(frame(TEXT, b"before"), stream, after)
    first = socket.frame()
    if first.first == TEXT:
        assert first.payload == b"before"
        socket.failed(1002)
    else:
        # The application may be too late: nothing is sent behind a Close frame.
        assert first.code == 1002
        socket.closed()


@pytest.mark.parametrize(
    "stream",
    [
        frame(TEXT, b"x" * (MESSAGE_LIMIT + 1)),
        frame(TEXT, announce=MESSAGE_LIMIT + 1),
        frame(BINARY, announce=1 << 62),
        frame(0x02, bytes(MESSAGE_LIMIT)) + frame(0x80, b"x"),
    ],
    ids=["sent", "announced", "absurd", "fragments"],
)
def test_messages_that_are_too_big(open_socket: Open, stream: bytes) -> None:
    socket = open_socket()
    try:
        socket.send(stream)
    except ConnectionError:
        pass  # It need not be read to its end.
    assert socket.failed(1009)
