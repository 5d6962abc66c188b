"""gRPC's protocol over HTTP/2, as Google's client (grpcio) speaks it, to `tests/apps/asgi/rpc.py`.

A WSGI application cannot serve it: PEP 3333 has no trailers, which carry the status.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import Pool
from tests.harness import Server, until
from tests.harness.certificates import Authority
from tests.harness.deadline import PATIENCE
from tests.harness.needs import needs

if TYPE_CHECKING:
    import grpc

pytestmark = pytest.mark.beyond_reference("it has no ASGI over HTTP/2")
needs("grpc", "uvloop")

MIB = 1 << 20
KINDS = ("asyncio-cleartext", "uvloop-tls")
LARGEST = 4 * MIB
"""What grpcio takes by default; its prefix comes on top."""
OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", 16 * MIB),
    ("grpc.use_local_subchannel_pool", 1),  # a connection for each channel
]


class Client:
    """A channel, with bytes for messages."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    def call(self, name: str, message: bytes, **more: Any) -> Any:
        """The answer, and the call, which has its metadata."""
        return self.channel.unary_unary(f"/test.Echo/{name}").with_call(message, **self._given(more))

    def begin(self, name: str, message: bytes, **more: Any) -> Any:
        return self.channel.unary_unary(f"/test.Echo/{name}").future(message, **self._given(more))

    def many(self, name: str, message: bytes, **more: Any) -> Any:
        return self.channel.unary_stream(f"/test.Echo/{name}")(message, **self._given(more))

    def joined(self, messages: Iterator[bytes]) -> Any:
        return self.channel.stream_unary("/test.Echo/Joined").with_call(messages, **self._given({}))

    def chat(self, messages: Iterator[bytes]) -> Any:
        return self.channel.stream_stream("/test.Echo/Chat")(messages, **self._given({}))

    def told(self, tag: str) -> list[str]:
        answer, _ = self.call("Told", tag.encode())
        return str(answer.decode()).split("\n")

    @staticmethod
    def _given(more: dict[str, Any]) -> dict[str, Any]:
        return {"timeout": PATIENCE, "wait_for_ready": True, **more}


class Questions:
    """Messages of a client that says them one by one; also an iterator, which grpcio reads in a thread of its own."""

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes | None] = queue.Queue()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._queue.get, None)

    def say(self, message: bytes | None) -> None:
        """None: that was all."""
        self._queue.put(message)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def settings(authority: Authority, kind: str) -> dict[str, Any]:
    loop, _, transport = kind.partition("-")
    options: dict[str, Any] = {"worker_class": "asgi", "asgi_loop": loop, "http_protocols": "h2,h1"}
    if transport == "tls":
        return {**options, "certificate": authority.issue("server").pair}
    return {**options, "http2_cleartext": "prior-knowledge"}


def connect(server: Server, authority: Authority, kind: str) -> grpc.Channel:
    import grpc

    target = f"127.0.0.1:{server.port}"
    if kind.endswith("-tls"):
        trust = grpc.ssl_channel_credentials(authority.certificate.read_bytes())
        return grpc.secure_channel(target, trust, OPTIONS)
    return grpc.insecure_channel(target, OPTIONS)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(pool: Pool, authority: Authority, kind: str) -> Iterator[Client]:
    server = pool.get("asgi.rpc:application", **settings(authority, kind))
    with connect(server, authority, kind) as channel:
        yield Client(channel)


@pytest.fixture
def hasty(pool: Pool, authority: Authority, kind: str) -> Iterator[Client]:
    """Of a server that cancels a call as soon as its client has left."""
    server = pool.get("asgi.rpc:application", asgi_disconnect_grace_period=0, **settings(authority, kind))
    with connect(server, authority, kind) as channel:
        yield Client(channel)


def refusal(call: Any) -> tuple[str, str]:
    """The name of the status, and its message."""
    import grpc

    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code().name, caught.value.details()


# --- the four kinds of calls ---


@pytest.mark.parametrize("length", [0, 1, 100_000, LARGEST])
def test_unary_calls(client: Client, length: int) -> None:
    message = (bytes(range(256)) * (length // 256 + 1))[:length]
    answer, call = client.call("Unary", message)
    assert answer == message
    assert call.code().name == "OK"


def test_server_streaming(client: Client) -> None:
    answers = list(client.many("Many", b"300 1000"))
    assert answers == [bytes([number % 256]) * 1000 for number in range(300)]


def test_server_streaming_of_large_messages(client: Client) -> None:
    answers = client.many("Many", b"8 %d" % LARGEST)
    for number in range(8):
        assert next(answers) == bytes([number]) * LARGEST
    with pytest.raises(StopIteration):
        next(answers)
    assert answers.code().name == "OK"


def test_client_streaming(client: Client) -> None:
    answer, _ = client.joined(b"%d" % number for number in range(1000))
    assert answer == b" ".join(b"%d" % number for number in range(1000))


def test_client_streaming_of_large_messages(client: Client) -> None:
    answer, _ = client.joined(bytes([number]) * MIB for number in range(8))
    assert answer == b" ".join(bytes([number]) * MIB for number in range(8))


def test_bidirectional_streaming(client: Client) -> None:
    """Each question is asked after the answer to the one before it."""
    questions = Questions()
    answers = client.chat(iter(questions))
    for number in range(100):
        questions.say(b"%d" % number)
        assert next(answers) == b"re: %d" % number
    questions.say(None)
    with pytest.raises(StopIteration):
        next(answers)
    assert answers.code().name == "OK"


def test_calls_share_a_connection(client: Client) -> None:
    """Fifty wait side by side for one that comes after them, beside streams."""
    waiting = [client.begin("Wait", b"all", metadata=[("x-tag", "all")]) for _ in range(50)]
    until(lambda: client.told("all").count("waits") >= 50, "fifty calls wait")
    assert list(client.many("Many", b"10 10000"))
    client.call("Open", b"all")
    assert [call.result() for call in waiting] == [b"after all"] * 50


def test_more_calls_than_a_connection_has_streams(client: Client) -> None:
    """SETTINGS_MAX_CONCURRENT_STREAMS is 100: others wait in the client, and begin as soon as a response has come."""
    calls = [client.begin("Unary", b"%d" % number) for number in range(500)]
    assert [call.result() for call in calls] == [b"%d" % number for number in range(500)]


# --- metadata ---


def test_metadata_of_both_directions(client: Client) -> None:
    asked = [("x-text", "one"), ("x-text", "two"), ("x-raw-bin", bytes(range(256))), ("x-long", "l" * 4000)]
    _, call = client.call("Unary", b"\x00\x01\xff\x02", metadata=asked)
    assert [tuple(pair) for pair in call.initial_metadata() if pair[0].startswith("x-")] == asked
    trailing = {name: value for name, value in call.trailing_metadata() if name.startswith("x-")}
    assert trailing == {"x-length": "4", "x-sum-bin": b"\x00\x01\xff"}


def test_metadata_comes_before_the_first_message(client: Client) -> None:
    questions = Questions()
    answers = client.chat(iter(questions))
    assert "content-type" not in dict(answers.initial_metadata())  # which is grpcio's own affair
    questions.say(b"hello")
    assert next(answers) == b"re: hello"
    questions.say(None)
    assert list(answers) == []


# --- statuses ---


def test_a_status_without_messages(client: Client) -> None:
    """`Trailers-Only`: the head ends the stream."""
    assert refusal(lambda: client.call("Fail", b"0 5 not here")) == ("NOT_FOUND", "not here")


def test_a_status_after_messages(client: Client) -> None:
    answers = client.many("Fail", "3 9 größer als % erlaubt\n".encode())
    assert [next(answers) for _ in range(3)] == [b"0", b"1", b"2"]
    assert refusal(lambda: next(answers)) == ("FAILED_PRECONDITION", "größer als % erlaubt\n")


def test_every_status(client: Client) -> None:
    import grpc

    for status in grpc.StatusCode:
        code, name = status.value[0], status.name
        if name != "OK":
            assert refusal(partial(client.call, "Fail", b"0 %d why" % code)) == (name, "why"), name


def test_an_unknown_method(client: Client) -> None:
    assert refusal(lambda: client.call("Nothing", b"")) == ("UNIMPLEMENTED", "nothing is named /test.Echo/Nothing")


# --- deadlines and cancelled calls ---


def test_a_deadline_that_the_application_keeps(client: Client) -> None:
    """`grpc-timeout` reaches it. The client's clock begins first, so it may cancel the call before the status comes."""
    code, _ = refusal(lambda: client.call("Sleep", b"", timeout=0.5, metadata=[("x-tag", "deadline")]))
    assert code == "DEADLINE_EXCEEDED"
    until(lambda: client.told("deadline") == ["sleeps", "deadline exceeded"], "the application has noticed")
    assert client.call("Unary", b"after")[0] == b"after"


def test_a_deadline_cancels_the_call(hasty: Client) -> None:
    code, _ = refusal(lambda: hasty.call("Wait", b"never", timeout=0.5, metadata=[("x-tag", "late")]))
    assert code == "DEADLINE_EXCEEDED"
    until(lambda: len(hasty.told("late")) == 2, "the application has noticed")
    assert hasty.told("late")[1] in ("cancelled", "deadline exceeded")


def test_a_cancelled_call_is_a_disconnect(client: Client) -> None:
    answers = client.many("Endless", b"begin", metadata=[("x-tag", "left")])
    assert next(answers) == b"begin"
    answers.cancel()
    until(lambda: client.told("left") == ["left"], "the application is told")
    assert answers.code().name == "CANCELLED"
    assert client.call("Unary", b"after")[0] == b"after"


def test_a_cancelled_call_is_cancelled(hasty: Client) -> None:
    call = hasty.begin("Sleep", b"", metadata=[("x-tag", "cancelled")], timeout=None)
    until(lambda: hasty.told("cancelled") == ["sleeps"], "it runs")
    call.cancel()
    until(lambda: hasty.told("cancelled") == ["sleeps", "cancelled"], "the application is told")
    assert hasty.call("Unary", b"after")[0] == b"after"


def test_many_cancelled_calls_leave_the_connection(client: Client) -> None:
    """Fewer than `http2_reset_limit`, and than there may be at a time: a call counts until it has noticed."""
    for _ in range(3):
        for call in [client.begin("Endless", b"begin") for _ in range(30)]:
            call.cancel()
        assert client.call("Unary", b"after")[0] == b"after"


# --- the end of a worker ---


@pytest.mark.parametrize("count", [1, 2], ids=["one-worker", "two-workers"])
def test_calls_go_on_while_workers_are_replaced(authority: Authority, kind: str, count: int) -> None:
    """By HUP: grpcio ends what GOAWAY lets it end, and opens another connection for the rest. No call fails."""
    over = threading.Event()
    options = {**settings(authority, kind), "workers": count, "graceful_timeout": 30}
    with Server("asgi.rpc:application", **options) as server, ExitStack() as stack, ThreadPoolExecutor(5) as threads:

        def ask(client: Client) -> int:
            asked = 0
            while not over.is_set():
                message = b"%d" % asked
                assert client.call("Unary", message)[0] == message
                asked += 1
            return asked

        clients = [Client(stack.enter_context(connect(server, authority, kind))) for _ in range(4)]
        asking = [threads.submit(ask, client) for client in clients]
        try:
            for _ in range(3):
                before = server.worker_pids()
                server.signal(signal.SIGHUP)
                until(
                    lambda before=before: (
                        len(server.worker_pids()) == count and not set(before) & set(server.worker_pids())
                    ),
                    "other workers",
                )
        finally:
            over.set()
        assert all(each.result(PATIENCE) > 0 for each in asking)


def test_a_stream_outlives_the_drain_of_its_worker(authority: Authority, kind: str) -> None:
    options = {**settings(authority, kind), "graceful_timeout": 30}
    with Server("asgi.rpc:application", **options) as server, connect(server, authority, kind) as channel:
        client, questions = Client(channel), Questions()
        (old,) = server.worker_pids()
        answers = client.chat(iter(questions))
        questions.say(b"before")
        assert next(answers) == b"re: before"
        server.signal(signal.SIGHUP)
        until(lambda: set(server.worker_pids()) - {old}, "another worker")
        assert client.call("Unary", b"beside")[0] == b"beside"
        for number in range(10):
            questions.say(b"%d" % number)
            assert next(answers) == b"re: %d" % number
        assert old in server.worker_pids()
        questions.say(None)
        assert list(answers) == []
        assert answers.code().name == "OK"
        until(lambda: old not in server.worker_pids(), "the old worker has gone")
