"""Lets a WebSocket client of HTTP/1.1 reach a server by HTTP/2: its bytes go over a stream of CONNECT (RFC 8441).

What is no WebSocket goes to the server as it is.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import struct
import threading
from typing import TYPE_CHECKING

from h2.config import H2Configuration
from h2.events import DataReceived, Event, PingAckReceived, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError

from tests.harness.frames import accept_of
from tests.harness.http2 import CANCEL, PatientConnection
from tests.harness.wire import Address, connect

if TYPE_CHECKING:
    from typing_extensions import Self

PIECE = 65_536
PATIENCE = 120
HANDSHAKE = ("host", "upgrade", "connection", "sec-websocket-key", "content-length")
"""Fields of HTTP/1.1 that the other handshake does without."""


class Relay:
    """A context manager: inside it clients connect to `address`."""

    def __init__(self, server: Address, context: ssl.SSLContext | None = None) -> None:
        """`context`: by TLS, which agrees on HTTP/2."""
        self._server = server
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # which ends accept()
        self._listener.close()
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[near], daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with self._lock:
            self._open.add(near)
        try:
            with near:
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._relay(near)
        except OSError:
            pass  # one of them has left
        finally:
            with self._lock:
                self._open.discard(near)

    def _relay(self, near: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = near.recv(PIECE)
            if not piece:
                return
            head += piece
        asked, _, rest = head.partition(b"\r\n\r\n")
        far = connect(self._server, PATIENCE)
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: far.close())
            if self._context is not None:
                far = self._context.wrap_socket(far, server_hostname="localhost")
            if b"\r\nupgrade: websocket\r\n" in asked.lower() + b"\r\n":
                Tunnel(near, far, asked, rest, "http" if self._context is None else "https").run()
            else:
                far.sendall(head)
                pass_on(near, far)


def pass_on(near: socket.socket, far: socket.socket) -> None:
    """Both ways, until one of them ends."""
    with selectors.DefaultSelector() as selector:
        selector.register(near, selectors.EVENT_READ, far)
        selector.register(far, selectors.EVENT_READ, near)
        while True:
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                piece = key.fileobj.recv(PIECE)
                if not piece:
                    return
                key.data.sendall(piece)


class Tunnel:
    """One WebSocket. What the client does not take is not acknowledged, what the server does not take is not read."""

    def __init__(self, near: socket.socket, far: socket.socket, head: bytes, rest: bytes, scheme: str) -> None:
        self._near = near
        self._far = far
        self._http2 = PatientConnection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self._http2.initiate_connection()
        line, *lines = head.decode("latin-1").split("\r\n")
        pairs = [line.partition(":") for line in lines]
        fields = [(name.lower(), value.strip(" \t")) for name, _, value in pairs]
        named = dict(fields)
        self._key = named.get("sec-websocket-key", "")
        self._request = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", scheme),
            (":authority", named["host"]),
            (":path", line.split(" ")[1]),
            *(pair for pair in fields if pair[0] not in HANDSHAKE),
        ]
        self._stream = 0
        """0: the server has not said yet that it knows CONNECT for protocols."""
        self._to_near = bytearray()
        self._to_far = bytearray(rest)
        self._out = bytearray()
        """Frames that the server has not taken."""
        self._owed = 0
        """Bytes that are acknowledged when the client has taken them."""
        self._is_accepted = False
        self._near_ended = self._far_ended = self._is_leaving = self._is_over = False
        self._end_sent = self._end_told = False

    def run(self) -> None:
        self._near.setblocking(False)
        self._far.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._near, selectors.EVENT_READ)
            selector.register(self._far, selectors.EVENT_READ)
            while True:
                self._move()
                if self._is_over and not self._out:
                    return
                near = (0 if self._near_ended or self._to_far else selectors.EVENT_READ) | (
                    selectors.EVENT_WRITE if self._to_near else 0
                )
                self._watch(selector, self._near, near)
                self._watch(selector, self._far, selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0))
                for key, events in selector.select():
                    if events & selectors.EVENT_READ:
                        self._read_near() if key.fileobj is self._near else self._read_far()

    @staticmethod
    def _watch(selector: selectors.BaseSelector, sock: socket.socket, events: int) -> None:
        known = selector.get_map().get(sock)
        if events == 0:
            if known:
                selector.unregister(sock)
        elif known is None:
            selector.register(sock, events)
        elif known.events != events:
            selector.modify(sock, events)

    def _read_near(self) -> None:
        try:
            piece = self._near.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            self._give_up()
            return
        self._to_far += piece
        self._near_ended = not piece

    def _read_far(self) -> None:
        try:
            while piece := self._far.recv(PIECE):
                for event in self._http2.receive_data(piece):
                    self._notice(event)
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except (OSError, ProtocolError):
            pass
        self._fail()  # the connection is over

    def _notice(self, event: Event) -> None:
        if isinstance(event, PingAckReceived):
            self._is_over = True
        elif self._is_leaving:
            pass
        elif isinstance(event, ResponseReceived):
            self._answer([(str(name), str(value)) for name, value in event.headers])
        elif isinstance(event, DataReceived):
            self._to_near += event.data
            self._owed += event.flow_controlled_length or 0
        elif isinstance(event, StreamEnded):
            self._far_ended = True
        elif isinstance(event, StreamReset) and not self._far_ended:
            self._fail()

    def _answer(self, fields: list[tuple[str, str]]) -> None:
        (_, status), *rest = fields
        if status == "200":
            self._is_accepted = True
            accepted = ("sec-websocket-accept", accept_of(self._key))
            head = [("upgrade", "websocket"), ("connection", "Upgrade"), accepted, *rest]
            status = "101 Switching Protocols"
        else:
            head = [("connection", "close"), *rest]
        lines = [f"HTTP/1.1 {status}" + ("" if " " in status else " "), *(f"{name}: {value}" for name, value in head)]
        self._to_near += "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def _move(self) -> None:
        """Sends what can go."""
        if not self._is_leaving:
            self._move_content()
        self._out += self._http2.data_to_send()
        with contextlib.suppress(BlockingIOError, ssl.SSLWantWriteError):
            while self._out:
                del self._out[: self._far.send(self._out)]

    def _move_content(self) -> None:
        if self._to_near:
            self._send_near()
        if self._owed and not self._to_near and not self._is_over:
            self._http2.acknowledge_received_data(self._owed, self._stream)
            self._owed = 0
        if self._far_ended and not self._to_near and not self._end_told:
            self._end_told = True
            with contextlib.suppress(OSError):
                self._near.shutdown(socket.SHUT_WR)
        if self._near_ended and self._far_ended and not self._to_near:
            self._is_over = True
        if self._stream == 0:
            self._begin()
        if self._stream == 0:
            pass
        elif self._far_ended:
            self._to_far.clear()  # nobody reads it
        elif self._is_accepted:
            self._upload()
        elif self._near_ended:
            self._give_up()  # the client has not waited for the answer

    def _send_near(self) -> None:
        try:
            del self._to_near[: self._near.send(self._to_near)]
        except BlockingIOError:
            pass
        except OSError:
            self._give_up()

    def _begin(self) -> None:
        if self._http2.remote_settings.enable_connect_protocol:
            self._stream = self._http2.get_next_available_stream_id()
            self._http2.send_headers(self._stream, self._request)

    def _upload(self) -> None:
        while self._to_far:
            window = self._http2.local_flow_control_window(self._stream)
            room = min(window, self._http2.max_outbound_frame_size, len(self._to_far))
            if room <= 0:
                return
            self._http2.send_data(self._stream, bytes(self._to_far[:room]))
            del self._to_far[:room]
        if self._near_ended and not self._end_sent:
            self._end_sent = True
            self._http2.end_stream(self._stream)

    def _give_up(self) -> None:
        """The client is gone: as TCP's RST, the stream's. When the server has seen that, its connection ends."""
        self._near_ended, self._is_leaving = True, True
        self._to_near.clear()
        self._to_far.clear()
        try:
            self._http2.reset_stream(self._stream, CANCEL)
            self._http2.ping(bytes(8))
        except ProtocolError:
            self._is_over = True

    def _fail(self) -> None:
        """The server is gone, or has reset the stream: so is the client's connection."""
        if not self._is_over:
            self._near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._is_over = True
        self._out.clear()
