"""A WebSocket client that sends any frame it is told, broken ones too, and believes nothing it reads."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.harness.wire import Address, Fields, Malformed, Reply, Wire, request

if TYPE_CHECKING:
    from typing_extensions import Self

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
MASK = b"\x37\xfa\x21\x3d"
TEXT, BINARY, CLOSE, PING, PONG = 0x81, 0x82, 0x88, 0x89, 0x8A
COMPRESSED = 0x40
TAIL = b"\x00\x00\xff\xff"
DEFLATE = ("Sec-WebSocket-Extensions", "permessage-deflate")


def masked(data: bytes, mask: bytes = MASK) -> bytes:
    length = len(data)
    key = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
    return (int.from_bytes(data, "big") ^ key).to_bytes(length, "big")


def frame(first: int, payload: bytes = b"", *, mask: bytes | None = MASK, announce: int | None = None) -> bytes:
    """One frame with any first byte; `announce` lies about the length."""
    length = len(payload) if announce is None else announce
    bit = 0 if mask is None else 0x80
    if length < 126:
        head = bytes([first, bit | length])
    elif length < 1 << 16:
        head = struct.pack("!BBH", first, bit | 126, length)
    else:
        head = struct.pack("!BBQ", first, bit | 127, length)
    return head + payload if mask is None else head + mask + masked(payload, mask)


def deflated(data: bytes, *, final: bool = False) -> bytes:
    """A message compressed on its own (RFC 7692 section 7.2.1)."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    if final:
        return deflate.compress(data) + deflate.flush(zlib.Z_FINISH) + b"\x00"
    return (deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)).removesuffix(TAIL)


def accept_of(key: str) -> str:
    digest = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", usedforsecurity=False)
    return base64.b64encode(digest.digest()).decode()


def handshake(target: str, fields: Fields = (), *, drop: tuple[str, ...] = ()) -> bytes:
    """A good request for a WebSocket; `fields` come besides or instead, `drop` leaves some out."""
    mine = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", KEY),
        ("Sec-WebSocket-Version", "13"),
    ]
    named = {name.lower() for name, _ in fields} | {name.lower() for name in drop}
    return request("GET", target, [(name, value) for name, value in mine if name.lower() not in named] + [*fields])


@dataclass(frozen=True)
class Frame:
    first: int
    payload: bytes

    @property
    def code(self) -> int | None:
        """Of a Close frame."""
        return int(struct.unpack("!H", self.payload[:2])[0]) if self.payload else None

    @property
    def reason(self) -> str:
        return self.payload[2:].decode()


class Frames(Wire):
    """One WebSocket; inside the context it has been accepted."""

    def __init__(self, address: Address, target: str = "/echo", *fields: tuple[str, str], **options: Any) -> None:
        super().__init__(address, **options)
        self.send(handshake(target, fields))
        self.response = self.answer()
        self._inflate = zlib.decompressobj(-15)
        if self.response.status != 101:
            self.close()
            raise Malformed(f"not accepted: {self.response}")
        assert self.response.get("sec-websocket-accept") == accept_of(KEY)

    def __enter__(self) -> Self:
        return self

    def answer(self) -> Reply:
        """The head of a response, without a body."""
        return self._head(False)

    def put(self, first: int, payload: bytes = b"", **how: Any) -> Self:
        self.send(frame(first, payload, **how))
        return self

    def frame(self) -> Frame:
        """The next frame: unmasked, its length in the shortest form."""
        first, second = self._exactly(2, "the head of a frame")
        if second & 0x80:
            raise Malformed("a server must not mask")
        length = second
        if second == 126:
            (length,) = struct.unpack("!H", self._exactly(2, "a length"))
            assert length > 125, length
        elif second == 127:
            (length,) = struct.unpack("!Q", self._exactly(8, "a length"))
            assert length > 0xFFFF, length
        return Frame(first, self._exactly(length, "a payload"))

    def message(self) -> str | bytes:
        """The next frame, which must be a whole message."""
        got = self.frame()
        data = got.payload
        if got.first & COMPRESSED:
            data = self._inflate.decompress(data + TAIL)
        if got.first & ~COMPRESSED == TEXT:
            return data.decode()
        assert got.first & ~COMPRESSED == BINARY, got
        return data

    def failed(self, code: int) -> str:
        """The server must fail the connection here, with a Close frame and then the end; its reason."""
        got = self.frame()
        assert got.first == CLOSE, got
        assert got.code == code, got
        self.closed()
        return got.reason

    def goodbye(self, code: int | None = 1000) -> None:
        """Closes in order."""
        self.put(CLOSE, b"" if code is None else struct.pack("!H", code))
        got = self.frame()
        assert (got.first, got.code) == (CLOSE, code), got
        self.closed()

    def echoes(self, message: str | bytes = "still there") -> None:
        """The connection is as good as new."""
        data = message.encode() if isinstance(message, str) else message
        self.put(TEXT if isinstance(message, str) else BINARY, data)
        assert self.message() == message
