"""Clients of Starlette that leave: streams end, background tasks run, handlers finish, and none of it is an error.

What uvicorn, which Starlette's users come from, does. By default: no setting is given.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Pool
from tests.harness import Server, Wire, until
from tests.harness.frames import handshake
from tests.harness.needs import needs
from tests.harness.wire import request

BEHIND = ["nothing", "base", "gzip", "both"]
ENDS = pytest.mark.parametrize("end", ["close", "reset"])

pytestmark = pytest.mark.beyond_reference("of the reference server's class only its defects are noted")


@pytest.fixture(scope="module")
def server(pool: Pool) -> Server:
    needs("starlette")
    return pool.get("streaming_app:application", chdir=Path(__file__).parent / "apps", worker_class="asgi")


@pytest.fixture
def quiet(server: Server) -> Iterator[Server]:
    """Its log has no error of this test."""
    before = len(server.log.text)
    yield server
    log = server.log.text[before:]
    assert "[ERROR]" not in log, log
    assert "Traceback" not in log, log


@pytest.fixture
def tag() -> str:
    return uuid.uuid4().hex


def notes(server: Server, tag: str) -> list[str]:
    told: list[str] = server.get(f"/notes?tag={tag}").json()
    return told


def leave(wire: Wire, end: str) -> None:
    getattr(wire, end)()


@ENDS
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("kind", ["silent", "talking"])
def test_a_stream_whose_reader_leaves_ends_and_its_background_task_runs(
    quiet: Server, tag: str, kind: str, behind: str, end: str
) -> None:
    wire = quiet.connect()
    wire.send(request("GET", f"/{behind}/stream/{kind}?tag={tag}"))
    assert wire.sock.recv(1000)
    leave(wire, end)
    until(lambda: notes(quiet, tag) == ["the stream is closed", "background"], "it ends, and its generator before")


@ENDS
@pytest.mark.parametrize("behind", BEHIND)
def test_a_stream_that_sends_in_each_turn_of_the_loop_is_closed_before_its_background_task(
    quiet: Server, tag: str, behind: str, end: str
) -> None:
    """Of the many pieces that it sends before it is cancelled none may be what it is cancelled in.

    BaseHTTPMiddleware has a queue that it may wait in. Then the collector closes the generator, as under uvicorn.
    """
    for number in range(3):
        each = f"{tag}{number}"
        wire = quiet.connect()
        wire.send(request("GET", f"/{behind}/stream/hasty?tag={each}"))
        assert wire.sock.recv(1000)
        leave(wire, end)
        if behind in ("base", "both"):
            until(lambda each=each: "background" in notes(quiet, each), "its background task runs")
        else:
            until(lambda each=each: notes(quiet, each) == ["the stream is closed", "background"], "it ends")


# A file that begins when its client has left ends at once; BaseHTTPMiddleware then raises "No response returned".
HANDLERS = [("pay", behind) for behind in BEHIND] + [("file", "nothing"), ("file", "gzip")]


@ENDS
@pytest.mark.parametrize(("target", "behind"), HANDLERS)
def test_a_handler_whose_client_has_left_finishes(quiet: Server, tag: str, target: str, behind: str, end: str) -> None:
    wire = quiet.connect()
    wire.send(request("POST" if target == "pay" else "GET", f"/{behind}/{target}?tag={tag}"))
    until(lambda: notes(quiet, tag) == ["begun"], "it has begun")
    leave(wire, end)
    quiet.get(f"/go?tag={tag}")
    until(lambda: notes(quiet, tag)[-1] == "background", "it finishes")


@ENDS
@pytest.mark.parametrize("behind", BEHIND)
def test_a_socket_that_only_sends_is_closed(quiet: Server, tag: str, behind: str, end: str) -> None:
    wire = quiet.connect()
    wire.send(handshake(f"/{behind}/push?tag={tag}"))
    assert wire.sock.recv(1000).startswith(b"HTTP/1.1 101")
    leave(wire, end)
    until(lambda: notes(quiet, tag) == ["the socket is closed"], "it is told")


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("wait", ["", "&wait=1"], ids=["first step", "later"])
def test_an_exception_has_its_traceback_and_its_request(server: Server, tag: str, behind: str, wait: str) -> None:
    """Starlette answers 500 itself and then lets the exception out, so that it comes after the response."""
    assert server.get(f"/{behind}/fails?marker={tag}{wait}").status == 500
    server.log.wait(f"RuntimeError: {tag}")
    log = server.log.text
    record = log[log.rindex("[ERROR]", 0, log.index(tag)) : log.index(f"RuntimeError: {tag}")]
    assert record.startswith(f"[ERROR] Error handling request GET /{behind}/fails (after its response was sent)")
    assert 'streaming_app.py", line ' in record
    assert "in fails" in record
    assert log.count(f"[ERROR] Error handling request GET /{behind}/fails") >= 1
