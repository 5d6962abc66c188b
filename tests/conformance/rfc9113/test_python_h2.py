"""RFC 9113 between tricorn-proto and a client that others have written: python's h2, which checks each frame it gets.

Sessions are drawn from a seed: requests with fields, content and padding in any order, small windows, resets and pings.
"""

from __future__ import annotations

import queue
import random
import shutil
import string
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

h2_config = pytest.importorskip("h2.config")
import h2.connection  # noqa: E402
import h2.events  # noqa: E402
import h2.settings  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
BUILD = ["cargo", "build", "--quiet", "--profile", "testing", "-p", "tricorn-proto", "--example", "http2_server"]
PROGRAM = ROOT / "target/testing/examples/http2_server"
FIRST = "server: tricorn, date: Sun, 06 Nov 1994 08:49:37 GMT, content-type: text/plain, set-cookie: a=b"

Fields = list[tuple[str, str]]

pytestmark = pytest.mark.timeout(600)
"""The first one may have to wait for the compiler."""


@pytest.fixture(scope="module")
def program() -> Path:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    subprocess.run(BUILD, cwd=ROOT, check=True)  # compiled with the Rust tests, unless those were not run
    return PROGRAM


class Session:
    """A client of h2 whose bytes go to the server in pieces of any size."""

    def __init__(self, program: Path, seed: int) -> None:
        self.random = random.Random(seed)
        config = h2_config.H2Configuration(client_side=True, header_encoding="utf-8")
        self.client = h2.connection.H2Connection(config)
        window = self.random.choice([500, 65_535, 1 << 20])
        table = self.random.choice([0, 100, 4096, 65_536])
        self.client.local_settings = h2.settings.Settings(
            client=True,
            initial_values={
                h2.settings.SettingCodes.ENABLE_PUSH: 0,
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window,
                h2.settings.SettingCodes.HEADER_TABLE_SIZE: table,
            },
        )
        self.server = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.events: list[h2.events.Event] = []
        self.arrived: queue.Queue[bytes] = queue.Queue()
        self.reader = threading.Thread(target=self.listen)
        self.reader.start()
        self.client.initiate_connection()

    def close(self) -> None:
        self.server.kill()
        self.reader.join(timeout=10)
        self.server.communicate(timeout=10)

    def listen(self) -> None:
        """Reads all the time: a server whose pipe is full would not read its own."""
        assert self.server.stdout is not None
        while data := self.server.stdout.read(65_536):
            self.arrived.put(data)
        self.arrived.put(b"")

    def flush(self) -> None:
        assert self.server.stdin is not None
        data = self.client.data_to_send()
        while data:
            size = self.random.choice([9, 1000, 20_000])
            self.server.stdin.write(data[:size])
            data = data[size:]

    def step(self) -> None:
        """Sends what is to be sent, and takes what has come from the server."""
        self.flush()
        try:
            data = self.arrived.get(timeout=0.01)
        except queue.Empty:
            return
        assert data, "the server has ended"
        events = self.client.receive_data(data)
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                self.client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        self.events += events


@pytest.fixture
def session(program: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    session = Session(program, request.param)
    yield session
    session.close()


class Exchange:
    """A request of which a part was sent, and its response as far as it came."""

    def __init__(self, session: Session, stream: int) -> None:
        draw = session.random
        self.stream = stream
        self.method = draw.choice(["GET", "POST", "PUT", "DELETE", "PROPFIND"])
        self.path = "/" + "".join(draw.choices(string.ascii_letters + "?&=%2", k=draw.randrange(200)))
        names = ["accept", "x-" + draw.choice(string.ascii_lowercase) * draw.randrange(1, 30), "user-agent"]
        text = string.ascii_letters + string.digits + "ü;=, "
        values = ["".join(draw.choices(text, k=draw.randrange(1, 300))).strip(" ,") or "x" for _ in range(5)]
        self.fields: Fields = [(draw.choice(names), value) for value in values[: draw.randrange(5)]]
        self.left = draw.randbytes(draw.choice([0, 0, 1, 100, 20_000, 100_000]))
        self.content = self.left
        self.trailers: Fields = draw.choice([[], [("x-trailer", "end")]])
        self.is_sent = False
        head = [(":method", self.method), (":scheme", "http"), (":path", self.path), (":authority", "example.com")]
        session.client.send_headers(stream, head + self.fields)

    def send(self, session: Session) -> None:
        """Sends a frame of content, as the windows let, or the end."""
        client, draw = session.client, session.random
        if self.left:
            room = min(client.local_flow_control_window(self.stream), client.max_outbound_frame_size)
            padding = draw.choice([None, 0, 10, 255])
            length = min(room - 256, len(self.left), draw.choice([100, 5000, 16_000]))
            if length > 0:
                client.send_data(self.stream, self.left[:length], pad_length=padding)
                self.left = self.left[length:]
        elif not self.is_sent:
            self.is_sent = True
            if self.trailers:
                client.send_headers(self.stream, self.trailers, end_stream=True)
            else:
                client.end_stream(self.stream)

    def expected(self) -> bytes:
        lines = [f":method: {self.method}", f":path: {self.path}", "host: example.com"]
        lines += [f"{name}: {value}" for name, value in self.fields]
        trailers = "".join(f"{name}: {value}\n" for name, value in self.trailers)
        return "\n".join(lines).encode() + b"\n\n" + self.content + trailers.encode()


@pytest.mark.parametrize("session", range(12), indirect=True)
def test_what_one_side_sends_the_other_reads(session: Session) -> None:
    exchanges: dict[int, Exchange] = {}
    ended: set[int] = set()
    total = 30
    while len(ended) < total:
        if len(exchanges) < total and len(exchanges) - len(ended) < 10:
            stream = session.client.get_next_available_stream_id()
            exchanges[stream] = Exchange(session, stream)
        for exchange in exchanges.values():
            exchange.send(session)
        if session.random.randrange(20) == 0:
            session.client.ping(session.random.randbytes(8))
        session.step()
        ended = {event.stream_id for event in session.events if isinstance(event, h2.events.StreamEnded)}
    for stream, exchange in exchanges.items():
        own = [event for event in session.events if getattr(event, "stream_id", None) == stream]
        [head] = [event for event in own if isinstance(event, h2.events.ResponseReceived)]
        assert ", ".join(f"{name!s}: {value!s}" for name, value in head.headers[1:]) == FIRST
        content = b"".join(event.data for event in own if isinstance(event, h2.events.DataReceived))
        assert content == exchange.expected()
        [trailers] = [event for event in own if isinstance(event, h2.events.TrailersReceived)]
        assert [tuple(map(str, field)) for field in trailers.headers] == [("x-received", str(len(exchange.content)))]


@pytest.mark.parametrize("session", [1], indirect=True)
def test_a_client_that_resets_goes_on(session: Session) -> None:
    for _ in range(50):
        stream = session.client.get_next_available_stream_id()
        session.client.send_headers(
            stream, [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")]
        )
        session.client.send_data(stream, b"x" * 100)
        session.client.reset_stream(stream, 8)
    session.client.ping(b"is there")
    while not any(isinstance(event, h2.events.PingAckReceived) for event in session.events):
        session.step()
    assert not any(isinstance(event, h2.events.ConnectionTerminated) for event in session.events)
