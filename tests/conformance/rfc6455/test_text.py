"""RFC 6455 sections 5.6 and 8.1: text is UTF-8, wherever it is cut, or the connection is failed with 1007."""

from __future__ import annotations

import pytest

from tests.conformance.rfc6455.conftest import Open
from tests.harness.frames import TEXT, Frames, frame

GOOD = [
    "Hello-µ@ßöäüàá-UTF-8!!",
    "κόσμε",
    "\x00",
    "\x7f\x80\u07ff\u0800\uffff\U00010000\U0010ffff",
    "\ud7ff\ue000\ufffd\ufeff\ufffe",
    "ä" * 70_000,
    "a" * 4095 + "\U0001f600",
]
BAD = {
    "continuation alone": b"\x80",
    "in the middle": b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
    "surrogate": b"\xed\xa0\x80",
    "surrogate pair": b"\xed\xa0\x81\xed\xb0\x80",
    "overlong slash": b"\xc0\xaf",
    "overlong of three": b"\xe0\x80\xaf",
    "overlong of four": b"\xf0\x80\x80\xaf",
    "overlong NUL": b"\xc0\x80",
    "beyond the last": b"\xf4\x90\x80\x80",
    "five bytes": b"\xf8\x88\x80\x80\x80",
    "never": b"\xfe",
    "ends within": "x€".encode()[:-1],
    "interrupted": b"\xe2\x82x",
}


@pytest.mark.parametrize("text", GOOD, ids=range(len(GOOD)))
def test_text_messages_in_utf8(socket: Frames, text: str) -> None:
    socket.echoes(text)
    data = text.encode()
    for cut in {0, 1, 2, len(data) // 2, len(data) - 1}:
        socket.send(frame(0x01, data[:cut]), frame(0x00), frame(0x80, data[cut:]))
        assert socket.message() == text
    socket.goodbye()


def test_text_in_fragments_of_a_byte(socket: Frames) -> None:
    text = "Hello-µ@ßöäüàá-\U0001f600!!"
    socket.send(frame(0x01), *[frame(0x00, bytes([byte])) for byte in text.encode()], frame(0x80))
    assert socket.message() == text


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_text_messages_that_are_not_utf8(open_socket: Open, data: bytes) -> None:
    open_socket().put(TEXT, data).failed(1007)
    open_socket().send(frame(0x01, data[:1]), frame(0x80, data[1:]))
    pieces = open_socket()
    for byte in frame(TEXT, data):
        try:
            pieces.send(bytes([byte]))
        except ConnectionError:
            break
    pieces.failed(1007)


def test_it_is_refused_as_soon_as_it_is_wrong(socket: Frames) -> None:
    """The message is not complete and never will be."""
    socket.send(frame(0x01, b"\xce\xba\xf4\x90"))
    socket.failed(1007)


def test_binary_is_anything(socket: Frames) -> None:
    for data in BAD.values():
        socket.echoes(data)
