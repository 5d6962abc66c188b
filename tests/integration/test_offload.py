"""Offloaded calls in workers, from outside: limits of time, the end of a worker, preloading, event loops."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness import GREEN_CLASSES, Site, each, until
from tests.harness.needs import needs
from tests.harness.scrape import scrape
from tests.harness.server import free_port, run

LIBRARY = """
import ctypes, os
c = ctypes.CDLL(None)
def wait(seconds):
    open(f"in-{os.getpid()}", "w").close()
    c.usleep(int(seconds * 1e6))
"""
WSGI = """
import slow
def application(environ, start_response):
    if environ["PATH_INFO"] != "/ping":
        slow.wait(float(environ["PATH_INFO"][1:]))
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""
ASGI = """
import slow, tricorn
async def application(scope, receive, send):
    if scope["type"] != "http":
        raise NotImplementedError
    if scope["path"] != "/ping":
        await tricorn.offload(slow.wait)(float(scope["path"][1:]))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
"""


def site(worker_class: str, *lines: str, app: str = WSGI, **options: object) -> Site:
    needs(worker_class if worker_class != "asgi" else "asyncio")
    config = "\n".join((f"worker_class = {worker_class!r}", "offload = ['slow:wait']", *lines)) + "\n"
    files = {"slow.py": LIBRARY, "waits.py": app}
    return Site(config, app="waits:application", files=files, **options)  # type: ignore[arg-type]


class Asking:
    """One request in a thread of its own; the worker is inside the call when this has been made."""

    def __init__(self, server: Site, target: str) -> None:
        self.status: int | str = 0
        self._server, self._target = server, target
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()
        folder = Path(server.directory)
        until(lambda: any(name.startswith("in-") for name in os.listdir(folder)), "the call has begun")

    def _ask(self) -> None:
        try:
            with self._server.connect(timeout=30) as wire:
                self.status = wire.get(self._target).status
        except (OSError, AssertionError) as error:
            self.status = type(error).__name__

    def join(self) -> int | str:
        self._thread.join(30)
        return self.status


@GREEN_CLASSES
def test_others_are_answered_meanwhile(worker_class: str) -> None:
    with site(worker_class) as server:
        slow = Asking(server, "/2")
        assert server.get("/ping").status == 200
        assert slow.status == 0, "it still waits"
        assert slow.join() == 200


@GREEN_CLASSES
def test_the_limit_of_a_request_holds_and_the_thread_that_is_left_is_told(worker_class: str) -> None:
    told = Told()
    with site(worker_class, "request_timeout = 1", told.line) as server:
        began = time.monotonic()
        assert server.get("/20").status == 504
        assert time.monotonic() - began < 10
        assert told(calls_total=1, abandoned_total=1, threads=1, busy=1), told.now()
        server.log.wait(r"slow:wait is still running in its thread after its request has ended")
        assert server.get("/ping").status == 200


@GREEN_CLASSES
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_a_worker_ends_although_a_thread_is_inside_a_call(worker_class: str, number: int) -> None:
    with site(worker_class, "graceful_timeout = 1") as server:
        Asking(server, "/60")
        began = time.monotonic()
        server.signal(number)
        server.process.wait(30)
        assert time.monotonic() - began < 15


def test_what_the_arbiter_imports_is_offloaded_in_its_workers_and_never_in_itself() -> None:
    with site("gevent", "preload_app = True") as server:
        slow = Asking(server, "/1")
        assert server.get("/ping").status == 200
        assert slow.status == 0
        assert len(os.listdir(f"/proc/{server.process.pid}/task")) == 1
        assert slow.join() == 200


def test_on_an_event_loop_it_is_awaited_and_the_setting_says_that_it_has_no_effect() -> None:
    with site("asgi", app=ASGI) as server:
        slow = Asking(server, "/2")
        assert server.get("/ping").status == 200
        assert slow.status == 0
        assert slow.join() == 200
        server.log.wait(r"offload \(from .*\) has no effect with asgi: on an event loop, await the call")


class Told:
    """What /metrics says of calls in threads."""

    def __init__(self) -> None:
        self._admin = ("127.0.0.1", free_port())
        self.line = f"admin_bind = '127.0.0.1:{self._admin[1]}'"

    def now(self) -> dict[str, float]:
        samples = scrape(self._admin).items()
        return {name.removeprefix("offload_"): count for (name, _), count in samples if name.startswith("offload_")}

    def __call__(self, **expected: int) -> bool:
        """Whether it is this, apart from `seconds_total`. What is left out is zero."""
        now = self.now()
        now.pop("seconds_total", None)
        return now == expected


@pytest.mark.parametrize("worker_class", each("gevent", "eventlet", "asgi"))
def test_what_threads_do_is_told_to_the_call(worker_class: str, tmp_path: Path) -> None:
    told, socket = Told(), str(tmp_path / "control")
    lines = (told.line, f"control_socket = {socket!r}", "offload_threads = 2")
    app = ASGI if worker_class == "asgi" else WSGI
    with site(worker_class, *lines, app=app) as server, ThreadPoolExecutor(3) as pool:
        assert server.get("/ping").status == 200
        assert told.now() == {}, "nothing was offloaded, and no thread is there"
        began = time.monotonic()
        asked = [pool.submit(server.get, "/2") for _ in range(3)]
        until(lambda: told(calls_total=2, threads=2, busy=2, waiting=1), "two threads are busy, and a call waits")
        assert {each.result().status for each in asked} == {200}
        for _ in range(4):
            assert server.get("/0.05").status == 200
        assert told(calls_total=7, threads=2), told.now()
        seconds = told.now()["seconds_total"]
        assert 3 * 2 + 4 * 0.05 <= seconds <= 2 * (time.monotonic() - began)

        def doctor(*words: str) -> str:
            done = run("doctor", "-s", socket, *words)
            assert done.returncode == 0, done.stderr
            return str(done.stdout)

        (worker,) = json.loads(doctor("--json"))["workers"]
        assert worker["offload"] == {
            "calls": 7,
            "seconds": round(seconds, 3),
            "abandoned": 0,
            "threads": 2,
            "busy": 0,
            "waiting": 0,
        }
        assert f"Offloaded calls: 7 ({seconds:.1f} s), 0 running" in doctor()
        os.kill(server.worker_pid(), signal.SIGKILL)
        until(lambda: told(calls_total=7), "its threads are gone, and what they did stays")
        assert told.now()["seconds_total"] == seconds


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("green_drivers = False", r"offload \(from .*\) needs green_drivers, which is off"),
        ("cures = ['confluent_kafka']", r"Invalid value for cures: 'confluent_kafka' .*did you mean 'confluent-kafka'"),
    ],
)
def test_settings_that_contradict_each_other(line: str, words: str) -> None:
    with site("gevent", line, wait=False) as server:
        assert server.process.wait(30) == 1
        server.log.wait(words)
