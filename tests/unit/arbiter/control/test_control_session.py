"""Two framings, and whatever else a client may send."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest
from tricorn.arbiter.control.session import MOST_REQUEST, MOST_VALUES, Broken, Frame, Request, Session


def frame(message: object) -> bytes:
    text = json.dumps(message).encode()
    return len(text).to_bytes(4, "big") + text


def everything(session: Session) -> Iterator[Request | Frame | Broken]:
    while (found := session.next()) is not None:
        yield found
        if isinstance(found, Broken):
            return


def after(data: bytes, pieces: int = 1 << 20) -> list[Request | Frame | Broken]:
    session = Session()
    found: list[Request | Frame | Broken] = []
    for start in range(0, len(data), pieces):
        session.feed(data[start : start + pieces])
        found += everything(session)
        if found and isinstance(found[-1], Broken):
            return found
    return found


LINES = b'{"id": 1, "do": "status"}\n{"do":"scale","workers":"+2","id":"a"}\n'
FRAMES = frame({"id": 1, "command": "show workers"}) + frame({"id": 2, "command": "worker add", "args": ["2"]})


@pytest.mark.parametrize("pieces", [1, 7, 1 << 20])
def test_a_line_is_a_request(pieces: int) -> None:
    assert after(LINES, pieces) == [Request(1, "status", {}), Request("a", "scale", {"workers": "+2"})]


@pytest.mark.parametrize("pieces", [1, 7, 1 << 20])
def test_a_frame_is_a_request_with_gunicorns_words(pieces: int) -> None:
    assert after(FRAMES, pieces) == [
        Frame(1, "show workers", []),
        Frame(2, "worker add", ["2"]),
    ]


def test_an_answer_has_the_framing_of_the_request() -> None:
    lines, frames = Session(), Session()
    lines.feed(LINES)
    frames.feed(FRAMES)
    assert lines.next()
    assert frames.next()
    assert lines.encode({"ok": True}) == b'{"ok":true}\n'
    assert frames.encode({"ok": True}) == b'\0\0\0\x0b{"ok":true}'


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"\n",
        b"\x01\0\0\0",
        b"[1]\n",
        b"{\n",
        b"{}\n",
        b'{"do": 1}\n',
        b"{" * MOST_REQUEST + b"\n",
        b"{" * (MOST_REQUEST + 1),
        b'{"do": "' + b"a" * MOST_REQUEST + b'"}\n',
        b'{"a":' * 10_000 + b"\n",
        b'{"do":"status","a":[' + b"1," * MOST_VALUES + b"1]}\n",
        b'{"do":"status","a":' + b"[" * 400 + b"\n",
        b'{"do":"status"}\n[]\n',
        b"\xff\n",
        b'{"do": "\xff"}\n',
        b"\0\0\0\0",
        b"\0\0\0\x02[]",
        b"\0\x01\0\x01",
        b"\0\xff\xff\xff",
        frame({"command": 5}),
        frame({"id": 1, "do": "status", "command": ["show"]}),
    ],
    ids=lambda data: repr(data[:12]),
)
def test_anything_else_is_broken_and_is_the_end(data: bytes) -> None:
    assert isinstance(after(data)[-1], Broken)


@pytest.mark.parametrize("data", [b"", b"{", b'{"id": 1', b"\0", b"\0\0\0", b"\0\0\0\x05{", b"\0\0\0\x10"])
def test_a_half_is_waited_for(data: bytes) -> None:
    assert after(data) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("7", 7),
        ('"x"', "x"),
        ("null", None),
        ("[1]", None),
        ("1.5", None),
        ("9" * 40, None),
        (f'"{"y" * 500}"', "y" * 128),
    ],
)
def test_an_id_is_sent_back_if_it_is_short(text: str, kept: object) -> None:
    (request,) = after(b'{"id": ' + text.encode() + b', "do": "status"}\n')
    assert isinstance(request, Request)
    assert request.id == kept


def test_rubbish_is_broken_or_waited_for_and_never_an_exception() -> None:
    """Seeded: what fails once fails again."""
    chance = random.Random(20261123)
    begins = [b"{", b"\0", b"\0\0", LINES, FRAMES, b""]
    for _ in range(3000):
        data = bytearray(chance.choice(begins) + chance.randbytes(chance.randrange(200)))
        for _ in range(chance.randrange(4)):
            if data:
                data[chance.randrange(len(data))] = chance.choice(b'{}[]":,\n\0\xff0')
        session, held = Session(), 0
        while data:
            piece = data[: chance.randrange(1, 64)]
            del data[: len(piece)]
            session.feed(bytes(piece))
            held += len(piece)
            for found in everything(session):
                assert isinstance(found, Request | Frame | Broken)
            if isinstance(session.next(), Broken):
                break
        assert held <= 2 * MOST_REQUEST
