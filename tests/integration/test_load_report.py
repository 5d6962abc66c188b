"""The load report: the figures are right for a load that is known, and told whatever the workers are at."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.harness import Load, Server, Site, until
from tests.harness.classes import ALL_CLASSES, each
from tests.harness.core import serving
from tests.harness.deadline import PATIENCE
from tests.harness.proc import cpu_seconds
from tests.harness.scrape import scrape, value
from tests.harness.server import free_port
from tests.harness.wire import Address, Reply, Wire

SLEEPS = """\
import time

def application(environ, start_response):
    if environ["PATH_INFO"] == "/stuck":
        import ctypes
        ctypes.PyDLL(None).usleep(30_000_000)
    began = time.monotonic()
    time.sleep(0.05)
    start_response("200 OK", [])
    return [b"%.6f" % (time.monotonic() - began)]
"""
"""Says how long it was busy."""
COMPUTES = """\
import asyncio, time

async def application(scope, receive, send):
    assert scope["type"] == "http"
    began, end = time.monotonic(), time.thread_time() + 0.01
    while time.thread_time() < end and scope["path"] == "/computes":
        pass
    if scope["path"] == "/blocks":
        time.sleep(0.05)
    took = b"%.6f" % (time.monotonic() - began)
    await asyncio.sleep(0.02)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(took))]})
    await send({"type": "http.response.body", "body": took})
"""
GREEN = """\
import time

def application(environ, start_response):
    began, end = time.monotonic(), time.thread_time() + 0.01
    while time.thread_time() < end:
        pass
    took = b"%.6f" % (time.monotonic() - began)
    time.sleep(0.02)
    start_response("200 OK", [])
    return [took]
"""


def site(config: str, app: str = SLEEPS, **options: Any) -> tuple[Site, Address]:
    port = free_port()
    text = f"admin_bind = '127.0.0.1:{port}'\n{config}"
    return Site(text, app="loaded:application", files={"loaded.py": app}, **options), ("127.0.0.1", port)


def report(admin: Address) -> dict[str, Any]:
    with Wire(admin) as wire:
        reply = wire.get("/load")
    assert (reply.status, reply.get("Content-Type"), reply.get("Cache-Control")) == (
        200,
        "application/json",
        "no-store",
    )
    told: dict[str, Any] = json.loads(reply.body)
    return told


def agent(admin: Address, question: bytes = b"agent\n") -> bytes:
    """All that is answered to a balancer's own question, to the end of the connection."""
    with socket.create_connection(admin, PATIENCE) as sock:  # type: ignore[arg-type]
        sock.sendall(question)
        return b"".join(iter(lambda: sock.recv(4096), b""))


def busy(admin: Address) -> float:
    """Seconds for which workers were ever busy, when all calls are over."""
    until(lambda: report(admin)["running"] == 0, "no call runs")
    until(lambda: report(admin)["rps"] == 0, "the last samples are of no call", every=0.5)
    return value(scrape(admin), "busy_seconds_total")


class Sums:
    """Adds up what the application says that it was busy."""

    def __init__(self) -> None:
        self.calls, self.seconds = 0, 0.0
        self._lock = threading.Lock()

    def note(self, reply: Reply) -> bool:
        with self._lock:
            self.calls, self.seconds = self.calls + 1, self.seconds + float(reply.body)
        return reply.status == 200


def is_near(told: float, expected: float) -> bool:
    return 0.8 * expected <= told <= 1.2 * expected


@pytest.mark.parametrize("config", ["worker_class = 'gthread'\nthreads = 4\n", "worker_class = 'sync'\nworkers = 4\n"])
def test_half_of_the_threads_at_work_are_half_of_the_capacity(config: str) -> None:
    server, admin = site(config, workers=config.count("workers") * 3 + 1)
    sums, told = Sums(), dict[str, Any]()

    def is_half() -> bool:
        told.update(report(admin))
        of_some_time = told["window"] > 0  # else it is what there is at this moment
        return of_some_time and all(is_near(told[name], 0.5) for name in ("utilisation", "demand"))

    with server:
        report(admin)  # time is counted from the first question on
        with Load(server.address, "/", clients=2, pause=0, check=sums.note) as load:
            until(is_half, "half of the capacity is in use", every=1)
            assert (told["capacity"], told["concurrency"], told["state"]) == (4, 4, "ready")
            assert is_near(told["rps"], told["speed"] * told["utilisation"])
            load.stop()
            assert is_near(busy(admin), sums.seconds)
            assert load.tally.failures == []


@pytest.mark.parametrize("worker_class", each("asgi", "gevent", "eventlet"))
def test_an_event_loop_is_busy_while_it_computes(worker_class: str) -> None:
    """And not while its calls wait. What the server computes besides is its work, too."""
    app = COMPUTES if worker_class == "asgi" else GREEN
    server, admin = site(f"worker_class = {worker_class!r}\nworker_connections = 50\n", app)
    sums = Sums()
    with server, Load(server.address, "/computes", clients=3, pause=0, check=sums.note) as load:
        load.settle(150)
        told = report(admin)
        assert (told["capacity"], told["concurrency"]) == (1, 50)
        assert told["running"] <= 3

        def is_served() -> bool:
            told = report(admin)
            return bool(told["utilisation"] > 0.1) and is_near(told["demand"], told["utilisation"])

        until(is_served, "what comes is what is served", every=0.5)
        load.stop()
        # What the calls computed, the server's own work, and the time in which the machine kept the loop waiting.
        assert 0.95 * 0.01 * sums.calls <= busy(admin) < 1.6 * sums.seconds
        assert load.tally.failures == []


def test_an_event_loop_is_busy_while_a_call_blocks_it() -> None:
    server, admin = site("worker_class = 'asgi'\n", COMPUTES)
    with server, Load(server.address, "/blocks", clients=3, pause=0):

        def is_full() -> bool:
            told = report(admin)
            return is_near(told["utilisation"], 1) and is_near(told["demand"], 1)

        until(is_full, "the loop has no time left", every=1)


def test_what_is_turned_away_is_demand() -> None:
    server, admin = site("worker_class = 'gthread'\nthreads = 2\nqueue_limit = 1\n")
    with server, Load(server.address, "/", clients=16, pause=0.02, check=lambda reply: reply.status in (200, 503)):

        def is_asked_too_much() -> bool:
            told = report(admin)
            return bool(told["demand"] > 1.5 and told["utilisation"] > 0.8)

        until(is_asked_too_much, "more is asked for than can be done", every=1)
        until(lambda: report(admin)["state"] == "overloaded", "the queue is full for a second", every=0.2)
        said = re.compile(rb"up (\d+)% maxconn:2\n")

        def weight() -> int:
            match = said.fullmatch(agent(admin))
            assert match
            return int(match[1])

        until(lambda: 5 <= weight() <= 50, "it has half of its weight", every=0.5)


def test_a_worker_stuck_in_c_is_busy_and_changes_no_answer() -> None:
    server, admin = site("worker_class = 'gthread'\nthreads = 2\ngraceful_timeout = 1\n", expects=".")
    with server, Wire(server.address) as wire:
        wire.send(b"GET /stuck HTTP/1.1\r\nHost: t\r\n\r\n")
        until(lambda: report(admin)["running"] == 1, "the call runs")
        until(lambda: is_near(report(admin)["utilisation"], 0.5), "one of two threads is busy", every=0.5)
        assert agent(admin) == b"up 100% maxconn:2\n"
        assert value(scrape(admin), "utilisation") > 0.3
        os.kill(server.worker_pids()[0], signal.SIGKILL)


def test_a_balancers_line_is_all_of_its_connection() -> None:
    """Anything else in its place is HTTP, or no HTTP."""
    with serving(hello, admin=True) as core:
        assert core.admin is not None
        for question in (b"agent\n", b"agent\r\n"):
            assert agent(core.admin, question) == b"up 100% maxconn:1\n"
        for question in (b"weight\n", b"weight\r\n"):
            assert agent(core.admin, question) == b"up 100%\n"
        with socket.create_connection(core.admin, PATIENCE) as sock:  # type: ignore[arg-type]
            for byte in b"agent\n":
                sock.send(bytes([byte]))
            assert sock.recv(100) == b"up 100% maxconn:1\n"
        wrong = (
            b"agent\nagent\n",
            b"agent \n",
            b"Agent\n",
            b"agent\n\r\n",
            b"agent\r\n\r\n",
            b"\r\nagent\n",
            b"weight \n",
        )
        for question in wrong:
            assert agent(core.admin, question).startswith(b"HTTP/1.1 400 "), question
        with Wire(core.admin) as used:
            assert used.get("/healthz").status == 200
            assert used.send(b"agent\n").reply().status == 400
        with core.wire() as wire:
            assert wire.send(b"agent\n").reply().status == 400


def test_a_balancer_that_may_not_ask_is_told_nothing() -> None:
    with serving(hello, admin=True, admin_allow="192.0.2.0/24") as core:
        assert core.admin is not None
        assert agent(core.admin) == b"# forbidden: this address is not in admin_allow\n"
        with Wire(core.admin) as wire:
            assert wire.get("/load").status == 403


def test_a_server_that_leaves_says_so_while_it_serves() -> None:
    server, admin = site("worker_class = 'gthread'\nthreads = 2\ndrain_delay = 60\n")
    with server:
        until(lambda: agent(admin) == b"up 100% maxconn:2\n", "the worker has told of its threads")
        server.log.wait(r"Ready: ")  # what never served has no `drain_delay`, and a balancer may hear of it first
        server.signal(signal.SIGTERM)
        until(lambda: agent(admin) == b"up 0%\n", "the balancer is told")
        assert agent(admin, b"weight\n") == b"up 0%\n"
        assert report(admin)["state"] == "draining"
        assert server.get("/").status == 200
        server.signal(signal.SIGQUIT)
        server.wait_exit()


def test_counters_do_not_fall_whatever_becomes_of_the_workers() -> None:
    server, admin = site("worker_class = 'gthread'\nthreads = 2\nworkers = 2\n", workers=2)
    with server, Load(server.address, "/", clients=3, pause=0):
        names = ("arrived_total", "busy_seconds_total")
        seen = [0.0, 0.0]

        def grew() -> bool:
            now = [value(scrape(admin), name) for name in names]
            assert now[0] >= seen[0], "what came is no less"
            assert now[1] >= seen[1], "nor is what kept workers busy"
            more = now[0] > seen[0] and now[1] > seen[1]
            seen[:] = now
            return more

        for disturbance in (None, signal.SIGKILL, signal.SIGHUP):
            if disturbance == signal.SIGKILL:
                os.kill(server.worker_pids()[0], disturbance)
            elif disturbance is not None:
                server.signal(disturbance)
            for _ in range(3):
                until(grew, f"the counters grow after {disturbance}", every=0.2)


@ALL_CLASSES
def test_trusted_peers_are_told_in_responses(worker_class: str) -> None:
    with Server(worker_class=worker_class, load_report="orca", header="X-Standing: 1") as server:
        with server.connect() as wire:

            def field() -> str:
                reply = wire.get("/hello")
                assert reply.get("X-Standing") == "1"
                return reply.get("endpoint-load-metrics") or ""

            kind, _, rest = until(field, "the field").partition(" ")
        figures = {name: float(number) for name, _, number in (part.partition("=") for part in rest.split(","))}
        assert (kind, set(figures)) == ("TEXT", {"application_utilization", "rps_fractional"})
        assert 0 < figures["application_utilization"] <= 1
        assert figures["rps_fractional"] > 0


def test_other_peers_are_not_told() -> None:
    server, admin = site("worker_class = 'gthread'\nload_report = 'orca'\nforwarded_allow_ips = '192.0.2.1'\n")
    with server, Load(server.address, "/", clients=1, pause=0), Wire(server.address) as wire:
        until(lambda: report(admin)["rps"] > 0, "there is something to tell", every=0.2)
        assert [wire.get("/").get("endpoint-load-metrics") for _ in range(5)] == [None] * 5


def test_without_the_setting_nothing_is_told_in_responses() -> None:
    with serving(hello, admin=True) as core, core.wire() as wire:
        assert core.admin is not None
        for _ in range(3):
            assert wire.get("/").get("endpoint-load-metrics") is None
            report(core.admin)


def test_a_server_that_is_asked_nothing_uses_no_processor() -> None:
    server, admin = site("worker_class = 'gthread'\nworkers = 2\nload_report = 'orca'\nadmin_page = ''\n", workers=2)
    with server:
        assert server.get("/").status == 200
        report(admin)
        # A period that is measured: as long as the samples of a report go back.
        pids = [server.pid, *server.worker_pids()]
        before = {pid: cpu_seconds(pid) for pid in pids}
        time.sleep(3)
        assert all(cpu_seconds(pid) - before[pid] <= 0.02 for pid in pids)


def hello(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("200 OK", [])
    return [b"hello"]
