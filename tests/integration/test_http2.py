"""HTTP/2 (RFC 9113) under every worker class: requests, bodies, windows, the end of a worker, logs and metrics."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conformance.asgi3.play import ANSWER, RECEIVE, Stage
from tests.conftest import Pool
from tests.harness import ALL_CLASSES, Server, each, proc, until
from tests.harness.certificates import Authority
from tests.harness.chromium import Chromium
from tests.harness.deadline import elapse
from tests.harness.http2 import CANCEL, ENHANCE_YOUR_CALM, Answer, Http2Wire
from tests.harness.scrape import scrape, value
from tests.harness.server import free_port

pytestmark = pytest.mark.beyond_reference("its HTTP/2 is a setting of another name")

HTTP2 = {"http_protocols": "h2,h1", "http2_cleartext": "prior-knowledge"}
MIB = 1 << 20
NO_ERROR = 0
FAMILIES = pytest.mark.parametrize("worker_class", each("gthread", "gevent", "asgi", "tornado", "aiohttp"))
STREAMS = 50


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def serving(pool: Pool, worker_class: str, app: str = "gallery:application", **more: Any) -> Server:
    return pool.get(app, worker_class=worker_class, **HTTP2, **more)


def connect(server: Server) -> Http2Wire:
    return Http2Wire(server.connect())


def is_received(answer: Answer, body: bytes) -> None:
    assert answer.status == 200, answer
    told = json.loads(answer.body)
    assert (told["length"], told["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())


# --- programs that others have written ---


@ALL_CLASSES
def test_curl(pool: Pool, worker_class: str) -> None:
    server = serving(pool, worker_class)
    url = f"http://127.0.0.1:{server.port}/body"
    assert curl("--http2-prior-knowledge", "-X", "POST", "--data", "abc", url)["length"] == 3


@ALL_CLASSES
def test_curl_over_tls(pool: Pool, authority: Authority, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, http_protocols="h2,h1", certificate=authority.issue("server").pair)
    url = f"https://localhost:{server.port}/body"
    assert curl("--cacert", str(authority.certificate), "-X", "POST", "--data", "abc", url)["length"] == 3


def curl(*words: str) -> dict[str, Any]:
    """The JSON that is answered."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    command = ["curl", "-sS", "--max-time", "60", "-w", "\n%{http_version}", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    body, _, version = done.stdout.rpartition("\n")
    assert version == "2"
    told: dict[str, Any] = json.loads(body)
    return told


@FAMILIES
def test_httpx(pool: Pool, authority: Authority, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, http_protocols="h2,h1", certificate=authority.issue("server").pair)
    trust = ssl.create_default_context(cafile=str(authority.certificate))
    with httpx.Client(
        http2=True, verify=trust, base_url=f"https://localhost:{server.port}", trust_env=False
    ) as session:
        answers = [session.post("/body", content=b"x" * length) for length in (0, 1, 100_000)]
    assert [answer.http_version for answer in answers] == ["HTTP/2"] * 3
    assert [answer.json()["length"] for answer in answers] == [0, 1, 100_000]


def test_event_sources_of_a_browser(authority: Authority) -> None:
    """Over HTTP/1.1 a browser opens six connections to a host, and the seventh EventSource waits for ever."""
    count = 32
    issued = authority.issue("server")
    options: dict[str, Any] = {"http_protocols": "h2,h1", "certificate": issued.pair}
    with (
        Server("event_source:application", worker_class="asgi", **options) as server,
        Chromium("--ignore-certificate-errors") as browser,
    ):
        page = browser.open(f"https://localhost:{server.port}/")
        page.run("window.many = []; window.seen = new Set(); undefined")
        page.run(
            f"for (let nr = 0; nr < {count}; nr++) {{ const source = new EventSource('/events');"
            " source.onmessage = () => window.seen.add(nr); window.many.push(source); }"
        )
        until(lambda: page.run("window.seen.size") == count, f"{count} sources have events")


# --- requests and responses ---


@ALL_CLASSES
def test_streams_are_served_side_by_side(pool: Pool, worker_class: str) -> None:
    with connect(serving(pool, worker_class)) as wire:
        streams = [wire.begin("GET", f"/blob?size={nr * 1000}") for nr in range(STREAMS)]
        answers = [wire.answer(stream) for stream in streams]
    assert [(answer.status, len(answer.body)) for answer in answers] == [(200, nr * 1000) for nr in range(STREAMS)]


@ALL_CLASSES
@pytest.mark.parametrize("length", [3_000_000, pytest.param(30_000_000, marks=pytest.mark.nightly)])
def test_uploads(pool: Pool, worker_class: str, length: int) -> None:
    """Bodies that go to disk, three at once, and one that stays in memory beside them."""
    bodies = [bytes([nr]) * length for nr in range(2)] + [b"short"]
    with connect(serving(pool, worker_class)) as wire:
        streams = [wire.begin("POST", "/body", end=False) for _ in bodies]
        for stream, body in zip(streams, bodies, strict=True):
            wire.upload(stream, body)
        for stream, body in zip(streams, bodies, strict=True):
            is_received(wire.answer(stream), body)


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "eventlet"))
def test_uploads_without_buffering(pool: Pool, worker_class: str) -> None:
    body = b"y" * 3_000_000
    with connect(serving(pool, worker_class, no_request_buffering=True)) as wire:
        is_received(wire.post("/body", body), body)
        answer = wire.post("/upload?how=all", body)
        assert json.loads(answer.body)["length"] == len(body)


@ALL_CLASSES
def test_heads_without_bodies(pool: Pool, worker_class: str) -> None:
    with connect(serving(pool, worker_class)) as wire:
        head = wire.answer(wire.begin("HEAD", "/blob?size=1000"))
        assert (head.status, head.fields["content-length"], head.body) == (200, "1000", b"")
        for status in (204, 304):
            answer = wire.get(f"/fields?status={status}&raw=1")
            assert (answer.status, answer.body, answer.ended) == (status, b"", True)
        assert wire.get("/hello").body == b"Hello\n"


@ALL_CLASSES
def test_files(pool: Pool, worker_class: str) -> None:
    """file_wrapper, pathsend, FileResponse."""
    with connect(serving(pool, worker_class)) as wire:
        answer = wire.get("/files?kind=disk&size=3000000&raw=1")
    assert answer.status == 200
    if worker_class in ("sync", "gthread", "gevent", "eventlet"):
        assert answer.body == (bytes(range(256)) * (3_000_000 // 256 + 1))[:3_000_000]
    else:
        assert b"async def files" in answer.body


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "eventlet"))
def test_early_hints(pool: Pool, worker_class: str) -> None:
    with connect(serving(pool, worker_class)) as wire:
        answer = wire.get("/hints?count=2")
    assert [dict(interim)[":status"] for interim in answer.interims] == ["103", "103"]
    assert ("link", "</1.css>; rel=preload") in answer.interims[1]
    assert (answer.status, answer.body) == (200, b"body")


@ALL_CLASSES
def test_expect_100_continue(pool: Pool, worker_class: str) -> None:
    body = b"z" * 100_000
    with connect(serving(pool, worker_class)) as wire:
        stream = wire.begin("POST", "/body", [("expect", "100-continue")], end=False)
        answer = wire.answers[stream]
        wire.read_until(lambda: bool(answer.interims), "100 comes")
        assert dict(answer.interims[0]) == {":status": "100"}
        wire.upload(stream, body)
        is_received(wire.answer(stream), body)


def test_versions_that_applications_see(pool: Pool) -> None:
    with connect(serving(pool, "gthread")) as wire:
        environ = json.loads(wire.get("/echo?a=b", ("cookie", "a=1"), ("cookie", "b=2")).body)
    told = {name: environ[name][1] for name in ("SERVER_PROTOCOL", "HTTP_HOST", "QUERY_STRING", "HTTP_COOKIE")}
    assert told == {"SERVER_PROTOCOL": "HTTP/2.0", "HTTP_HOST": "t", "QUERY_STRING": "a=b", "HTTP_COOKIE": "a=1; b=2"}
    with connect(serving(pool, "asgi", "asgi.play:application")) as wire:
        scope = wire.get("/scope").body.decode()
    assert "'http_version': '2'" in scope


def test_trailers(pool: Pool) -> None:
    start = {"type": "http.response.start", "status": 200, "headers": [], "trailers": True}
    body = {"type": "http.response.body", "body": b"ok"}
    trailers = {"type": "http.response.trailers", "headers": [(b"grpc-status", b"0")]}
    with connect(serving(pool, "asgi", "asgi.play:application")) as wire:
        steps = [("send", start), ("send", body), ("send", trailers)]
        answer = wire.get("/play", ("x-do", ascii(steps)), ("te", "trailers"))
    assert (answer.status, answer.body, answer.trailers) == (200, b"ok", {"grpc-status": "0"})


# --- clients that do not read, and applications that do not ---


@ALL_CLASSES
def test_a_client_that_does_not_read_one_response(pool: Pool, worker_class: str) -> None:
    """`write_timeout` ends that stream; the connection and its other requests go on."""
    server = serving(pool, worker_class, write_timeout=1)
    with connect(server) as wire:
        stuck = wire.begin("GET", "/stream?count=160&size=65536")
        wire.unread.add(stuck)
        answer = wire.answers[stuck]

        def is_cut_off() -> bool:
            assert wire.get("/blob?size=100").status == 200
            wire.read_for(0.2)
            return answer.reset is not None

        until(is_cut_off, "the stream is reset")
        assert len(answer.body) <= 65_535
        assert wire.get("/blob?size=1000000").status == 200


def test_an_application_that_reads_slowly_keeps_its_client_back(pool: Pool) -> None:
    """No more is taken than the stream's window has grown to; memory stays what it was."""
    server = serving(pool, "asgi", "asgi.play:application", http2_max_window=MIB)
    stage, body, sent = Stage(server), b"w" * (32 * MIB), 0
    stage.alive()
    before = proc.private_bytes(server.worker_pid())
    with connect(server) as wire:
        steps = ascii([RECEIVE, stage.gate, ("body",), *ANSWER])
        stream = wire.begin("POST", "/play", [("x-do", steps), ("x-tag", stage.tag)], end=False)
        while room := wire.room(stream, 0.3):
            sent += wire.upload(stream, body[sent : sent + room], end=False)
        assert sent <= 2 * MIB + 65_536, sent
        assert proc.private_bytes(server.worker_pid()) - before < 8 * MIB
        stage.go()
        wire.upload(stream, body[sent:])
        assert wire.answer(stream).body == b"done"
    first, rest = stage.told(2)
    assert len(first["body"]) + rest["length"] == len(body)


@ALL_CLASSES
def test_bodies_that_are_refused_end_no_connection(pool: Pool, worker_class: str) -> None:
    """Too long, as its length says or as it turns out (413), and too slow (408)."""
    server = serving(pool, worker_class, limit_request_body=1000, body_timeout=1)
    with connect(server) as wire:
        assert wire.post("/body", b"x" * 5000).status == 413
        stream = wire.begin("POST", "/body", end=False)
        wire.upload(stream, b"x" * 5000)
        assert wire.answer(stream).status == 413
        stream = wire.begin("POST", "/body", end=False)
        wire.upload(stream, b"begun", end=False)
        assert wire.answer(stream).status == 408
        assert wire.get("/hello").status == 200


def test_a_reset_cancels_one_request(pool: Pool) -> None:
    server = serving(pool, "asgi", "asgi.play:application", asgi_disconnect_grace_period=0)
    stage = Stage(server)
    with connect(server) as wire:
        steps = ascii([RECEIVE, ("say", "waits"), ("endless",)])
        stream = wire.begin("GET", "/play", [("x-do", steps), ("x-tag", stage.tag)])
        stage.told(2)
        other = wire.begin("GET", "/play", [("x-do", ascii([stage.gate, *ANSWER])), ("x-tag", stage.tag)])
        wire.client.reset_stream(stream, CANCEL)
        wire.flush()
        assert stage.told(4)[2:] == ["cancelled", "cleaned up"]
        stage.go()
        assert wire.answer(other).body == b"done"


# --- the end of workers and of connections ---


@FAMILIES
def test_an_idle_connection_is_closed(pool: Pool, worker_class: str) -> None:
    """By `http2_idle_timeout`, and not while a request is under way."""
    with connect(serving(pool, worker_class, http2_idle_timeout=1)) as wire:
        assert wire.get("/sleep?s=1.5").status == 200
        assert wire.end() == NO_ERROR


@ALL_CLASSES
@pytest.mark.parametrize("signum", [signal.SIGHUP, signal.SIGTERM], ids=["hup", "term"])
def test_streams_that_are_under_way_are_answered(worker_class: str, signum: signal.Signals) -> None:
    count = 50 if worker_class in ("gevent", "eventlet", "asgi", "tornado", "aiohttp") else 10
    seconds = 0.5 if count == 50 else 0.1
    options: dict[str, Any] = {**HTTP2, "graceful_timeout": 30}
    with Server(worker_class=worker_class, **options) as server, connect(server) as wire:
        wire.get("/hello")
        streams = [wire.begin("GET", f"/sleep?s={seconds}") for _ in range(count)]
        elapse(0.1)  # all are with the server then
        server.signal(signum)
        answers = [wire.answer(stream) for stream in streams]
        assert [answer.status for answer in answers] == [200] * count
        assert wire.end() == NO_ERROR
        if signum == signal.SIGTERM:
            assert server.wait_exit() == 0
        else:
            until(lambda: len(server.worker_pids()) == 1, "the old worker has gone")
            with connect(server) as again:
                assert again.get("/hello").status == 200


@ALL_CLASSES
def test_max_requests(worker_class: str) -> None:
    """The worker says GOAWAY, answers what it has, and its successor serves."""
    with Server(worker_class=worker_class, max_requests=10, **HTTP2) as server:
        old = server.worker_pid()
        answered = 0
        with connect(server) as wire:
            while not wire.is_over and wire.goaway is None and answered < 100:
                answered += wire.get("/hello").status == 200
        assert answered >= 10
        until(lambda: server.worker_pids() not in ([], [old]) and old not in server.worker_pids(), "another worker")
        with connect(server) as wire:
            assert wire.get("/hello").status == 200


@FAMILIES
def test_connection_max_requests(pool: Pool, worker_class: str) -> None:
    server = serving(pool, worker_class, connection_max_requests=5)
    with connect(server) as wire:
        streams = [wire.begin("GET", "/hello") for _ in range(5)]
        assert [wire.answer(stream).status for stream in streams] == [200] * 5
        assert wire.end() == NO_ERROR


# --- resets and idleness ---


@ALL_CLASSES
def test_rapid_reset(pool: Pool, worker_class: str) -> None:
    """CVE-2023-44487. The connection ends; another one is served all the while."""
    server = serving(pool, worker_class)
    worker = server.worker_pids()
    with connect(server) as other, connect(server) as wire:
        for _ in range(500):
            stream = wire.client.get_next_available_stream_id()
            head = [(":method", "GET"), (":scheme", "http"), (":authority", "t"), (":path", "/sleep?s=0.05")]
            wire.client.send_headers(stream, head, end_stream=True)
            wire.client.reset_stream(stream, CANCEL)
        wire.flush()
        assert other.get("/hello").status == 200
        assert wire.end() == ENHANCE_YOUR_CALM
        assert other.get("/hello").status == 200
    assert server.worker_pids() == worker
    assert server.get("/hello").status == 200


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent"))
def test_idle_streams_wake_nobody(worker_class: str) -> None:
    """A hundred requests whose bodies do not come, on one connection. An event loop is watched while it runs calls."""
    with Server(worker_class=worker_class, body_timeout=600, body_min_rate=0, **HTTP2) as server:
        pid = server.worker_pid()
        with connect(server) as wire:
            for _ in range(100):
                wire.begin("POST", "/body", end=False)
            wire.read_for(0.3)
            until(lambda: proc.is_quiet(pid, 1.0), "nothing wakes the worker for a second", within=20)
            assert server.get("/hello").status == 200


# --- what is told ---


@ALL_CLASSES
def test_access_log_and_metrics(worker_class: str) -> None:
    admin = ("127.0.0.1", free_port())
    options: dict[str, Any] = {**HTTP2, "access_logfile": "-", "admin_bind": f"127.0.0.1:{admin[1]}"}
    with Server(worker_class=worker_class, **options) as server:
        with connect(server) as wire:
            wire.get("/hello?told")
            stream = wire.begin("POST", "/body", end=False)
            wire.client.reset_stream(stream, CANCEL)
            wire.flush()
            wire.get("/hello")
        until(lambda: re.search(r'"GET /hello\?told HTTP/2\.0" 200 6', server.out.text), "the line is there")
        samples = scrape(admin)
    assert value(samples, "http2_connections_total") == 1
    assert value(samples, "http2_streams_total") == 3
    assert value(samples, "http2_resets_total") == 1
    assert value(samples, "http2_violations_total") == 0


# --- load ---


@ALL_CLASSES
@pytest.mark.parametrize("transport", ["cleartext", "tls"])
@pytest.mark.nightly
def test_h2load(pool: Pool, authority: Authority, worker_class: str, transport: str, tmp_path: Path) -> None:
    """Two thousand uploads in a hundred streams of four connections; nghttp2's client fails on any error of frames."""
    if shutil.which("h2load") is None:
        pytest.skip("h2load is not installed")
    (tmp_path / "body").write_bytes(b"x" * 10_000)
    if transport == "tls":
        pair = authority.issue("server").pair
        server = pool.get(worker_class=worker_class, http_protocols="h2,h1", certificate=pair)
    else:
        server = serving(pool, worker_class)
    url = f"{'https' if transport == 'tls' else 'http'}://127.0.0.1:{server.port}/body"
    command = ["h2load", "-n", "2000", "-c", "4", "-m", "25", "-d", str(tmp_path / "body"), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout" in done.stdout, done.stdout[-2000:]
    assert "status codes: 2000 2xx" in done.stdout


@ALL_CLASSES
@pytest.mark.nightly
def test_reloads_under_load_lose_no_request(worker_class: str) -> None:
    """Connections end by GOAWAY, and clients open others; what was sent before the first GOAWAY came is answered."""
    options: dict[str, Any] = {**HTTP2, "graceful_timeout": 30, "workers": 2}
    over = threading.Event()
    with Server(worker_class=worker_class, **options) as server, ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask_until, server, over) for _ in range(4)]
        try:
            for _ in range(4):
                elapse(0.8)
                server.signal(signal.SIGHUP)
            elapse(0.8)
        finally:
            over.set()
        for each_client in asked:
            answered, connections = each_client.result(60)
            assert answered > 100
            assert connections > 1


def ask_until(server: Server, over: threading.Event) -> tuple[int, int]:
    """Asks in ten streams at once, on a new connection after GOAWAY. Returns the numbers of answers and connections."""
    answered, connections = 0, 0
    while not over.is_set():
        connections += 1
        with connect(server) as wire:
            while wire.goaway is None and not over.is_set():
                streams = [wire.begin("GET", "/sleep?s=0.005") for _ in range(10)]
                assert [wire.answer(stream).status for stream in streams] == [200] * 10
                answered += 10
    return answered, connections
