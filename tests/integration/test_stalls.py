"""What holds up an event loop or a hub: the log names the line, the call and who waited."""

from __future__ import annotations

import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness import Site, proc, until
from tests.harness.classes import each
from tests.harness.wire import request
from tests.integration.test_loop_time import APPLICATIONS, NAMES

SECONDS = 0.4
HOLDS = APPLICATIONS.replace("C.usleep(20_000)", f"C.usleep({SECONDS * 1e6:.0f})")
HOLDS_LONG = APPLICATIONS.replace("C.usleep(20_000)", "C.usleep(2_000_000)")
"""For a stall that comes only once: on a busy machine the monitor may look a second late."""
REPORT = re.compile(r"\[WARNING\] The event loop of worker \(pid:(\d+)\) was blocked for ([\d.]+) s by one call\. (.*)")


def site(worker_class: str, more: str = "", loop: str = "asyncio", code: str = HOLDS) -> Site:
    config = f"worker_class = {worker_class!r}\nasgi_loop = {loop!r}\n{more}"
    return Site(config, app=f"work:{NAMES[worker_class]}", files={"work.py": code})


def together(server: Site, path: str, clients: int) -> None:
    with ThreadPoolExecutor(clients) as pool:
        assert [reply.status for reply in pool.map(server.get, [path] * clients)] == [200] * clients


@pytest.mark.parametrize("worker_class", each(*NAMES))
def test_a_call_that_blocks_is_named_with_its_line(worker_class: str) -> None:
    names_it(worker_class, "asyncio")


def test_of_a_loop_that_does_not_show_its_waits_as_well() -> None:
    names_it("asgi", "uvloop")


def names_it(worker_class: str, loop: str) -> None:
    with site(worker_class, loop=loop) as server:
        assert server.get("/waits").status == 200, "the first request may take its time"
        together(server, "/blocks", 3)
        found = server.log.wait(REPORT.pattern)[0]
        assert int(found[1]) == server.worker_pid()
        assert float(found[2]) >= 0.8 * SECONDS
        said = found[3]
        assert "work.py:6 in blocks" in said
        assert "Code: C.usleep(" in said
        assert re.search(r"BLOCKED_SYSCALL: blocked (9\d|100) %", said), said
        assert "Fix: " in said, said
        assert re.search(r"Blocked in the system call (clock_)?nanosleep", said), said
        assert re.search(r"\. (Request|Most recent request): GET /blocks", said), said


@pytest.mark.parametrize("worker_class", each("gevent", "asgi"))
def test_the_same_is_told_once_and_others_are_told_apart(worker_class: str) -> None:
    with site(worker_class) as server:
        server.get("/waits")
        for _ in range(3):
            server.get("/blocks")
        server.log.wait(REPORT.pattern)
        assert len(server.log.matching(REPORT.pattern)) == 1


@pytest.mark.parametrize("worker_class", each("gevent", "asgi"))
def test_requests_that_give_way_hold_up_nothing(worker_class: str) -> None:
    with site(worker_class, "doctor_threshold = 0.02\n") as server:
        server.get("/waits")
        for _ in range(20):  # of 20 ms each, and longer on a busy machine
            together(server, "/waits", 2)
        assert not [line for line in server.log.matching(REPORT.pattern) if "work.py" in line[0]]


def test_the_first_request_may_take_its_time() -> None:
    imports = "def imports():\n    C.usleep(1_500_000)\n"
    code = HOLDS.replace("DOES = {", imports + 'DOES = {"/imports": imports, ')
    with site("gevent", code=code) as server:
        server.get("/imports")
        server.get("/blocks")
        (said,) = server.log.wait(REPORT.pattern)
        assert "in blocks" in said[3], said


def test_stall_reports_can_be_switched_off() -> None:
    with site("gevent", "doctor_threshold = 0\n") as server:
        server.get("/waits")
        server.get("/blocks")
        server.get("/blocks")
        assert not server.log.matching(REPORT.pattern)


DEVELOPED = [*((worker_class, "asyncio") for worker_class in NAMES), ("asgi", "uvloop")]


@pytest.mark.parametrize(("worker_class", "loop"), DEVELOPED)
def test_with_reload_a_single_stall_that_delays_nothing_else_is_told(worker_class: str, loop: str) -> None:
    """Also that of the first request after a reload, which is what a developer asks for."""
    with site(worker_class, "reload = True\n", loop=loop, code=HOLDS_LONG) as server:
        server.get("/blocks")
        (said,) = server.log.wait(REPORT.pattern)
        assert "Code: C.usleep(" in said[3], said
        assert "It delayed" not in said[3], said


def test_with_reload_imports_of_the_first_request_are_not_told() -> None:
    code = HOLDS_LONG.replace("DOES = {", 'DOES = {"/imports": lambda: __import__("imported"), ')
    imported = "import ctypes\nctypes.CDLL(None).usleep(500_000)\n"
    with site("asgi", "reload = True\n", code=code) as server:
        server.write("imported.py", imported)
        server.get("/imports")
        server.get("/blocks")
        (said,) = server.log.wait(REPORT.pattern)
        assert "in blocks" in said[3], said


def test_in_production_a_loop_is_not_woken_to_find_what_delays_nothing_else() -> None:
    with site("asgi", loop="uvloop") as server:
        server.get("/waits")
        server.get("/blocks")
        for _ in range(30):  # long enough for a report to come
            server.get("/waits")
        assert not server.log.matching(REPORT.pattern)


BUSY = """
import time
from pathlib import Path
BEGUN = Path(__file__).with_name("begun")
def application(environ, start_response):
    if environ["PATH_INFO"] == "/busy":
        BEGUN.touch()
        end = time.thread_time() + 0.03
        while time.thread_time() < end: pass
    start_response("204 No Content", [])
    return []
"""


def test_a_pause_of_the_process_is_no_stall() -> None:
    """What the loop was at when all was stopped is none of the reasons."""
    with Site("worker_class = 'gevent'\n", app="busy:application", files={"busy.py": BUSY}, fresh=True) as server:
        server.get("/")
        worker, begun = server.worker_pid(), server.directory / "begun"
        for _ in range(5):
            with server.connect() as wire:
                wire.send(request("GET", "/busy"))
                until(begun.exists, "it is at it", every=0.001)
                os.kill(worker, signal.SIGSTOP)
                until(lambda: proc.is_stopped(worker), "it is stopped")
                end = time.monotonic() + 0.3
                until(lambda end=end: time.monotonic() > end, "the pause is over")
                os.kill(worker, signal.SIGCONT)
                assert wire.reply().status == 204
            begun.unlink()
        for _ in range(30):  # long enough for a report to come
            server.get("/")
        told = [line[0] for line in server.log.matching(REPORT.pattern)]
        wanted = [re.search(r"STARVED|waiting for CPU ([2-9]\d|100) %", line) for line in told]
        assert all(wanted), f"a machine that has no processor for it is told, and true: {told}"
