"""The access log: gunicorn's format and atoms, and lines nobody can forge."""

from __future__ import annotations

import re

import pytest

from tests.conftest import Pool
from tests.harness import REFERENCE, Server
from tests.harness.wire import request

CLASSES = pytest.mark.parametrize("worker_class", ["sync", "gthread"])
ATOMS = [
    "%(h)s",
    "%(l)s",
    "%(u)s",
    "%(r)s",
    "%(m)s",
    "%(U)s",
    "%(q)s",
    "%(H)s",
    "%(s)s",
    "%(B)s",
    "%(b)s",
    "%(f)s",
    "%(a)s",
    "%(T)s",
    "%(M)s",
    "%(D)s",
    "%(L)s",
    "%(p)s",
    "%({x-in}i)s",
    "%({x-out}o)s",
    "%({missing}i)s",
    "%({server_protocol}e)s",
    "%%",
]


def line(server: Server, mark: str) -> str:
    (match,) = server.out.wait(rf".*{mark}.*")
    return match[0]


@CLASSES
def test_the_default_format(pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, access_logfile="-")
    mark = f"default-{worker_class}"
    with server.connect() as wire:
        wire.get(f"/hello?{mark}", ("User-Agent", "agent/1"), ("Referer", "http://r/"))
    assert re.fullmatch(
        r"127\.0\.0\.1 - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "
        rf'"GET /hello\?{mark} HTTP/1\.1" 200 6 "http://r/" "agent/1"',
        line(server, mark),
    ), line(server, mark)


@CLASSES
def test_every_atom(pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, access_logfile="-", access_logformat="|".join(ATOMS))
    mark = f"atoms-{worker_class}"
    with server.connect() as wire:
        fields = [
            ("X-In", "in value"),
            ("User-Agent", "agent/1"),
            ("Referer", "http://r/"),
            ("Authorization", "Basic dXNlcjpwYXNz"),
        ]
        wire.ask("GET", f"/fields?X-Out=out&{mark}=1", fields)
    got = dict(zip(ATOMS, line(server, mark).split("|"), strict=True))
    target = f"/fields?X-Out=out&{mark}=1"
    expected = {
        "%(h)s": "127.0.0.1",
        "%(l)s": "-",
        "%(u)s": "user",
        "%(r)s": f"GET {target} HTTP/1.1",
        "%(m)s": "GET",
        "%(U)s": "/fields",
        "%(q)s": f"X-Out=out&{mark}=1",
        "%(H)s": "HTTP/1.1",
        "%(s)s": "200",
        "%(B)s": "4",
        "%(b)s": "4",
        "%(f)s": "http://r/",
        "%(a)s": "agent/1",
        "%(T)s": "0",
        "%({x-in}i)s": "in value",
        "%({x-out}o)s": "out",
        "%({missing}i)s": "-",
        "%({server_protocol}e)s": "HTTP/1.1",
        "%(p)s": f"<{server.worker_pid()}>",
        "%%": "%",
    }
    assert {atom: got[atom] for atom in expected} == expected
    assert got["%(M)s"].isdigit()
    assert got["%(D)s"].isdigit()
    assert re.fullmatch(r"\d+\.\d{6}", got["%(L)s"])


@CLASSES
def test_what_clients_send_cannot_forge_a_line(pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, access_logfile="-")
    mark = f"forged-{worker_class}"
    with server.connect() as wire:
        wire.get(f"/hello?{mark}", ("User-Agent", 'a" 200 1 "x'), ("Referer", "\u00e9\\"))
    logged = line(server, mark)
    assert '"a" 200' not in logged
    assert r"\"" in logged or r"\x22" in logged


@pytest.mark.beyond_reference("only the quote is escaped")
def test_bytes_that_are_not_ascii_do_not_reach_the_log(pool: Pool) -> None:
    server = pool.get(worker_class="gthread", access_logfile="-")
    with server.connect() as wire:
        wire.get("/hello?wide-bytes", ("User-Agent", "caf\u00e9"), ("Referer", "back\\slash"))
    logged = line(server, "wide-bytes")
    assert logged.isascii()


@pytest.mark.parametrize("target", ["/stream?count=3&size=10", "/writes?count=1", "/files?kind=disk&size=1000"])
def test_sizes_are_those_of_the_body(pool: Pool, target: str) -> None:
    server = pool.get(worker_class="gthread", access_logfile="-")
    mark = f"size-{abs(hash(target))}"
    size = len(server.get(f"{target}&{mark}=1").body)
    assert f'" 200 {size} ' in line(server, mark)


def test_a_head_request_and_an_error(pool: Pool) -> None:
    server = pool.get(worker_class="gthread", access_logfile="-")
    with server.connect() as wire:
        wire.send(request("HEAD", "/hello?head-request"))
        assert wire.reply("HEAD").status == 200
    assert re.search(r'"HEAD /hello\?head-request HTTP/1\.1" 200 [-06]', line(server, "head-request"))
    server.get("/crash?when=call&error-request=1")
    assert '" 500 ' in line(server, "error-request")


@pytest.mark.beyond_reference("refused requests are not in its access log")
def test_refused_requests_are_logged(pool: Pool) -> None:
    server = pool.get(worker_class="gthread", access_logfile="-")
    with server.connect() as wire:
        wire.send(b"GET /hello?refused-request HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n")
        assert wire.reply().status == 400
    assert '" 400 ' in line(server, "refused-request")


def test_an_unknown_format_does_not_start_or_shows_a_dash() -> None:
    if REFERENCE:
        pytest.skip("the reference server starts and shows a dash")
    from tests.harness.server import free_port, run

    done = run("-b", f"127.0.0.1:{free_port()}", "--access-logformat", "%(nothing)s", "gallery:application")
    assert done.returncode == 1
    assert "nothing" in done.stderr
