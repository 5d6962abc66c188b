"""An HTTP/2 client: python's h2 keeps the rules of the frames, tests say what is sent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes

from tests.harness.wire import Fields, Malformed, Wire

if TYPE_CHECKING:
    from typing_extensions import Self

HEADER = 9
"""Bytes of the header of a frame."""
ENHANCE_YOUR_CALM = 11
CANCEL = 8


@dataclass
class Answer:
    """What came on one stream."""

    fields: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)
    """The same as `fields`, which may repeat."""
    pieces: list[bytes] = field(default_factory=list)
    trailers: dict[str, str] = field(default_factory=dict)
    interims: list[list[tuple[str, str]]] = field(default_factory=list)
    """Fields of the interim responses, which may repeat."""
    ended: bool = False
    reset: int | None = None
    """Error code of RST_STREAM."""

    @property
    def status(self) -> int:
        return int(self.fields[":status"])

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


class PatientConnection(H2Connection):
    """h2 takes GOAWAY for the end of the connection. Streams that were under way go on (RFC 9113 section 6.8)."""

    def _receive_goaway_frame(self, frame: Any) -> tuple[list[Any], list[Event]]:
        event = ConnectionTerminated()
        event.error_code, event.last_stream_id = frame.error_code, frame.last_stream_id
        return [], [event]


class Http2Wire:
    """HTTP/2 over a connection that is there: by prior knowledge, or after a handshake that has agreed on it."""

    def __init__(self, wire: Wire, *, scheme: str = "http") -> None:
        self.wire = wire
        self.scheme = scheme
        self.client = PatientConnection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self.client.initiate_connection()
        self.answers: dict[int, Answer] = {}
        self.goaway: int | None = None
        """Error code of GOAWAY."""
        self.is_over = False
        self._rest = b""
        """A frame that is not complete."""
        self.unread: set[int] = set()
        """Streams whose content is not taken: their windows are never opened again, the connection's is."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def flush(self) -> None:
        """Sends what the client has to say. A connection that the server has closed can still be read to its end."""
        with contextlib.suppress(OSError):
            self.wire.sock.sendall(self.client.data_to_send())

    def begin(
        self,
        method: str,
        target: str,
        fields: Fields = (),
        *,
        authority: str = "t",
        end: bool = True,
        protocol: str | None = None,
    ) -> int:
        """Sends the head of a request, of an extended CONNECT for a protocol. Returns its stream."""
        stream: int = self.client.get_next_available_stream_id()
        pseudo = [(":method", method), (":scheme", self.scheme), (":authority", authority), (":path", target)]
        if protocol is not None:
            pseudo.append((":protocol", protocol))
        head = [(name.encode(), value.encode("latin-1")) for name, value in [*pseudo, *fields]]
        self.client.send_headers(stream, head, end_stream=end)
        self.answers[stream] = Answer()
        self.flush()
        return stream

    def get(self, target: str, *fields: tuple[str, str]) -> Answer:
        return self.answer(self.begin("GET", target, fields))

    def post(self, target: str, body: bytes, *fields: tuple[str, str]) -> Answer:
        stream = self.begin("POST", target, [("content-length", str(len(body))), *fields], end=False)
        self.upload(stream, body)
        return self.answer(stream)

    def upload(self, stream: int, body: bytes, *, end: bool = True) -> int:
        """Sends the content of a request as the windows allow, until the stream is reset. Returns what was taken."""
        sent = 0
        while sent < len(body):
            self.read_until(lambda: self._window(stream) != 0, f"the window of stream {stream} opens")
            room = min(self._window(stream), self.client.max_outbound_frame_size, len(body) - sent)
            if room < 0:
                return sent
            sent += room
            self.client.send_data(stream, body[sent - room : sent], end_stream=end and sent == len(body))
            self.flush()
        return sent

    def room(self, stream: int, patience: float) -> int:
        """Bytes that the windows allow; 0 if they have stayed shut for so many seconds."""
        if self._window(stream) == 0:
            self.read_for(patience)
        return max(self._window(stream), 0)

    def _window(self, stream: int) -> int:
        """Bytes that may be sent; -1 if the stream is over."""
        if self.answers[stream].reset is not None:
            return -1
        try:
            return int(self.client.local_flow_control_window(stream))
        except StreamClosedError:
            return -1

    def answer(self, stream: int) -> Answer:
        """Waits until the stream has ended."""
        answer = self.answers[stream]
        self.read_until(lambda: answer.ended or answer.reset is not None, f"stream {stream} ends")
        return answer

    def wait_setting(self, code: SettingCodes, value: int) -> None:
        """Waits until the server has said so, in its first SETTINGS frame or in a later one."""
        settings = self.client.remote_settings
        self.read_until(lambda: settings.get(code) == value, f"{code.name} is {value}")

    def read_until(self, is_done: Callable[[], bool], what: str) -> None:
        while not is_done():
            if self.is_over:
                raise Malformed(f"the connection ended before {what} (GOAWAY: {self.goaway})")
            self._read()

    def read_for(self, seconds: float) -> None:
        """Reads what comes before nothing has come for this long."""
        before = self.wire.sock.gettimeout()
        self.wire.sock.settimeout(seconds)
        try:
            while not self.is_over:
                self._read()
        except TimeoutError:
            pass
        finally:
            self.wire.sock.settimeout(before)

    def end(self) -> int | None:
        """Reads to the end of the connection. Returns the error code of GOAWAY."""
        while not self.is_over:
            self._read()
        return self.goaway

    def _read(self) -> None:
        try:
            piece = self.wire.sock.recv(65_536)
        except ConnectionError:
            piece = b""
        self.is_over = not piece
        self._rest += piece
        while len(self._rest) >= (end := HEADER + int.from_bytes(self._rest[:3], "big")):
            frame, self._rest = self._rest[:end], self._rest[end:]
            self._receive(frame)
        self.flush()

    def _receive(self, frame: bytes) -> None:
        """Reads one frame. After GOAWAY h2 refuses all, although a server may send more (RFC 9113, section 6.8)."""
        try:
            events = self.client.receive_data(frame)
        except ProtocolError:
            if self.goaway is None:
                raise
            return
        for event in events:
            self._notice(event)

    def _notice(self, event: Event) -> None:
        if isinstance(event, ConnectionTerminated):
            self.goaway = int(event.error_code or 0)
        elif isinstance(event, ResponseReceived):
            answer = self.answers[event.stream_id]
            answer.lines = [(str(name), str(value)) for name, value in event.headers]
            answer.fields = dict(answer.lines)
        elif isinstance(event, TrailersReceived):
            self.answers[event.stream_id].trailers = {str(name): str(value) for name, value in event.headers}
        elif isinstance(event, DataReceived):
            self.answers[event.stream_id].pieces.append(event.data)
            if event.stream_id not in self.unread:
                self.client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif event.flow_controlled_length:
                self.client.increment_flow_control_window(event.flow_controlled_length)
        elif isinstance(event, InformationalResponseReceived):
            fields = [(str(name), str(value)) for name, value in event.headers]
            self.answers[event.stream_id].interims.append(fields)
        elif isinstance(event, StreamEnded):
            self.answers[event.stream_id].ended = True
        elif isinstance(event, StreamReset):
            self.answers[event.stream_id].reset = int(event.error_code)
