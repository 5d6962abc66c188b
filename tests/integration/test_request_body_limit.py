"""`limit_request_body`: a body that is too long is refused before it is read, and the client learns why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server
from tests.harness.core import Serving, serving
from tests.harness.deadline import until
from tests.harness.wire import Wire, chunked, request

LIMIT = 1000
REQUESTS, REFUSED = 17, 18


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = environ["wsgi.input"].read()
    start_response("200 OK", [])
    return [str(len(body)).encode()]


@pytest.fixture(params=[{}, {"body_buffer_size": 100}], ids=["in memory", "on disk"])
def core(request: pytest.FixtureRequest) -> Iterator[Serving]:
    with serving(application, limit_request_body=LIMIT, **request.param) as core:
        yield core


def refused(wire: Wire, size: int) -> None:
    reply = wire.reply()
    assert (reply.status, reply.reason, reply.interims) == (413, "Content Too Large", [])
    assert reply.closes
    assert f"Request body is too large ({size} &gt; {LIMIT})" in reply.text
    wire.closed()


def head(*fields: str) -> bytes:
    lines = ["POST / HTTP/1.1", "Host: t", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


@pytest.mark.parametrize("size", [0, 1, LIMIT - 1, LIMIT])
def test_what_fits_is_served(core: Serving, size: int) -> None:
    with core.wire() as wire:
        for _ in range(2):
            assert wire.ask("POST", "/", [], b"x" * size).body == str(size).encode()
            wire.send(request("POST", "/", [("Transfer-Encoding", "chunked")]))
            pieces = [piece for piece in (b"x" * (size // 2), b"x" * (size - size // 2)) if piece]
            assert wire.send(chunked(pieces)).reply().body == str(size).encode()


@pytest.mark.parametrize("size", [LIMIT + 1, 1 << 40, (1 << 64) - 1])
def test_a_length_is_believed_and_refused_at_once(core: Serving, size: int) -> None:
    with core.wire() as wire:
        refused(wire.send(head(f"Content-Length: {size}")), size)
    assert (core.word(REQUESTS), core.word(REFUSED)) == (0, 1)


def test_who_asks_first_is_not_told_to_go_on(core: Serving) -> None:
    with core.wire() as wire:
        refused(wire.send(head(f"Content-Length: {LIMIT + 1}", "Expect: 100-continue")), LIMIT + 1)
    with core.wire() as wire:
        wire.send(head(f"Content-Length: {LIMIT}", "Expect: 100-continue")).interim()
        assert wire.send(b"x" * LIMIT).reply().status == 200


@pytest.mark.parametrize(
    "coded", [b"3e9\r\n", b"3e8\r\n" + b"x" * 1000 + b"\r\n1\r\n", b"1\r\nx\r\n" * 1000 + b"1\r\n"]
)
def test_chunks_are_refused_when_they_lead_over_the_limit(core: Serving, coded: bytes) -> None:
    with core.wire() as wire:
        refused(wire.send(head("Transfer-Encoding: chunked"), coded), LIMIT + 1)
    assert core.word(REQUESTS) == 0


def test_a_chunk_as_long_as_numbers_go_is_refused(core: Serving) -> None:
    with core.wire() as wire:
        wire.send(head("Transfer-Encoding: chunked"), b"1\r\nx\r\nffffffffffffffff\r\n")
        assert wire.reply().status == 413
        wire.closed()


def test_trailers_and_extensions_are_no_body(core: Serving) -> None:
    with core.wire() as wire:
        wire.send(head("Transfer-Encoding: chunked"))
        wire.send(b"3e8;name=value\r\n" + b"x" * 1000 + b"\r\n0\r\nX-After: " + b"y" * 500 + b"\r\n\r\n")
        assert wire.reply().body == b"1000"


def test_a_client_that_sends_all_of_it_can_read_the_answer(core: Serving) -> None:
    with core.wire() as wire:
        wire.send(head(f"Content-Length: {4 << 20}"), b"x" * (4 << 20))
        refused(wire, 4 << 20)


def test_what_follows_is_not_served(core: Serving) -> None:
    """The body would be the next request: smuggled, if it were looked at."""
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n"
    with core.wire() as wire:
        refused(wire.send(head(f"Content-Length: {LIMIT + 1}"), smuggled), LIMIT + 1)
    assert core.word(REQUESTS) == 0


def test_a_pipelined_one_is_refused_after_the_answers_before_it(core: Serving) -> None:
    with core.wire() as wire:
        wire.send(request("POST", "/", [], b"abc"), head(f"Content-Length: {LIMIT + 1}"))
        assert wire.reply().body == b"3"
        refused(wire, LIMIT + 1)


def test_it_is_logged_like_other_refusals(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = {"access_log": str(log), "access_log_format": "%(r)s %(s)s"}
    with serving(application, limit_request_body=LIMIT, **options) as core, core.wire() as wire:
        refused(wire.send(head("Content-Length: 2000")), 2000)
        until(lambda: log.read_text() == "POST / HTTP/1.1 413\n", "the line")
        with core.wire() as other:
            other.get("/")
        until(
            lambda: core.notices == ["Invalid request from ip=127.0.0.1: Request body is too large (2000 > 1000)"],
            "the notice",
        )


def test_without_a_limit_there_is_none() -> None:
    with serving(application) as core, core.wire() as wire:
        assert wire.ask("POST", "/", [], b"x" * (3 << 20)).body == str(3 << 20).encode()


class TestUploadDirectory:
    def test_bodies_that_are_too_long_for_memory_go_there(self, tmp_path: Path) -> None:
        seen: list[str] = []

        def where(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            seen.append(str(Path(f"/proc/self/fd/{environ['wsgi.input'].fileno()}").readlink()))
            return application(environ, start_response)

        with serving(where, upload_dir=str(tmp_path), body_buffer_size=1000) as core, core.wire() as wire:
            assert wire.ask("POST", "/", [], b"x" * 5000).body == b"5000"
        assert seen
        assert seen[0].startswith(str(tmp_path))
        assert list(tmp_path.iterdir()) == []

    def test_one_that_is_not_there_is_refused_at_boot(self, tmp_path: Path) -> None:
        with (
            pytest.raises(OSError, match=r"tmp_upload_dir: no file can be made in .*/missing: No such file"),
            serving(application, upload_dir=str(tmp_path / "missing")),
        ):
            pass


def test_request_body_limit_is_a_setting() -> None:
    with Server(worker_class="sync", limit_request_body=100) as server:
        assert server.post("/body", b"x" * 100).status == 200
        assert server.post("/body", b"x" * 101).status == 413


def test_what_the_system_says_of_a_body_that_cannot_be_stored_is_for_the_log(tmp_path: Path) -> None:
    """The page is the client's, to whom a directory and its troubles are nothing."""
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    with serving(application, body_buffer_size=100, upload_dir=str(uploads)) as core, core.wire() as wire:
        uploads.rmdir()
        wire.send(request("POST", "/", [], b"x" * 101))
        reply = wire.reply()
        assert (reply.status, reply.reason, reply.closes) == (507, "Insufficient Storage", True)
        assert b"    The request body could not be stored\n" in reply.body
        wire.closed()
        until(lambda: any("No such file or directory" in text for text in core.notices), "the log says why")
