"""Metrics: what is told of all workers, whichever answers, and whatever has become of those that counted."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness import KINDS, Server, Site, until
from tests.harness.core import serving
from tests.harness.proc import children
from tests.harness.scrape import Samples, Watching, scrape, value
from tests.harness.server import free_port
from tests.harness.wire import Wire

FAILING = """\
def application(environ, start_response):
    if environ["PATH_INFO"] == "/error":
        raise RuntimeError("a test asked for it")
    status = {"/missing": "404 Not Found", "/teapot": "418 I'm a teapot"}.get(environ["PATH_INFO"], "200 OK")
    start_response(status, [("Content-Length", "2")])
    return [b"ok"]
"""


def site(config: str, **options: Any) -> tuple[Site, tuple[str, int]]:
    port = free_port()
    text = f"admin_bind = '127.0.0.1:{port}'\n{config}"
    return Site(text, app="failing:application", files={"failing.py": FAILING}, **options), ("127.0.0.1", port)


class Client:
    """Asks, and counts what it is answered."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.codes: dict[str, int] = {}

    def ask(self, path: str, times: int = 1) -> None:
        for _ in range(times):
            code = str(self._server.get(path).status)
            self.codes[code] = self.codes.get(code, 0) + 1

    def agrees(self, samples: Samples) -> bool:
        told = {
            dict(labels)["code"]: int(count) for (name, labels), count in samples.items() if name == "responses_total"
        }
        return told == self.codes


def test_memory_of_each_process_is_told_once_it_is_measured() -> None:
    server, admin = site("preload_app = 'mold'\nworkers = 2\n", workers=2)
    processes = ("arbiter", "mold", "1", "2")
    with server:

        def measured() -> Samples | None:
            now = scrape(admin)
            return now if all(value(now, "process_pss_bytes", process=each) for each in processes) else None

        now = until(measured, "all were measured")
        for each in processes:
            pss, uss, shared = (value(now, f"process_{kind}_bytes", process=each) for kind in ("pss", "uss", "shared"))
            assert 0 < uss < pss < uss + shared, each
        told = {dict(labels)["process"] for name, labels in now if name == "process_pss_bytes"}
        assert told == set(processes)


def test_totals_are_what_a_client_counted_whatever_becomes_of_the_workers() -> None:
    server, admin = site("workers = 2\nworker_class = 'gthread'\nthreads = 2\n", workers=2)
    with server, Watching(admin) as watching:
        client = Client(server)

        def all_is_counted(by: str) -> Samples:
            """A response is counted a moment after its client has it."""
            return until(lambda: told if client.agrees(told := scrape(admin)) else None, by)

        def replaced(old: set[int]) -> None:
            until(lambda: len(children(server.pid)) == 2 and not old & set(children(server.pid)), "new workers")

        client.ask("/", 20)
        client.ask("/missing", 3)
        client.ask("/teapot", 2)
        with server.connect() as wire:
            assert wire.send(b"nonsense\r\n\r\n").reply().status == 400
            client.codes["400"] = 1
        all_is_counted("in the first workers")
        for reload in range(2):
            old = set(server.worker_pids())
            server.signal(signal.SIGHUP)
            client.ask("/", 10)
            replaced(old)
            client.ask("/missing", 2)
            all_is_counted(f"reload {reload}")
        # The next generation's pages are of another length, and all that was counted is still told.
        server.conf.write_text(server.conf.read_text().replace("threads = 2", "threads = 40"))
        old = set(server.worker_pids())
        server.signal(signal.SIGHUP)
        replaced(old)
        client.ask("/", 5)
        all_is_counted("with more threads")
        (killed, *_) = server.worker_pids()
        os.kill(killed, signal.SIGKILL)
        until(lambda: killed not in children(server.pid), "the worker is gone")
        client.ask("/", 5)
        samples = all_is_counted("after SIGKILL")
        server.signal(signal.SIGTTOU)
        until(lambda: len(children(server.pid)) == 1, "a worker less")
        until(lambda: value(scrape(admin), "worker_exits_total", reason="scale") == 1, "the arbiter knows of its end")
        samples = all_is_counted("with a worker less")
        assert watching.count > 10
        assert watching.fallen == []
    assert value(samples, "requests_total") == sum(client.codes.values()) - 1
    assert value(samples, "refused_total", reason="request_line") == 1
    assert value(samples, "request_duration_seconds_count") == value(samples, "requests_total")
    assert value(samples, "reloads_total", result="committed") == 3
    exits = {
        reason: value(samples, "worker_exits_total", reason=reason) for reason in ("reload", "killed", "scale", "crash")
    }
    assert exits == {"reload": 6, "killed": 1, "scale": 1, "crash": 0}
    assert value(samples, "workers_started_total") == 9
    assert value(samples, "generation") == 4


def test_a_worker_that_has_served_enough_takes_no_count_with_it() -> None:
    server, admin = site("workers = 1\nworker_class = 'sync'\nmax_requests = 5\n")
    with server, Watching(admin) as watching:
        client = Client(server)

        def has_ended(count: int) -> bool:
            client.ask("/", 6)  # a worker goes when its successor is up, and serves meanwhile
            return value(scrape(admin), "worker_exits_total", reason="max_requests") >= count

        until(lambda: has_ended(3), "workers have ended", every=0.1)
        samples = until(lambda: told if client.agrees(told := scrape(admin)) else None, "all are counted")
        assert watching.fallen == []
    assert value(samples, "requests_total") == client.codes["200"]


def test_an_error_is_counted_and_a_broken_reload_too(tmp_path: Path) -> None:
    server, admin = site("workers = 1\n")
    with server:
        assert server.get("/error").status == 500
        until(lambda: value(scrape(admin), "application_errors_total") == 1, "the error")
        server.conf.write_text("workers = 'no number'\n")
        server.signal(signal.SIGHUP)
        until(lambda: value(scrape(admin), "reloads_total", result="refused") == 1, "the reload")


def took(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def test_a_scrape_is_answered_while_every_python_is_stuck() -> None:
    port = free_port()
    options = {"worker_class": "gthread", "workers": 2, "threads": 1, "timeout": 0, "graceful_timeout": 1}
    with Server("stuck:application", admin_bind=f"127.0.0.1:{port}", **options) as server:
        stuck = []
        admin = ("127.0.0.1", port)
        for running in (1, 2):
            stuck.append(server.connect().send(b"GET /c HTTP/1.1\r\nHost: t\r\n\r\n"))
            until(lambda running=running: value(scrape(admin), "requests_running") == running, "a worker is stuck")
        samples = scrape(admin, openmetrics=True)
        assert value(samples, "requests_running") == 2
        assert value(samples, "busy_ratio") == 1
        assert [value(samples, "worker_busy", worker=slot) for slot in "12"] == [1, 1]
        assert value(samples, "listen_backlog", listener=f"127.0.0.1:{server.port}") == 0
        assert value(samples, "listen_backlog_limit", listener=f"127.0.0.1:{server.port}") > 0
        assert all(value(samples, "worker_rss_bytes", worker=slot) > 1 << 20 for slot in "12")
        # Nothing of it waits for a thread that is stuck, which they are until they are killed.
        best = min(took(lambda: scrape(admin)) for _ in range(30))
        print(f"a scrape while all are stuck: {best * 1000:.1f} ms")
        assert best < 1
        for wire in stuck:
            wire.close()
        for pid in server.worker_pids():
            os.kill(pid, signal.SIGKILL)
        server.signal(signal.SIGQUIT)


@KINDS
def test_every_class_tells_the_same(worker_class: str) -> None:
    port = free_port()
    with Server(worker_class=worker_class, workers=2, admin_bind=f"127.0.0.1:{port}") as server:
        admin = ("127.0.0.1", port)
        until(lambda: value(scrape(admin), "workers", state="serving") == 2, "both workers serve")
        for _ in range(5):
            assert server.get("/").status == 200
        samples = until(lambda: s if value(s := scrape(admin), "requests_total") == 5 else None, "five requests")
        names = {name for name, _ in samples}
        more = {name for name, _ in scrape(admin, openmetrics=True)} - names
        assert more <= {"loop_work_seconds_total", "loop_blocked_seconds_total"}, "which a loop may have come to since"
        for duration in ("request", "queue", "application"):
            assert value(samples, f"{duration}_duration_seconds_count") == 5
            assert value(samples, f"{duration}_duration_seconds_bucket", le="+Inf") == 5
        assert 0 < value(samples, "application_duration_seconds_sum") < value(samples, "request_duration_seconds_sum")
        assert ("gil_wait_seconds_count" in names) == (worker_class in ("sync", "gthread"))
        assert value(samples, "workers", state="serving") == value(samples, "workers_target") == 2
        assert value(samples, "connections_accepted_total") >= 5
        assert value(samples, "bytes_total", direction="in") > 0 < value(samples, "bytes_total", direction="out")
        (info,) = [dict(labels) for name, labels in samples if name == "info"]
        assert (set(info), info["class"]) == ({"version", "python", "class"}, worker_class)


def hello(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return [b"hello"]


def test_who_may_ask_and_where_are_settings() -> None:
    with serving(hello, admin=True, metrics_path="") as core:
        assert core.admin is not None
        with Wire(core.admin) as wire:
            assert wire.get("/metrics").status == 404
    with serving(hello, admin=True, metrics_path="/numbers", admin_allow="10.0.0.0/8,127.0.0.2") as core:
        assert core.admin is not None
        for source, status in [("127.0.0.1", 403), ("127.0.0.2", 200)]:
            with socket.create_connection(core.admin, source_address=(source, 0)) as connection:
                for path in ("/numbers", "/healthz"):
                    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: t\r\n\r\n".encode())
                    assert connection.recv(1 << 16).startswith(f"HTTP/1.1 {status} ".encode()), (source, path)


def test_other_methods_are_not_for_metrics_and_head_has_no_body() -> None:
    with serving(hello, admin=True) as core:
        assert core.admin is not None
        with Wire(core.admin) as wire:
            assert wire.ask("POST", "/metrics").status == 405
        with Wire(core.admin) as wire:
            reply = wire.ask("HEAD", "/metrics")
            assert (reply.status, reply.body) == (200, b"")
            assert int(reply.get("Content-Length") or 0) > 1000


@pytest.mark.parametrize("path", ["/metrics?collect[]=x", "/metrics"])
def test_a_query_changes_nothing(path: str) -> None:
    with serving(hello, admin=True) as core:
        assert core.admin is not None
        with Wire(core.admin) as wire:
            assert b"tricorn_requests_total 0\n" in wire.get(path).body
