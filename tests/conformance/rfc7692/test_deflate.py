"""RFC 7692: permessage-deflate, agreed upon and used."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable

import pytest

from tests.conformance.rfc6455.conftest import MESSAGE_LIMIT, Open
from tests.harness import Server
from tests.harness.frames import BINARY, COMPRESSED, DEFLATE, PING, PONG, TEXT, Frames, deflated, frame

NAME = "Sec-WebSocket-Extensions"
SAMPLE = json.dumps([{"id": number, "name": f"item {number}", "tags": ["red", "new"]} for number in range(100)])


@pytest.mark.parametrize(
    ("offer", "parts"),
    [
        ("permessage-deflate", set()),
        ("permessage-deflate; client_max_window_bits", set()),
        ("permessage-deflate; server_no_context_takeover", {"server_no_context_takeover"}),
        ("permessage-deflate; client_no_context_takeover", {"client_no_context_takeover"}),
        ("permessage-deflate; server_max_window_bits=10", {"server_max_window_bits=10"}),
        ('permessage-deflate; server_max_window_bits="12"', {"server_max_window_bits=12"}),
        ("permessage-deflate; server_max_window_bits=8, permessage-deflate", set()),
        ("mux, permessage-deflate; nonsense, permessage-deflate", set()),
    ],
)
def test_an_offer_is_accepted(server: Server, offer: str, parts: set[str]) -> None:
    """What is asked for is granted; of its own the server may only ask the client to forget."""
    with Frames(server.address, "/echo", (NAME, offer)) as socket:
        (answer,) = socket.response.all(NAME)
        name, *got = [part.strip() for part in answer.split(";")]
        assert name == "permessage-deflate"
        assert set(got) - {"client_no_context_takeover"} == parts - {"client_no_context_takeover"}
        if "client_no_context_takeover" in parts:
            assert "client_no_context_takeover" in got
        for _ in range(3):
            socket.put(TEXT | COMPRESSED, deflated(SAMPLE.encode()))
            assert socket.message() == SAMPLE
        socket.goodbye()


@pytest.mark.parametrize(
    "offer",
    [
        "permessage-deflate; server_max_window_bits=8",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=010",
        "permessage-deflate; client_max_window_bits=7",
        "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; x=1",
        "deflate-frame",
    ],
)
def test_an_offer_is_declined(server: Server, offer: str) -> None:
    """Section 7.1: unknown, invalid or doubled parameters. The WebSocket works without, and RSV1 is reserved."""
    with Frames(server.address, "/echo", (NAME, offer)) as socket:
        assert socket.response.all(NAME) == []
        socket.echoes(SAMPLE)
        socket.put(TEXT | COMPRESSED, deflated(b"x"))
        socket.failed(1002)


def test_the_examples_of_section_7_2_3(open_socket: Open) -> None:
    socket = open_socket("/echo", DEFLATE)
    hello = b"\xf2\x48\xcd\xc9\xc9\x07\x00"
    for stream in (
        frame(0xC1, hello),
        frame(0x41, hello[:3]) + frame(0x80, hello[3:]),
        frame(0xC1, b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"),
        frame(0xC1, b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00"),
        frame(0xC1, b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"),
    ):
        socket.send(stream)
        assert socket.message() == "Hello"
    socket.goodbye()


def test_the_client_may_remember_if_nobody_forbids_it(open_socket: Open) -> None:
    """Section 7.2.3.2: the second message refers to the first one."""
    socket = open_socket("/echo", DEFLATE)
    if "client_no_context_takeover" in (socket.response.get(NAME) or ""):
        pytest.skip("this server asks clients to forget")
    socket.send(frame(0xC1, b"\xf2\x48\xcd\xc9\xc9\x07\x00"), frame(0xC1, b"\xf2\x00\x11\x00\x00"))
    assert [socket.message(), socket.message()] == ["Hello", "Hello"]


@pytest.mark.parametrize("length", [0, 1, 64, 125, 1000, 65_536, 131_072, MESSAGE_LIMIT])
@pytest.mark.parametrize("kind", [TEXT, BINARY])
def test_messages_of_every_length(open_socket: Open, kind: int, length: int) -> None:
    socket = open_socket("/echo", DEFLATE)
    data = (SAMPLE * (length // len(SAMPLE) + 1))[:length].encode()
    expected: str | bytes = data.decode() if kind == TEXT else data
    for _ in range(2):
        socket.put(kind | COMPRESSED, deflated(data))
        assert socket.message() == expected
        socket.put(kind, data)
        assert socket.message() == expected, "a message need not be compressed"
    socket.goodbye()


def test_what_does_not_get_smaller(open_socket: Open) -> None:
    socket = open_socket("/echo", DEFLATE)
    noise = random.Random(1).randbytes(100_000)
    socket.put(BINARY | COMPRESSED, deflated(noise))
    assert socket.message() == noise


def test_fragments_and_control_frames(open_socket: Open) -> None:
    socket = open_socket("/echo", DEFLATE)
    data = deflated(SAMPLE.encode())
    pieces = [data[start : start + 50] for start in range(0, len(data), 50)]
    socket.send(frame(0x41), *[frame(0x00, piece) for piece in pieces], frame(PING, b"?"), frame(0x80))
    pong = socket.frame()
    assert (pong.first, pong.payload) == (PONG, b"?")
    assert socket.message() == SAMPLE


BROKEN: dict[str, tuple[Callable[[], bytes], int]] = {
    "compressed ping": (lambda: frame(0xC9), 1002),
    "compressed close": (lambda: frame(0xC8), 1002),
    "RSV1 on a continuation": (lambda: frame(0x41, deflated(b"x" * 100)[:3]) + frame(0xC0, b"x"), 1002),
    "RSV2": (lambda: frame(0xE1, deflated(b"x")), 1002),
    "no DEFLATE": (lambda: frame(0xC1, b"\xff\xff\xff\xff"), 1007),
    "a distance into nothing": (lambda: frame(0xC1, b"\xf2\x00\x11\x00\x00"), 1007),
    "text that is not UTF-8": (lambda: frame(0xC1, deflated(b"\xce\xba\xff")), 1007),
    "too big": (lambda: frame(0xC2, deflated(bytes(MESSAGE_LIMIT + 1))), 1009),
    "a bomb": (lambda: frame(0xC2, deflated(bytes(64 << 20))), 1009),
}


@pytest.mark.parametrize(("stream", "code"), BROKEN.values(), ids=BROKEN.keys())
def test_what_breaks_the_rules(open_socket: Open, stream: Callable[[], bytes], code: int) -> None:
    broken = stream()
    socket = open_socket("/echo", DEFLATE)
    socket.send(broken)
    socket.failed(code)


def test_the_server_keeps_to_the_window_it_was_told(open_socket: Open) -> None:
    """Section 7.1.2.1: no reference goes back further."""
    socket = open_socket("/echo", (NAME, "permessage-deflate; server_max_window_bits=9"))
    noise = random.Random(2).randbytes(300)
    data = noise + bytes(600) + noise
    inflate = zlib.decompressobj(-9)
    for _ in range(3):
        got = socket.put(BINARY, data).frame()
        if got.first & COMPRESSED:
            assert inflate.decompress(got.payload + b"\x00\x00\xff\xff") == data


def test_without_server_context_takeover_each_message_stands_alone(open_socket: Open) -> None:
    socket = open_socket("/echo", (NAME, "permessage-deflate; server_no_context_takeover"))
    for _ in range(3):
        got = socket.put(TEXT, SAMPLE.encode()).frame()
        assert got.first == TEXT | COMPRESSED
        assert zlib.decompressobj(-15).decompress(got.payload + b"\x00\x00\xff\xff") == SAMPLE.encode()
