"""`tricorn doctor profile`: whose time it was, per route, and at which lines, without the worker's help."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tricorn.control.client import Control, Refused
from tricorn_tools.doctor.profile.analysis import Owner, Report, analyse

from tests.harness import Site, until
from tests.harness.classes import each
from tests.integration.test_slow_requests import APPLICATIONS, NAMES, RARE, line_of

SECONDS = 1.0
REPORTS, ORDERS = "GET /reports/{}", "GET /orders/{}"

BACKGROUND = """
import threading

def background():
    while not done.wait(0.02):
        end = time.perf_counter() + 0.02
        while time.perf_counter() < end: pass

done = threading.Event()

def start():
    threading.Thread(target=background, daemon=True).start()
    return wsgi
"""


def profile(socket: Path, seconds: float = SECONDS) -> Report:
    with Control.connect(socket, timeout=60) as control:
        return analyse(control.ask("profile", seconds=seconds, rate=100))


def is_taken(socket: Path) -> bool:
    """Whether a profile is being taken: another is refused then."""
    try:
        profile(socket, 0.1)
    except Refused as refused:
        return refused.kind == "busy"
    return False


def owner(report: Report, of: str, name: str) -> Owner:
    [found] = [each for each in report.owners if (each.of, each.name) == (of, name)]
    return found


def shares(found: Owner) -> dict[str, float]:
    """The share of what was seen, by the innermost frame of the application."""
    told: dict[str, float] = {}
    whole = sum(cost.seconds for cost in found.stacks.values())
    for stack, cost in found.stacks.items():
        inner = next((each for each in reversed(stack) if each.file.endswith("work.py")), stack[-1])
        held = "held up: " if stack[0].file == "[event loop]" else ""
        key = f"{held}{inner.function}:{inner.line}"
        told[key] = told.get(key, 0.0) + cost.seconds / whole
    return told


@contextmanager
def load(server: Site, *paths: str) -> Iterator[None]:
    """Each of these is asked for again and again."""
    ended = threading.Event()

    def ask(path: str) -> None:
        while not ended.is_set():
            assert server.get(path).status == 200

    with ThreadPoolExecutor(len(paths)) as pool:
        asked = [pool.submit(ask, path) for path in paths]
        try:
            yield
        finally:
            ended.set()
        for each_of in asked:
            each_of.result()


def site(worker_class: str, tmp_path: Path, app: str, text: str = APPLICATIONS) -> tuple[Site, Path]:
    socket = tmp_path / "ctl"
    config = f"worker_class = {worker_class!r}\nthreads = 2\ncontrol_socket = {str(socket)!r}\n"
    return Site(config, app=f"work:{app}", files={"work.py": text}), socket


@pytest.mark.parametrize("worker_class", each("gthread", "gevent", "asgi", "tornado", "aiohttp"))
def test_time_belongs_to_the_route_whose_request_has_it(worker_class: str, tmp_path: Path) -> None:
    server, socket = site(worker_class, tmp_path, NAMES[worker_class])
    with server:
        until(lambda: server.get("/orders/0").status == 200, "it serves")
        with load(server, "/reports/1?computing", "/orders/1?rare"):
            report = profile(socket)
    [worker] = report.workers
    assert worker.ended
    assert worker.looks > 20
    assert 0.5 <= worker.seconds <= 1.1, "a second, but for looks that came late"
    computing = shares(owner(report, "request", REPORTS))
    line = f"computing:{line_of('computing')}"
    assert computing.pop(line) >= 0.8, computing
    rare = RARE["wsgi" if NAMES[worker_class] == "wsgi" else "tasks"]
    waiting = shares(owner(report, "request", ORDERS))
    allowed = (f"{rare}:{line_of(rare)}", f"held up: {line}")
    assert sum(waiting.get(key, 0.0) for key in allowed) >= 0.8, waiting
    # Two requests were under way but for moments, and each second of one is a second of its route.
    assert 1.1 <= sum(each_of.seconds for each_of in report.owners if each_of.of == "request") <= 2.3


def test_threads_that_compute_are_told_and_those_that_wait_are_not(tmp_path: Path) -> None:
    server, socket = site("sync", tmp_path, "start()", APPLICATIONS + BACKGROUND)
    with server:
        until(lambda: server.get("/orders/0").status == 200, "it serves")
        report = profile(socket)
    found = owner(report, "thread", "threads")
    assert 0.15 <= found.seconds <= 0.9, "about half of the time"
    inner = {stack[-1].function.rpartition(".")[2] for stack in found.stacks if stack[-1].is_python}
    assert "background" in inner
    between = {"wait", "__enter__", "__exit__", "_is_owned"}
    assert inner <= {"background", *between}, "what computes, and the wait between that is begun and left"
    assert not [each_of for each_of in report.owners if each_of.of != "thread"]


def test_a_worker_that_hangs_is_profiled_and_the_command_writes_what_is_asked_for(tmp_path: Path) -> None:
    hanging = APPLICATIONS.replace("perf_counter() + 0.3", "perf_counter() + 15")
    server, socket = site("gevent", tmp_path, "wsgi", hanging)
    with server, ThreadPoolExecutor(1) as pool:
        until(lambda: server.get("/orders/0").status == 200, "it serves")
        pool.submit(server.get, "/reports/1?computing")
        with Control.connect(socket, timeout=60) as control:
            until(lambda: control.ask("requests")["count"] == 1, "it hangs")
        command = [sys.executable, "-m", "tricorn", "doctor", "profile", "-s", str(socket), "--seconds", "0.5"]
        shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
        assert f"{REPORTS}: 0." in shown
        assert f"work.py:{line_of('computing')} in computing: while" in shown
        file = tmp_path / "page.html"
        command += ["--worker", "1", "--route", REPORTS, "--format", "html", "-o", str(file)]
        assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout == ""
        assert f"work.py:{line_of('computing')})" in file.read_text("utf-8")
        wrong = subprocess.run([*command, "--worker", "7"], capture_output=True, text=True, timeout=60, check=False)
        assert (wrong.returncode, wrong.stderr) == (1, "Error: There is no worker with the slot 7.\n")


def test_there_is_one_at_a_time_and_a_client_that_leaves_ends_its_own(tmp_path: Path) -> None:
    server, socket = site("sync", tmp_path, "wsgi")
    with server:
        until(lambda: server.get("/orders/0").status == 200, "it serves")
        with Control.connect(socket, timeout=60) as control:
            control._send("profile", {"seconds": 600.0})
            until(lambda: is_taken(socket), "it is taken")
        until(lambda: not is_taken(socket), "it has ended with its client")
        assert server.get("/orders/0").status == 200


def test_without_a_sampler_there_is_no_profile(tmp_path: Path) -> None:
    socket = tmp_path / "ctl"
    config = f"profile_after = 0\ncontrol_socket = {str(socket)!r}\n"
    with Site(config, app="work:wsgi", files={"work.py": APPLICATIONS}) as server:
        until(lambda: server.get("/orders/0").status == 200, "it serves")
        with pytest.raises(Refused, match="The workers have no sampler"):
            profile(socket)
