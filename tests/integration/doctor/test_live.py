"""`tricorn doctor` for a running server: the line that costs most comes first, with its cure."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tricorn.control.client import Control

from tests.harness import Site, until
from tests.harness.needs import needs
from tests.harness.server import run

WORK = """
import ctypes
C = ctypes.CDLL(None)
def short():
    C.usleep(200_000)
def long():
    C.usleep(400_000)
def very_long():
    C.usleep(30_000_000)
CALLS = {"/short": short, "/long": long, "/very_long": very_long}
def application(environ, start_response):
    CALLS.get(environ["PATH_INFO"], int)()
    start_response("204 No Content", [])
    return []
"""


def doctor(*words: str) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = run("doctor", *words)
    return done


@pytest.fixture(scope="module")
def held_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str, str]]:
    """A server whose worker was held up by two lines, its control socket, and its pidfile."""
    needs("gevent")
    directory = tmp_path_factory.mktemp("control")
    socket, pidfile = str(directory / "control"), str(directory / "pid")
    config = f"worker_class = 'gevent'\ncontrol_socket = {socket!r}\npidfile = {pidfile!r}\n"
    with Site(config, app="work:application", files={"work.py": WORK}) as server:
        server.get("/")

        def both() -> bool:
            """A monitor that gets no processor takes its own pause for one of the whole process, and tells nothing."""
            server.get("/short")
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(server.get, ["/long"] * 4))
            with Control.connect(socket) as control:
                return len(control.ask("stalls")["stalls"]) >= 2

        until(both, "both lines are told")
        yield server, socket, pidfile


def report(*words: str) -> Any:
    done = doctor("--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_line_that_costs_most_comes_first_with_its_cure(held_up: tuple[Site, str, str]) -> None:
    server, socket, _ = held_up
    for since in ("start", "minute"):
        found = report("-s", socket, "--since", since)
        first = found["stalls"][0]
        assert (first["function"], first["verdict"]) == ("long", "BLOCKED_SYSCALL")
        assert first["total"]["request_seconds"] > 0
        assert "tricorn.offload" in first["cure"]
        assert {row["function"] for row in found["stalls"]} == {"long", "short"}
    (worker,) = found["workers"]
    assert worker["pid"] == server.worker_pid()
    assert 0 <= worker["blocked"] <= 1
    done = doctor("-s", socket)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stdout.index("in long: C.usleep") < done.stdout.index("in short: C.usleep")
    assert "Fix: " in done.stdout
    assert f"(pid {worker['pid']}, gevent, serving) [" in done.stdout


def test_events_have_the_record_of_each(held_up: tuple[Site, str, str]) -> None:
    server, socket, _ = held_up
    with Control.connect(socket) as control:
        events = control.events()
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(lambda: next(each for each in events if each["event"] == "stall"))
            until(lambda: bool(server.get("/short")) and told.done(), "an event comes")
            record = told.result()
    assert record["schema"] == "tricorn-stall/1"
    assert record["function"] == "short"
    assert record["pid"] == server.worker_pid()


def test_without_a_server_one_sentence_says_so(tmp_path: Path) -> None:
    rubbish = tmp_path / "pid"
    rubbish.write_text("no number")
    given = (["-s", str(tmp_path / "none")], ["--pidfile", str(tmp_path / "none")], ["--pidfile", str(rubbish)])
    for words in (*given, ["2147483647"]):
        done = doctor(*words)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1


def test_the_oldest_request_is_told_with_its_stack(held_up: tuple[Site, str, str]) -> None:
    """Last of all: the worker is of no use after it."""
    server, socket, _ = held_up
    with server.connect() as client:
        client.send(b"GET /very_long HTTP/1.1\r\nHost: a\r\n\r\n")
        found = until(lambda: (now := report("-s", socket))["stacks"] and now, "its stack is told")
        assert found["requests"][0]["text"] == "GET /very_long"
        assert "in very_long" in json.dumps(found["stacks"])
        assert found["workers"][0]["blocked"] > 0.5
