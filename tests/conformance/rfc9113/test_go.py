"""Go's client of HTTP/2 (net/http), over TLS, under every worker class. It is built from `goclient`."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.asgi3.play import piece
from tests.conftest import Pool
from tests.harness import Server, each, go, until
from tests.harness.classes import ALL_CLASSES, WSGI
from tests.harness.deadline import PATIENCE, elapse

SOURCE = Path(__file__).parent / "goclient"
STREAMS = 100
"""What `http2_max_concurrent_streams` allows."""

pytestmark = [
    pytest.mark.beyond_reference("its HTTP/2 is a setting of another name"),
    pytest.mark.timeout(600),  # the first one compiles Go's library
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return go.built(SOURCE, tmp_path_factory.mktemp("go"))


def options(pool: Pool) -> dict[str, Any]:
    return {"http_protocols": "h2,h1", "certificate": pool.issued.pair}


def command(program: str, pool: Pool, server: Server, scene: str, *words: str) -> list[str]:
    address = f"https://localhost:{server.port}"
    return [program, "-address", address, "-ca", str(pool.authority.certificate), "-scene", scene, *words]


def play(program: str, pool: Pool, server: Server, scene: str, *words: str) -> Any:
    """The outcome of a scene of `goclient`."""
    words = tuple(command(program, pool, server, scene, *words))
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@ALL_CLASSES
def test_requests_share_a_connection(program: str, pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, **options(pool))
    outcome = play(program, pool, server, "get", "/hello", "/blob?size=1000000", "/fields?status=404", "/hello")
    answers = outcome["Answers"]
    assert [(answer["Status"], answer["Protocol"], answer["Error"]) for answer in answers] == [
        (status, "HTTP/2.0", "") for status in (200, 200, 404, 200)
    ]
    assert [len(answer["Body"]) for answer in answers] == [6, 1_000_000, 4, 6]
    assert outcome["Connections"] == 1


@ALL_CLASSES
def test_a_body_of_unknown_length_with_a_trailer(program: str, pool: Pool, worker_class: str) -> None:
    """1.6 MB in a hundred pieces: it goes to disk, or is read as it comes."""
    server = pool.get(worker_class=worker_class, **options(pool))
    (answer,) = play(program, pool, server, "post", "/body")["Answers"]
    assert (answer["Status"], answer["Error"]) == (200, "")
    body = b"0123456789abcdef" * 1024 * 100
    told = json.loads(answer["Body"])
    assert (told["length"], told["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())


@pytest.mark.parametrize("worker_class", each(*WSGI))
def test_103_comes_before_the_response(program: str, pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, **options(pool))
    (answer,) = play(program, pool, server, "get", "/hints?count=2")["Answers"]
    assert [interim["Status"] for interim in answer["Interims"]] == [103, 103]
    assert answer["Interims"][1]["Header"]["Link"] == ["</1.css>; rel=preload"]
    assert (answer["Status"], answer["Body"]) == (200, "body")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_trailers_and_103_of_asgi(program: str, pool: Pool, loop: str) -> None:
    server = pool.get("asgi.play:application", worker_class="asgi", asgi_loop=loop, **options(pool))
    start = {"type": "http.response.start", "status": 200, "headers": [], "trailers": True}
    steps = [
        ("send", {"type": "http.response.early_hint", "links": [b"</a.css>; rel=preload"]}),
        ("send", start),
        ("send", piece(b"ok")),
        ("send", {"type": "http.response.trailers", "headers": [(b"x-sum", b"1"), (b"x-sum", b"2")]}),
    ]
    (answer,) = play(program, pool, server, "get", f"/play {steps!a}")["Answers"]
    assert [(interim["Status"], interim["Header"]) for interim in answer["Interims"]] == [
        (103, {"Link": ["</a.css>; rel=preload"]})
    ]
    assert (answer["Status"], answer["Body"], answer["Error"]) == (200, "ok", "")
    assert answer["Trailer"] == {"X-Sum": ["1", "2"]}


@ALL_CLASSES
def test_cancelled_requests_leave_the_connection(program: str, pool: Pool, worker_class: str) -> None:
    """Ten responses one after another, each cancelled (RST_STREAM) within its body."""
    server = pool.get(worker_class=worker_class, **options(pool))
    outcome = play(program, pool, server, "cancel", "/stream?count=200&size=65536", "/hello")
    assert outcome["Failures"] is None
    assert [(answer["Status"], answer["Body"]) for answer in outcome["Answers"]] == [(200, "Hello\n")]
    assert outcome["Connections"] == 1


@ALL_CLASSES
def test_window_updates_of_a_client_that_reads_little_at_a_time_are_no_flood(
    program: str, pool: Pool, worker_class: str
) -> None:
    server = pool.get(worker_class=worker_class, **options(pool))
    outcome = play(program, pool, server, "slowly", *["/stream?count=200&size=65536"] * 3)
    assert outcome["Failures"] is None
    assert [(answer["Status"], answer["Body"]) for answer in outcome["Answers"]] == [(200, "13107200")] * 3
    assert outcome["Connections"] == 1


@ALL_CLASSES
def test_a_hundred_streams_at_once(program: str, pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, **options(pool))
    outcome = play(program, pool, server, "many", *(f"/blob?size={1000 * nr}" for nr in range(1, STREAMS + 1)))
    answers = outcome["Answers"]
    assert [(answer["Status"], len(answer["Body"]), answer["Error"]) for answer in answers] == [
        (200, 1000 * nr, "") for nr in range(1, STREAMS + 1)
    ]
    assert outcome["Connections"] == 1


@ALL_CLASSES
def test_more_streams_than_the_server_allows(program: str, pool: Pool, worker_class: str) -> None:
    """Go keeps to SETTINGS_MAX_CONCURRENT_STREAMS: it opens another connection, and no request is refused."""
    server = pool.get(worker_class=worker_class, **options(pool))
    outcome = play(program, pool, server, "many", *["/sleep?s=0.01"] * 3 * STREAMS)
    assert [(answer["Status"], answer["Error"]) for answer in outcome["Answers"]] == [(200, "")] * 3 * STREAMS


@ALL_CLASSES
def test_no_request_fails_while_workers_are_replaced(program: str, pool: Pool, worker_class: str) -> None:
    """By HUP: GOAWAY says which streams are still answered, and Go sends the others again, on another connection."""
    more = {**options(pool), "workers": 2, "graceful_timeout": 30}
    with Server(worker_class=worker_class, **more) as server:
        words = command(program, pool, server, "reloads", "/sleep?s=0.005", "/body")
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
            for _ in range(3):
                before = set(server.worker_pids())
                elapse(0.3)  # requests are under way
                server.signal(signal.SIGHUP)
                until(lambda before=before: is_replaced(server, before), "other workers")
            out, _ = asking.communicate(timeout=2 * PATIENCE)
    outcome = json.loads(out)
    assert outcome["Failures"] is None, outcome["Failures"][:10]
    assert outcome["Answered"] > 0
    assert outcome["Connections"] > 1


def is_replaced(server: Server, before: set[int]) -> bool:
    now = server.worker_pids()
    return len(now) == server.workers and before.isdisjoint(now)
