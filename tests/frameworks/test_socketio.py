"""Flask-SocketIO: both of its transports, under each worker class with the library that belongs to it."""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, Wire, proc, until
from tests.harness.needs import needs

APPS = Path(__file__).parent / "apps"
PATH = "/socket.io/?EIO=4&transport="
MODES = {"gevent": "gevent", "eventlet": "eventlet", "gthread": "threading"}

needs("flask_socketio")
wsproto = pytest.importorskip("wsproto")
events = pytest.importorskip("wsproto.events")


def serving(worker_class: str, workers: int = 1) -> Server:
    if worker_class != "gthread":
        needs(worker_class)
    options: dict[str, Any] = {"threads": 40} if worker_class == "gthread" else {}
    env = {"ASYNC_MODE": MODES[worker_class]}
    app = "socketio_app:application"
    return Server(app, chdir=APPS, worker_class=worker_class, workers=workers, env=env, **options)


@pytest.fixture(scope="module", params=MODES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with serving(request.param) as server:
        assert server.get("/mode").text == MODES[request.param]
        yield server


class Polling:
    """A session over long polling. Engine.IO's packets begin with a digit, Socket.IO's with another one."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        opened = wire.get(f"{PATH}polling").text
        assert opened[0] == "0"
        self.sid = json.loads(opened[1:])["sid"]
        self.say("40")
        assert self.hear().startswith("40")

    @property
    def target(self) -> str:
        return f"{PATH}polling&sid={self.sid}"

    def say(self, packet: str) -> None:
        reply = self.wire.ask("POST", self.target, (("Content-Type", "text/plain;charset=UTF-8"),), packet.encode())
        assert (reply.status, reply.body) == (200, b"OK")

    def emit(self, *event: Any) -> None:
        self.say("42" + json.dumps(event))

    def hear(self) -> str:
        """The next packet that is not a ping."""
        while True:
            packets = self.wire.get(self.target).text.split("\x1e")
            if "2" in packets:
                self.say("3")
            for packet in packets:
                if packet != "2":
                    return packet


class WebSocket:
    """A session over a WebSocket: of its own, or the continuation of one that polls."""

    def __init__(self, server: Server, sid: str | None = None) -> None:
        self.protocol = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        self.sock = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.events: deque[Any] = deque()
        self.send(events.Request("t", f"{PATH}websocket" + (f"&sid={sid}" if sid else "")))
        assert isinstance(self.receive(), events.AcceptConnection)
        if sid:
            self.say("2probe")
            assert self.hear() == "3probe"
            self.say("5")
        else:
            assert self.hear()[0] == "0"
            self.say("40")
            assert self.hear().startswith("40")

    def __enter__(self) -> WebSocket:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
        return self

    def __exit__(self, *_: object) -> None:
        if self.protocol.state is wsproto.connection.ConnectionState.OPEN:
            with suppress(OSError):
                self.send(events.CloseConnection(1000))
        self.sock.close()

    def send(self, happening: Any) -> None:
        self.sock.sendall(self.protocol.send(happening))

    def receive(self) -> Any:
        while not self.events:
            self.protocol.receive_data(self.sock.recv(65536) or None)
            self.events.extend(self.protocol.events())
        return self.events.popleft()

    def say(self, packet: str) -> None:
        self.send(events.TextMessage(packet))

    def emit(self, *event: Any) -> None:
        self.say("42" + json.dumps(event))

    def hear(self) -> str:
        """The next packet that is neither a ping nor the end of an upgrade."""
        while True:
            text, whole = "", False
            while not whole:
                message = self.receive()
                assert isinstance(message, events.TextMessage), message
                text, whole = text + message.data, message.message_finished
            if text == "2":
                self.say("3")
            elif text != "6":
                return text


def event(packet: str) -> Any:
    assert packet.startswith("42"), packet
    return json.loads(packet[2:])


def test_socketio_polling(server: Server) -> None:
    with server.connect() as wire:
        session = Polling(wire)
        session.emit("echo", "a text")
        assert event(session.hear()) == ["echoed", "a text"]


def test_what_a_background_task_says(server: Server) -> None:
    with server.connect() as wire, server.connect() as other:
        session = Polling(wire)
        session.emit("later", 0.2)
        wire.send(f"GET {session.target} HTTP/1.1\r\nHost: t\r\n\r\n".encode())
        assert other.get("/mode").status == 200, "while one waits another one is answered"
        assert event(wire.reply().text) == ["said", {"slept": 0.2}]


def test_socketio_websocket(server: Server) -> None:
    with WebSocket(server) as session:
        for text in ("a text", "x" * 100_000, "\N{SNOWMAN}"):
            session.emit("echo", text)
            assert event(session.hear()) == ["echoed", text]
        session.emit("later", 0.1)
        assert event(session.hear()) == ["said", {"slept": 0.1}]


def test_a_session_that_polls_becomes_a_websocket(server: Server) -> None:
    with server.connect() as wire:
        session = Polling(wire)
        with WebSocket(server, session.sid) as continued:
            continued.emit("echo", "a text")
            assert event(continued.hear()) == ["echoed", "a text"]


@pytest.mark.parametrize("worker_class", MODES)
def test_sessions_reach_the_worker_that_has_them(worker_class: str) -> None:
    """The documentation of Flask-SocketIO asks for one worker. Each request has a connection of its own here."""
    with serving(worker_class, workers=4) as server:
        for _ in range(12):
            with server.connect() as wire:
                session = Polling(wire)
            for text in "ab":
                with server.connect() as session.wire:
                    session.emit("echo", text)
                with server.connect() as session.wire:
                    assert event(session.hear()) == ["echoed", text]
            with WebSocket(server, session.sid) as continued:
                continued.emit("echo", "c")
                assert event(continued.hear()) == ["echoed", "c"]


def test_everybody_is_told(server: Server) -> None:
    with ExitStack() as stack:
        sessions = [stack.enter_context(WebSocket(server)) for _ in range(20)]
        sessions[0].emit("everybody", "news")
        assert [event(session.hear()) for session in sessions] == [["told", "news"]] * 20


def test_a_websocket_that_ends_leaves_nothing_behind(server: Server) -> None:
    with WebSocket(server) as session:
        session.emit("echo", "a text")
        session.hear()
    before = proc.descriptors(server.worker_pid())
    for number in range(10):
        with WebSocket(server) as session:
            if number % 2:
                # Without a word: as a browser goes that is killed.
                session.sock.close()
    until(lambda: proc.descriptors(server.worker_pid()) <= before, "its descriptors are free again")
    assert server.get("/mode").status == 200
    assert not server.log.matching("ERROR|Traceback"), server.log.text
