"""The access log under load: a line for every answer, whole, whatever happens to the server or to the file."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.harness import CLOSE, KINDS, REFERENCE, THREAD_CLASSES, Load, Server, Site, each, until
from tests.harness.site import replaced

LINE = re.compile(
    r'127\.0\.0\.1 - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /hello HTTP/1\.1" 200 6 "-" "-"'
)


def check(lines: list[str], answered: int) -> None:
    """At least a line for each answer; a line more only for an answer whose client had left."""
    torn = [line for line in lines if not LINE.fullmatch(line)]
    assert not torn, torn[:5]
    assert answered <= len(lines) <= answered + 8


@pytest.mark.beyond_reference("a reload there drops requests")
@KINDS
def test_no_line_is_lost_by_rotations_reloads_and_the_end(worker_class: str, tmp_path: Path) -> None:
    log = tmp_path / "access"
    with (
        Server(worker_class=worker_class, workers=2, access_logfile=log) as server,
        Load(server.address, "/hello", clients=4) as load,
    ):
        load.settle(50)
        for turn in range(5):
            log.rename(tmp_path / f"access.{turn}")
            server.signal(signal.SIGUSR1)
            until(log.exists, "the log is opened anew")
            load.settle(30)
            replaced(server, lambda: server.signal(signal.SIGHUP))
            load.settle(30)
        load.leaving()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        tally = load.join()
    assert tally.failures == []
    check([line for file in tmp_path.glob("access*") for line in file.read_text().splitlines()], tally.answered)


@pytest.mark.beyond_reference("a reload there drops requests")
@THREAD_CLASSES
def test_no_line_is_lost_in_a_pipe(worker_class: str) -> None:
    with (
        Server(worker_class=worker_class, workers=2, access_logfile="-") as server,
        Load(server.address, "/hello", clients=4) as load,
    ):
        load.settle(50)
        for _ in range(3):
            replaced(server, lambda: server.signal(signal.SIGHUP))
            load.settle(30)
        load.leaving()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        tally = load.join()
    assert tally.failures == []
    check(server.out.lines, tally.answered)


@THREAD_CLASSES
def test_a_full_disk_never_stops_serving(worker_class: str) -> None:
    with Server(worker_class=worker_class, access_logfile="/dev/full") as server:
        with Load(server.address, "/hello", clients=2, fields=CLOSE) as load:
            load.settle(100)
            tally = load.stop()
        assert tally.failures == []


@pytest.mark.beyond_reference("a full disk is only told as Python's traceback of the logging module")
def test_a_full_disk_is_told_and_counted() -> None:
    with Server(access_logfile="/dev/full") as server:
        for _ in range(20):
            server.get("/hello")
        server.log.wait(r"/dev/full|No space left")
        server.signal(signal.SIGTERM)
        server.wait_exit()
    told = server.log.matching(r"/dev/full|No space left")
    assert len(told) < 10, "not once per line"
    assert any(re.search(r"\d+ (access log )?lines?", match.string) for match in told) or server.log.matching(
        r"\blost\b"
    )


@pytest.mark.beyond_reference("it waits for a reader for ever")
@THREAD_CLASSES
def test_a_reader_that_does_not_read_never_stops_serving(worker_class: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with Server(worker_class=worker_class, access_logfile=pipe) as server:
            with Load(server.address, f"/hello?{'x' * 2000}", clients=4) as load:
                load.settle(300)  # far more than a pipe holds
                tally = load.stop()
            assert tally.failures == []
    finally:
        os.close(reader)


@pytest.mark.beyond_reference("it waits for a reader for ever")
@KINDS
def test_a_reader_that_is_late_gets_the_last_lines(worker_class: str, tmp_path: Path) -> None:
    """It begins when the worker closes its connections: what the pipe did not hold is written after that."""
    pipe, count = tmp_path / "pipe", 3000
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with Server(worker_class=worker_class, access_logfile=pipe) as server, server.connect() as wire:
            for number in range(count):
                assert wire.get(f"/hello?{number}").status == 200
            server.signal(signal.SIGTERM)
            wire.closed()
            written = b""

            def read() -> bool:
                nonlocal written
                gone = not server.worker_pids()
                try:
                    while piece := os.read(reader, 1 << 16):
                        written += piece
                except BlockingIOError:
                    pass
                return gone

            until(read, "the worker leaves")
    finally:
        os.close(reader)
    assert re.findall(rb"GET /hello\?(\d+) ", written) == [b"%d" % number for number in range(count)]


@pytest.mark.beyond_reference("its logging module prints a traceback for each line")
@THREAD_CLASSES
def test_a_reader_that_has_gone_never_stops_serving(worker_class: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with Server(worker_class=worker_class, access_logfile=pipe) as server:
        server.get("/hello")
        os.close(reader)
        with Load(server.address, "/hello", clients=2) as load:
            load.settle(100)
            tally = load.stop()
        assert tally.failures == []
        assert "Traceback" not in server.log.text


def test_a_reader_of_the_error_log_that_has_gone_never_stops_serving(tmp_path: Path) -> None:
    """As after `tricorn 2>&1 | head`: the arbiter logs into a pipe without a reader."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with Site(f"errorlog = '{pipe}'\n", wait=False) as server:
        until(lambda: serves(server), "it serves")
        os.close(reader)
        worker = server.worker_pid()
        server.signal(signal.SIGTTIN)
        until(lambda: len(server.worker_pids()) == 2, "two workers")
        os.kill(worker, signal.SIGKILL)
        until(lambda: worker not in server.worker_pids() and len(server.worker_pids()) == 2, "a replacement")
        assert serves(server)
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0


def serves(server: Server) -> bool:
    try:
        return server.get("/hello").status == 200
    except OSError:
        return False


@pytest.mark.parametrize("format_", [None, "json"], ids=["text", "json"])
def test_a_line_written_by_many_threads_is_whole(format_: str | None, tmp_path: Path) -> None:
    if REFERENCE and format_:
        pytest.skip("the reference server has no JSON log")
    log = tmp_path / "access"
    options = {"log_format": format_} if format_ else {}
    with Server(workers=3, threads=4, access_logfile=log, **options) as server:
        long = "y" * 3000
        threads = [threading.Thread(target=lambda: [server.get(f"/hello?{long}") for _ in range(15)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(lambda: log.read_text().count("\n") >= 120, "120 lines")
        lines = log.read_text().splitlines()
    assert len(lines) == 120
    if format_:
        assert all(long in json.dumps(json.loads(line)) for line in lines)
    else:
        assert all(
            re.fullmatch(rf'127\.0\.0\.1 - - \[[^]]+\] "GET /hello\?{long} HTTP/1\.1" 200 6 "-" "-"', line)
            for line in lines
        )


FAULT = """
from tricorn.workers import core_options

original = core_options.core_options
core_options.core_options = lambda *args, **keywords: original(*args, **keywords) | {"fault_point": "stall_log"}
"""
TIMEOUT = 1


@pytest.mark.beyond_reference("its workers write the log themselves")
@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "asgi"))
def test_a_disk_that_hangs_costs_no_worker(worker_class: str, tmp_path: Path) -> None:
    """A stream lasts for much longer than `timeout`, and the worker's heartbeat with it; no line is lost."""
    log, stall, config = tmp_path / "access.log", tmp_path / "access.stall", tmp_path / "conf.py"
    os.mkfifo(stall)
    config.write_text(FAULT)
    options: dict[str, Any] = {"config": config, "access_logfile": log, "access_logformat": "%(U)s", "timeout": TIMEOUT}
    with Server(worker_class=worker_class, **options) as server, server.connect() as wire:
        worker = server.worker_pid()
        assert wire.get("/hello").status == 200
        assert len(wire.get(f"/stream?count=20&size=10&pause={TIMEOUT / 4}").body) == 200
        asked = ["/hello", "/stream"]

        def told(pattern: str) -> bool:
            """Notices of the core are logged by a thread of the application."""
            assert wire.get("/hello").status == 200
            asked.append("/hello")
            return bool(server.log.matching(pattern))

        until(lambda: told("Cannot write the access log: its disk does not answer"), "the hang is told")
        assert server.worker_pid() == worker
        assert not server.log.matching("WORKER TIMEOUT")
        assert log.read_text() == ""
        mended = os.open(stall, os.O_RDWR)
        try:
            until(lambda: told("The access log is being written again; 0 lines were lost"), "the end of it is told")
            server.signal(signal.SIGTERM)
            assert server.wait_exit() == 0
        finally:
            os.close(mended)
    assert log.read_text().splitlines() == asked


@pytest.mark.beyond_reference("its workers write the log themselves")
def test_a_worker_whose_disk_hangs_leaves_in_time_and_tells_what_is_lost(tmp_path: Path) -> None:
    config = tmp_path / "conf.py"
    os.mkfifo(tmp_path / "access.stall")
    config.write_text(FAULT)
    with Server(worker_class="gthread", config=config, access_logfile=tmp_path / "access.log") as server:
        for _ in range(3):
            assert server.get("/hello").status == 200
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0, server.log.text
        server.log.wait("The worker exited before the access log was written: 3 lines were lost")
