"""`tricorn top` looks at a server, on a terminal and without one, and steers it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.deadline import until
from tests.harness.server import Server, command
from tests.harness.server import run as tricorn
from tests.harness.site import Site
from tests.harness.tmux import DARK, LIGHT, Tmux, needs_tmux

HEAD_80 = "  #     PID CLASS    GEN STATE       BUSY QUEUE REQ/S   P50   P99   CPU   RSS"
HEAD_200 = f"{HEAD_80}   PSS  CONN  AGE   USS NOTE"
ROW = r"^ +%d +%d gthread  +%d %s +%d/4 "
RED, MAGENTA = "31", "35"
HARMLESS = {"", "0", "1", "7", "39", "49", RED, MAGENTA}
"""Bold, reversed, red, magenta, and back: no background of its own, no colour that is one of paper."""


def words(server: Server, *more: str) -> list[str]:
    return [*command(), "top", "-s", control_of(server), "-d", "0.2", *more]


def control_of(server: Server) -> str:
    return server.argv[server.argv.index("--control-socket") + 1]


def controlled(server_class: type[Server] = Server, *args: Any, path: str = "", **given: Any) -> Any:
    server = server_class(*args, **given)
    server.argv[-1:-1] = ["--control-socket", path or str(server.directory / "ctl"), "--name", "shop"]
    return server


HOLDING = """
import os, time

def application(environ, start_response):
    if environ["PATH_INFO"] == "/hold":
        open("held", "w").close()
        end = time.monotonic() + 120
        while not os.access("released", os.F_OK) and time.monotonic() < end:
            time.sleep(0.01)
    if environ["PATH_INFO"].startswith("/orders/"):
        environ["tricorn.route"] = "/orders/{id}"
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


@pytest.fixture(scope="module")
def shop() -> Iterator[Server]:
    """Two workers, one of which has a request as long as there are tests."""
    with (
        controlled(
            Site,
            "workers = 2\nthreads = 4\nworker_class = 'gthread'\ntimeout = 0",
            app="holding",
            files={"holding.py": HOLDING},
        ) as server,
        server.connect() as slow,
    ):
        slow.send(b"GET /hold?year=2025 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        until((server.directory / "held").exists, "the request is with the application")
        try:
            yield server
        finally:
            (server.directory / "released").touch()


def test_a_table_of_one_interval(shop: Server) -> None:
    time.sleep(1)  # a period that is measured: requests are shown from a second on
    done = tricorn(*words(shop, "--once")[len(command()) :])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("shop   tricorn ")
    assert f" · pid {shop.pid} · generation 1 · 2 of 2 workers · up " in lines[0]
    assert lines[0].endswith(" · ready")
    assert "busy 12 %" in lines[1]
    assert lines[2] == HEAD_200
    assert {int(line.split()[1]) for line in lines[3:5]} == set(shop.worker_pids())
    assert sorted(line.split()[5] for line in lines[3:5]) == ["0/4", "1/4"]
    assert lines[5] == "requests over 1 s:"
    assert re.fullmatch(r"  [12]\.[0-3] +[0-9.]+ s  call      GET /hold\?year=2025", lines[6])


def test_json_for_programs_until_they_have_seen_enough(shop: Server) -> None:
    with subprocess.Popen(words(shop, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = json.loads(process.stdout.readline())
        for _ in range(3):
            shop.get("/hello")
        looks = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
    assert first["schema"] == 1
    assert first["server"]["pid"] == shop.pid
    assert {worker["pid"] for worker in first["workers"]} == set(shop.worker_pids())
    assert all(worker["rss"] > 1 << 20 for worker in first["workers"])
    (request,) = first["requests"]
    assert request["text"] == "GET /hold?year=2025"
    assert sum(look["all"]["requests_per_second"] * look["interval"] for look in looks) == pytest.approx(3)
    assert sum(look["all"]["total"]["count"] for look in looks if look["all"]["total"]) == 3


def test_routes_as_a_table_and_for_programs(shop: Server) -> None:
    shop.get("/orders/1")
    done = tricorn(*words(shop, "--once", "--routes")[len(command()) :])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[2].split()[-2:] == ["TIME", "ROUTE"]
    assert "/orders/{id}" in {line.split()[-1] for line in lines[3:]}
    with subprocess.Popen(words(shop, "--json", "--routes"), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None

        def orders() -> dict[str, Any]:
            assert process.stdout is not None
            return next(each for each in json.loads(process.stdout.readline())["routes"] if each["route"][1:2] == "o")

        before = orders()
        for number in range(3):
            shop.get(f"/orders/{number}")
        looks = [orders() for _ in range(2)]
        process.stdout.close()
        assert process.wait(60) == 0
    assert looks[-1]["requests"] == before["requests"] + 3
    assert sum(each["total"]["count"] for each in looks if each["total"]) == 3


def test_a_terminal_that_can_nothing_gets_a_table_each_interval(shop: Server) -> None:
    for environment in ({"TERM": "dumb"}, {"TERM": ""}):
        output, status = on_a_pty(
            words(shop), environment, until_it_says=rb"(?s)workers.*workers.*workers", then=signal.SIGINT
        )
        assert status == 130
        assert b"\x1b" not in output


@pytest.mark.parametrize(
    ("name", "number", "status"),
    [("xterm-256color", None, 0), ("a-terminal-that-is-not-known-here", signal.SIGTERM, 143)],
    ids=["q", "TERM"],
)
def test_the_terminal_is_given_back(shop: Server, name: str, number: int | None, status: int) -> None:
    environment = {"TERM": name, "LC_ALL": "C.UTF-8"}
    output, ended = on_a_pty(words(shop), environment, until_it_says=rb"q quit", then=number)
    assert ended == status
    assert b"\x1b[?1049h" in output
    assert output.rindex(b"\x1b[?1049l") > output.rindex(b"q quit")


def on_a_pty(argv: list[str], env: dict[str, str], *, until_it_says: bytes, then: int | None) -> tuple[bytes, int]:
    """Its output and status. `then`: a signal that it is sent; None: the key q."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **env})
    os.close(theirs)
    output, is_told, end = b"", False, time.monotonic() + 30
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                output += os.read(ours, 65536)
            except OSError:  # EIO: it has closed the terminal (pty(7))
                break
            if not is_told and re.search(until_it_says, output):
                is_told = True
                if then is None:
                    os.write(ours, b"q")
                else:
                    process.send_signal(then)
        assert is_told, output
        return output, process.wait(60)
    finally:
        process.kill()
        process.wait(60)
        os.close(ours)


@needs_tmux
@pytest.mark.parametrize("style", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize(("width", "head"), [(80, HEAD_80), (200, HEAD_200)], ids=["80", "200"])
def test_top_screen(shop: Server, width: int, head: str, style: str) -> None:
    one, two = sorted(shop.worker_pids())
    with Tmux(words(shop), width, 20, style=style, env={"COLUMNS": "93"}) as terminal:
        terminal.wait(r"^requests over 1 s:$")
        terminal.wait(r"req/s   queue 0")
        terminal.type("Down")
        until(lambda: "7" in terminal.attributes(), "a line is chosen")
        lines = terminal.lines()
        assert lines[0].startswith("shop   tricorn ")
        assert head in lines, lines
        at = lines.index(head)
        busy = 1 if re.search(ROW % (1, one, 1, "serving", 1), lines[at + 1]) else 0
        assert re.search(ROW % (1, one, 1, "serving", busy), lines[at + 1])
        assert re.search(ROW % (2, two, 1, "serving", 1 - busy), lines[at + 2])
        assert re.match(r"  [12]\.[0-3] +[0-9.]+ s  call      GET /hold\?year=2025", lines[at + 4])
        assert lines[-1].startswith("? help  q quit  Enter stacks")
        assert terminal.attributes() <= HARMLESS
        terminal.type(*(["Down"] if busy == 0 else []), "Enter")
        terminal.wait(
            r"^worker [12] \(pid \d+\)\n +[0-9.]+ s  GET /hold\?year=2025\n +(main )?thread .*:\n.* in application"
        )
        terminal.type("Escape")
        terminal.resize(100, 12)
        terminal.wait(r"PSS  CONN  AGE   USS *$")
        terminal.type("?")
        terminal.wait("^d +drain the selected worker: a successor starts first$")
        terminal.type("q")
        assert terminal.status() == 0
        assert not terminal.is_on_alternate_screen()


@needs_tmux
def test_without_colours_and_in_read_only_mode(shop: Server) -> None:
    with Tmux(words(shop, "--read-only"), 100, 20, env={"NO_COLOR": "1"}) as terminal:
        terminal.wait("select")
        for key in "R+-":
            terminal.type(key)
            terminal.wait("not allowed: started with --read-only")
            terminal.type("r")
            terminal.wait("requests:|requests over")
        assert terminal.attributes() <= HARMLESS - {RED, MAGENTA}


@needs_tmux
def test_routes_on_the_screen(shop: Server) -> None:
    shop.get("/orders/1")
    with Tmux(words(shop), 80, 20) as terminal:
        terminal.wait(ROW % (1, min(shop.worker_pids()), 1, "serving", 0) + "|" + "serving +1/4")
        terminal.type("l")
        terminal.wait(r"^REQ/S   5XX   P50   P95   LOAD SHARE   CPU BLOCK TOTAL ROUTE *$")
        terminal.wait(r" \d+ /orders/\{id\}$")
        assert terminal.lines()[-1].startswith("? help  q quit  l workers")
        shop.get("/orders/2")
        terminal.type("s")
        terminal.wait(r"^sorted by req/s$")
        terminal.type("Escape")
        terminal.wait(r"^requests over 1 s:$")
        terminal.type("q")
        assert terminal.status() == 0


@needs_tmux
def test_a_server_that_ends_and_one_that_takes_its_place(tmp_path: Path) -> None:
    with controlled(path=str(tmp_path / "ctl")) as server, Tmux(words(server), 100, 20) as terminal:
        terminal.wait(ROW % (1, server.worker_pid(), 1, "serving", 0))
        server.stop()
        terminal.wait(r"The screen shows\s+the last state")
        assert "REQ/S" in terminal.text()
        with controlled(path=str(tmp_path / "ctl")) as second:
            terminal.wait(ROW % (1, second.worker_pid(), 1, "serving", 0))
        terminal.type("q")
        assert terminal.status() == 0
    done = tricorn(*words(server, "--once")[len(command()) :])
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1


@needs_tmux
def test_what_is_done_from_the_keyboard_is_asked_first() -> None:
    with controlled(workers=1) as server, Tmux(words(server), 100, 20) as terminal:
        (first,) = server.worker_pids()
        terminal.wait(ROW % (1, first, 1, "serving", 0))
        terminal.type("+")
        terminal.wait(r"^add a worker\? \(y/n\)$")
        terminal.type("n")
        terminal.wait("^nothing changed$")
        terminal.type("+", "y")
        terminal.wait("^scale: from 1 to 2 workers$")
        terminal.wait(r"2 of 2 workers")
        terminal.type("-", "y")
        terminal.wait(r"1 of 1 workers")
        (second,) = until(lambda: len(server.worker_pids()) == 1 and server.worker_pids(), "one is left")
        terminal.type("R")
        terminal.wait(r"^reload .*\(y/n\)$")
        terminal.type("y")
        terminal.wait("^reload committed|^[0-9] workers? exited: reload")
        terminal.wait(r"generation 2 · 1 of 1 workers")
        until(lambda: second not in server.worker_pids(), "the old one has gone")
        third = server.worker_pid()
        terminal.wait(ROW % (1, third, 2, "serving", 0))
        terminal.type("Down", "d")
        terminal.wait(rf"^drain worker \d \(pid {third}\)\? A successor starts first\. \(y/n\)$")
        assert server.worker_pids() == [third]
        terminal.type("y")
        until(lambda: third not in server.worker_pids(), "another has taken its place")
        terminal.wait(rf"{server.worker_pid()} gthread +2 serving")
        assert server.log.matching("Control: uid [0-9]+ .* requested: (scale|reload|drain)")
        terminal.type("q")
        assert terminal.status() == 0


@needs_tmux
def test_an_arbiter_that_stands_still_hides_no_worker() -> None:
    with controlled(graceful_timeout=1) as server, Tmux(words(server), 120, 20) as terminal:
        terminal.wait(ROW % (1, server.worker_pid(), 1, "serving", 0))
        server.signal(signal.SIGSTOP)
        try:
            terminal.wait("^The arbiter does not respond")
            with server.connect() as client:
                client.send(b"GET /sleep?s=20 HTTP/1.1\r\nHost: a\r\n\r\n")
                terminal.wait(ROW % (1, server.worker_pid(), 1, "serving", 1))
                terminal.wait(r"^  1\.[0-3] .* GET /sleep\?s=20$")
        finally:
            server.signal(signal.SIGCONT)
        until(lambda: "does not answer" not in terminal.text(), "it answers again")
        terminal.type("q")
        assert terminal.status() == 0


MAD = """
import random, struct, threading, time
from tricorn.metrics.scoreboard import LAYOUT

workers = 3
worker_class = "sync"
MAGIC, ORDERS = struct.pack("QQ", 0x5452_4943_4F52_4E00, LAYOUT), slice(48, 56)

def post_worker_init(worker):
    if worker.slot != 2:
        return

    def scribble():
        draw = random.Random(5)
        page = worker.spec.page
        while True:
            orders = bytes(page[ORDERS])  # a worker that is told to leave would only leave
            rubbish = bytearray(draw.randbytes(4096) if draw.random() < 0.5 else b"\\xff" * 4096)
            rubbish[ORDERS] = orders
            if draw.random() < 0.9:
                rubbish[:16] = MAGIC
            page[:4096] = bytes(rubbish)
            time.sleep(0.01)

    threading.Thread(target=scribble, daemon=True).start()
"""


@needs_tmux
def test_a_worker_that_writes_rubbish_into_its_page_harms_neither_arbiter_nor_top() -> None:
    with controlled(Site, MAD, expects=".*") as server:
        with Tmux(words(server), 100, 20) as terminal:
            terminal.wait(r"^ +2 +\d+ sync +1 \w+ +\? ")
            for _ in range(10):
                assert server.get("/hello").status == 200
                terminal.type("r")
                terminal.wait("all running requests|requests over")
            assert terminal.attributes() <= HARMLESS
            terminal.type("q")
            assert terminal.status() == 0
        done = tricorn(*words(server, "--once", "--json")[len(command()) :])
        assert done.returncode == 0, done.stderr
        assert len(json.loads(done.stdout)["workers"]) >= 2
