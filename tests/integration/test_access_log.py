"""The access log: gunicorn's format and atoms, JSON, lines that no client can forge, and readers that fail."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.conftest import Pool
from tests.harness import KINDS, THREAD_CLASSES, Server
from tests.harness.core import Serving, serving
from tests.harness.deadline import AT_ONCE, until
from tests.harness.wire import request

LOG_LOST = 30
"""Word of the scoreboard: lines that were lost."""

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


@KINDS
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


@KINDS
def test_access_log_has_every_atom(pool: Pool, worker_class: str) -> None:
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


@THREAD_CLASSES
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


def test_refused_requests_are_logged(pool: Pool) -> None:
    server = pool.get(worker_class="gthread", access_logfile="-")
    with server.connect() as wire:
        wire.send(b"GET /hello?refused-request HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n")
        assert wire.reply().status == 400
    assert '" 400 ' in line(server, "refused-request")


def lines(path: Path, count: int) -> list[str]:
    """The lines of a log, once there are so many."""
    until(lambda: path.exists() and path.read_text().count("\n") >= count, f"{count} lines in {path.name}")
    return path.read_text().splitlines()


def echo(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("X-Out", "out")])
    return [environ["PATH_INFO"].encode("latin-1")]


class Ends:
    """Requests that end as their paths say."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/raises":
                raise RuntimeError("a test asked for it")
            case "/waits":
                self.goes_on.wait(20)
                start_response("200 OK", [])
                return iter([b"x" * 65536] * 100)
            case "/404":
                start_response("404 Not Found", [])
                return []
        return echo(environ, start_response)


def test_a_line_says_what_became_of_the_request(tmp_path: Path) -> None:
    log, ends = tmp_path / "access", Ends()
    options = {"queue_limit": 1, "queue_timeout": 0.5, "limit_request_body": 10, "response_buffering": False}
    with serving(ends, access_log=str(log), access_log_format="%(U)s %(s)s %(outcome)s", **options) as core:
        for path, status in [("/fine", 200), ("/404", 404), ("/raises", 500)]:
            with core.wire() as wire:
                assert wire.get(path).status == status
        with core.wire() as wire:
            assert wire.ask("POST", "/long", (), b"x" * 11).status == 413
        with core.wire() as gone, core.wire() as late, core.wire() as full:
            gone.send(request("GET", "/waits"))
            until(lambda: core.word(9) == 1, "it is with the application")
            late.send(request("GET", "/late"))
            until(lambda: core.word(10) == 1, "one waits")
            full.send(request("GET", "/full"))
            # Which of the two is one too many is the queue's business.
            assert {full.reply().status, late.reply().status} == {503}
            gone.reset()
            ends.goes_on.set()
        told = set(lines(log, 7))
    assert told == {
        "/fine 200 ok",
        "/404 404 ok",
        "/raises 500 app_error",
        "/long 413 refused:body_too_large",
        "/waits 200 client_gone",
        "/late 503 queue_late",
        "/full 503 queue_full",
    }


@KINDS
def test_a_call_that_was_ended_is_late(tmp_path: Path, worker_class: str) -> None:
    log = tmp_path / "access"
    options = {"access_logfile": log, "access_logformat": "%(s)s %(outcome)s", "request_timeout": 0.3}
    with Server(worker_class=worker_class, **options) as server:
        assert server.get("/sleep?s=1.5").status == 504
        assert lines(log, 1) == ["504 late"]


class TestJson:
    MEMBERS: ClassVar = [
        "time",
        "level",
        "logger",
        "remote",
        "method",
        "path",
        "query",
        "protocol",
        "status",
        "bytes",
        "duration_us",
        "queue_us",
        "referer",
        "user_agent",
        "host",
        "outcome",
        "pid",
    ]

    @pytest.fixture
    def log(self, tmp_path: Path) -> Path:
        return tmp_path / "access.json"

    @pytest.fixture
    def core(self, log: Path) -> Iterator[Serving]:
        with serving(echo, access_log=str(log), log_format="json") as core:
            yield core

    def test_access_log_in_json_has_every_member(self, core: Serving, log: Path) -> None:
        with core.wire() as wire:
            wire.get("/a%20b?x=1&y", ("User-Agent", "agent/1"), ("Referer", "http://r/"))
        entry = json.loads(lines(log, 1)[0])
        assert list(entry) == self.MEMBERS
        assert re.fullmatch(r".*T\d\d:\d\d:\d\d\.\d{3}\+00:00", entry["time"]), "milliseconds, as in the error log"
        written = datetime.fromisoformat(entry.pop("time"))
        assert abs((datetime.now(timezone.utc) - written).total_seconds()) < 20
        assert 0 <= entry.pop("queue_us") <= entry.pop("duration_us") < 20_000_000
        assert entry == {
            "level": "INFO",
            "logger": "gunicorn.access",
            "remote": "127.0.0.1",
            "method": "GET",
            "path": "/a%20b",
            "query": "x=1&y",
            "protocol": "HTTP/1.1",
            "status": 200,
            "bytes": 4,
            "referer": "http://r/",
            "user_agent": "agent/1",
            "host": "t",
            "outcome": "ok",
            "pid": os.getpid(),
        }

    def test_what_is_not_known_is_null(self, core: Serving, log: Path) -> None:
        with core.wire() as wire:
            wire.get("/")
        with core.wire() as wire:
            wire.send(b"nonsense\r\n\r\n").reply()
        plain, nonsense = (json.loads(line) for line in lines(log, 2))
        assert (plain["referer"], plain["user_agent"], plain["query"]) == (None, None, "")
        assert [nonsense[name] for name in ("method", "path", "protocol", "queue_us", "host")] == [None] * 5
        assert (nonsense["status"], nonsense["outcome"]) == (400, "refused:request_line")

    def test_the_trace_of_a_request_is_told(self, core: Serving, log: Path) -> None:
        trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        with core.wire() as wire:
            wire.get("/", ("traceparent", f"00-{trace}-{span}-01"))
            wire.get("/", ("traceparent", f"00-{trace}-{span}"))
        told, wrong = (json.loads(line) for line in lines(log, 2))
        assert (told["trace_id"], told["span_id"]) == (trace, span)
        assert list(wrong) == self.MEMBERS

    def test_every_line_is_json_whatever_a_client_sends(self, core: Serving, log: Path) -> None:
        agents = [bytes([byte]) * 3 for byte in range(256) if byte not in b"\0\r\n" and (byte >= 32 or byte == 9)]
        agents += ['caf\u00e9 \u2028 \U0001f600 "\\'.encode(), b"\xed\xa0\x80", b"\xc0\xaf", b"\xff\xfe", b"\xe2\x80"]
        agents = [agent for agent in agents if 127 not in agent]
        with core.wire() as wire:
            for agent in agents:
                wire.send(b"GET / HTTP/1.1\r\nHost: t\r\nUser-Agent: x" + agent + b"x\r\n\r\n")
                assert wire.reply().status == 200
        for line, agent in zip(lines(log, len(agents)), agents, strict=True):
            assert json.loads(line)["user_agent"] == f"x{agent.decode('utf-8', 'replace')}x"
            assert line.isprintable()

    def test_the_id_is_there_when_requests_have_ids(self, log: Path) -> None:
        with serving(echo, access_log=str(log), log_format="json", request_id=True) as core, core.wire() as wire:
            sent = wire.get("/").get("X-Request-ID")
            assert json.loads(lines(log, 1)[0])["request_id"] == sent


def write_fast(core: Serving, count: int) -> None:
    """Requests one after the other; the log must not be felt."""
    with core.wire() as wire:
        for _ in range(count):
            assert wire.get("/" + "x" * 900).status == 200


class TestTrouble:
    """Whatever becomes of the log's reader, requests are answered and the worker stops in time."""

    FORMAT = "%(m)s %(U)s %(s)s"

    def test_a_full_disk(self) -> None:
        with serving(echo, access_log="/dev/full", access_log_format=self.FORMAT) as core:
            write_fast(core, 50)
            # The monitor tells it; what it told is logged by the next request's thread.
            until(lambda: write_fast(core, 1) or core.notices, "a notice")
            assert "Cannot write the access log: No space left on device" in core.notices[0]
            write_fast(core, 10_000)
            until(lambda: core.word(LOG_LOST) > 0, "lines that are counted as lost")

    def test_a_pipe_whose_reader_stops_and_goes_on(self, tmp_path: Path) -> None:
        path = tmp_path / "fifo"
        os.mkfifo(path)
        with serving(echo, access_log=str(path), access_log_format=self.FORMAT) as core:
            reader = os.open(path, os.O_RDONLY)
            write_fast(core, 2000)  # much more than a pipe holds
            read = b""
            while read.count(b"\n") < 2000:
                read += os.read(reader, 1 << 16)
            os.close(reader)
            assert set(read.decode().splitlines()) == {f"GET /{'x' * 900} 200"}
            assert core.word(LOG_LOST) == 0

    def test_a_pipe_whose_reader_is_restarted(self, tmp_path: Path) -> None:
        path = tmp_path / "fifo"
        os.mkfifo(path)
        with serving(echo, access_log=str(path), access_log_format=self.FORMAT) as core, core.wire() as wire:
            for name in ("first", "second"):
                with path.open() as reader:
                    wire.get(f"/{name}")
                    assert reader.readline() == f"GET /{name} 200\n"

    @pytest.mark.beyond_reference("its sync workers close the connection after each response")
    def test_standard_output_whose_reader_dies(self) -> None:
        with Server(access_logfile="-", worker_class="sync") as server:
            assert server.get("/hello").status == 200
            server.out.wait("GET /hello")
            assert server.process.stdout is not None
            os.dup2(os.open(os.devnull, os.O_RDONLY), server.process.stdout.fileno())
            with server.connect() as wire:
                for _ in range(300):
                    assert wire.get("/hello").status == 200
            server.signal(signal.SIGTERM)
            assert server.wait_exit(AT_ONCE) == 0


@pytest.mark.parametrize("how", [signal.SIGUSR1, signal.SIGHUP], ids=["USR1", "HUP"])
def test_a_rotation_under_load_loses_and_tears_nothing(tmp_path: Path, how: int) -> None:
    log = tmp_path / "access.log"
    options = {"access_logfile": str(log), "access_logformat": "%(q)s."}
    with Server(workers=2, worker_class="gthread", **options) as server:
        over = threading.Event()
        counts = [0, 0]

        def ask(number: int) -> None:
            while not over.is_set():
                server.get(f"/hello?{number}-{counts[number]}")
                counts[number] += 1

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for rotation in range(4):
            reached = sum(counts) + 20
            until(lambda reached=reached: sum(counts) >= reached, "requests between rotations")
            log.rename(tmp_path / f"access.log.{rotation}")
            server.signal(how)
            until(log.exists, "the new file")
        over.set()
        for thread in threads:
            thread.join()

        def written() -> list[str]:
            return [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]

        until(lambda: len(written()) >= sum(counts), "every line")
        expected = [f"{number}-{count}." for number in range(2) for count in range(counts[number])]
        assert sorted(written()) == sorted(expected)


@pytest.mark.beyond_reference("it has no such setting")
@THREAD_CLASSES
def test_json_is_a_setting(worker_class: str) -> None:
    with Server(worker_class=worker_class, access_logfile="-", log_format="json", request_id=True) as server:
        sent = server.get("/hello?json").get("X-Request-ID")
        (match,) = server.out.wait(r"^\{.*json.*\}$")
    entry = json.loads(match[0])
    assert (entry["path"], entry["query"], entry["status"], entry["request_id"]) == ("/hello", "json", 200, sent)
