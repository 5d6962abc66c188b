"""RFC 8441: WebSockets on streams of HTTP/2, beside requests of the same connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from h2.settings import SettingCodes
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage
from wsproto.extensions import PerMessageDeflate

from tests.conftest import Pool
from tests.harness import Server
from tests.harness.http2 import Http2Wire
from tests.harness.wire import Wire

PROTOCOL_ERROR = 1


class Tunnel:
    """A WebSocket on a stream; wsproto keeps the rules of its frames."""

    def __init__(self, http2: Http2Wire, target: str, *fields: tuple[str, str], protocol: str = "websocket") -> None:
        self.http2 = http2
        http2.wait_setting(SettingCodes.ENABLE_CONNECT_PROTOCOL, 1)
        self.stream = http2.begin(
            "CONNECT", target, [("sec-websocket-version", "13"), *fields], end=False, protocol=protocol
        )
        self.answer = http2.answers[self.stream]
        http2.read_until(lambda: bool(self.answer.fields) or self.answer.reset is not None, "the answer")
        extensions = []
        if agreed := self.answer.fields.get("sec-websocket-extensions"):
            deflate = PerMessageDeflate()
            deflate.finalize(agreed)
            extensions.append(deflate)
        self.session = Connection(ConnectionType.CLIENT, extensions)
        self._read = 0

    def say(self, event: Event) -> None:
        self.http2.upload(self.stream, self.session.send(event), end=False)

    def hear(self) -> Event:
        """Returns the next event; a message comes whole."""
        while True:
            for event in self.session.events():
                return event
            self.http2.read_until(lambda: len(self.answer.body) > self._read or self.answer.ended, "a frame")
            piece, self._read = self.answer.body[self._read :], len(self.answer.body)
            self.session.receive_data(piece)

    def close(self, code: int = 1000) -> None:
        self.say(CloseConnection(code))
        assert isinstance(self.hear(), CloseConnection)
        self.http2.read_until(lambda: self.answer.ended, "the stream ends")


@pytest.fixture(params=["asgi", "aiohttp"])
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return pool.get(
        "sockets:application", worker_class=request.param, http_protocols="h2,h1", http2_cleartext="prior-knowledge"
    )


@pytest.fixture
def http2(server: Server) -> Iterator[Http2Wire]:
    with Http2Wire(Wire(server.address)) as http2:
        yield http2


def test_messages_are_echoed_beside_requests_of_the_connection(http2: Http2Wire) -> None:
    tunnel = Tunnel(http2, "/echo")
    assert tunnel.answer.status == 200
    assert not {"upgrade", "connection", "sec-websocket-accept"} & tunnel.answer.fields.keys()
    tunnel.say(TextMessage("grüß dich"))
    assert tunnel.hear() == TextMessage("grüß dich")
    assert http2.get("/").status in {200, 404}
    tunnel.say(Ping(b"are you there"))
    assert tunnel.hear() == Pong(b"are you there")
    tunnel.close()


def test_a_message_longer_than_the_windows(http2: Http2Wire) -> None:
    tunnel = Tunnel(http2, "/echo")
    message = bytes(range(256)) * 1000
    tunnel.say(BytesMessage(message))
    got = bytearray()
    while len(got) < len(message):
        event = tunnel.hear()
        assert isinstance(event, BytesMessage)
        got += event.data
    assert got == message
    tunnel.close()


def test_messages_are_compressed_if_that_is_agreed(http2: Http2Wire) -> None:
    offer = f"permessage-deflate; {PerMessageDeflate().offer()}".rstrip("; ")
    tunnel = Tunnel(http2, "/echo", ("sec-websocket-extensions", offer))
    assert tunnel.answer.fields["sec-websocket-extensions"].startswith("permessage-deflate")
    tunnel.say(TextMessage("aaaa" * 1000))
    assert tunnel.hear() == TextMessage("aaaa" * 1000)
    assert len(tunnel.answer.body) < 1000
    tunnel.close()


@pytest.mark.parametrize("code", [1000, 4999])
def test_the_close_code_reaches_the_application(server: Server, http2: Http2Wire, code: int) -> None:
    name = f"over-http2-{code}"
    Tunnel(http2, f"/echo?name={name}").close(code)
    told = server.out.wait(rf'"disconnect".*"name": "{name}"')[0].string
    assert f'"code": {code}' in told


def test_a_stream_that_is_reset_is_a_disconnect(server: Server, http2: Http2Wire) -> None:
    tunnel = Tunnel(http2, "/echo?name=reset-on-http2")
    http2.client.reset_stream(tunnel.stream)
    http2.flush()
    server.out.wait(r'"disconnect".*"name": "reset-on-http2"')
    assert Tunnel(http2, "/echo").answer.status == 200, "the connection lives"


def test_many_sockets_share_a_connection(http2: Http2Wire) -> None:
    tunnels = [Tunnel(http2, "/echo") for _ in range(20)]
    for number, tunnel in enumerate(tunnels):
        tunnel.say(TextMessage(str(number)))
    assert [tunnel.hear() for tunnel in tunnels] == [TextMessage(str(number)) for number in range(20)]


def test_another_protocol_is_refused_and_the_connection_lives(http2: Http2Wire) -> None:
    assert Tunnel(http2, "/", protocol="connect-udp").answer.reset == PROTOCOL_ERROR
    assert Tunnel(http2, "/echo").answer.status == 200


@pytest.mark.parametrize("worker_class", ["sync", "gthread", "tornado"])
def test_other_classes_offer_none(pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, http_protocols="h2,h1", http2_cleartext="prior-knowledge")
    with Http2Wire(Wire(server.address)) as http2:
        assert http2.get("/").status
        assert http2.client.remote_settings.enable_connect_protocol == 0
