"""A call that the server cannot wait for ends by SystemExit, and its client gets an answer."""

from __future__ import annotations

import signal
from collections.abc import Callable
from itertools import product

import pytest

from tests.harness import Server, Site
from tests.harness.wire import request

FINALLY = """\
import atexit
import os
import time

atexit.register(lambda: print(f"atexit in {os.getpid()}", flush=True))


def wait():
    time.sleep(60)


def step():
    for _ in range(6000):
        time.sleep(0.01)


def spin():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass


def application(environ, start_response):
    print("begun", flush=True)
    try:
        globals()[environ["PATH_INFO"][1:]]()
    finally:
        print("finally", flush=True)
"""

HOOK = """\
import traceback


def worker_abort(worker):
    worker.log.info("aborted in %s", [frame.name for frame in traceback.extract_stack()])
"""


def send(number: signal.Signals) -> Callable[[Server], None]:
    return lambda server: server.signal(number)


ENDS = {
    "timeout": ("timeout = 1\n", lambda server: None),
    "INT": ("", send(signal.SIGINT)),
    "QUIT": ("", send(signal.SIGQUIT)),
    "graceful_timeout": ("graceful_timeout = 1\n", send(signal.SIGTERM)),
}

CALLS = [("sync", "wait"), ("sync", "spin"), ("gthread", "step"), ("gthread", "spin")]
CALLS += [(worker_class, call) for worker_class in ("gevent", "eventlet") for call in ("wait", "spin")]
# A greenlet that waits lets others go on: it has no limit but `request_timeout`.
CASES = [
    (worker_class, call, end)
    for (worker_class, call), end in product(CALLS, ENDS)
    if not (worker_class in ("gevent", "eventlet") and call == "wait" and end == "timeout")
]


@pytest.mark.parametrize(("worker_class", "call", "end"), CASES)
def test_clean_up_runs_and_the_client_gets_a_500(worker_class: str, call: str, end: str) -> None:
    config, begin = ENDS[end]
    config = f"worker_class = '{worker_class}'\n{config}"
    with Site(config, app="held:application", files={"held.py": FINALLY}) as server:
        server.log.wait("Ready: ")
        worker = server.worker_pid()
        with server.connect() as wire:
            wire.send(request("GET", f"/{call}"))
            server.out.wait("begun")
            begin(server)
            assert wire.reply().status == 500
        server.out.wait(f"atexit in {worker}")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert server.out.text.count("finally") == 1
        assert server.log.matching(rf"Worker exiting \(pid: {worker}\)")
        assert not server.log.matching("was sent SIG|exited with code"), server.log.text


@pytest.mark.parametrize("worker_class", ["sync", "gthread", "gevent", "eventlet"])
def test_a_timeout_is_one_line(worker_class: str) -> None:
    """With the request and its stack; that workers come and go is told as always."""
    config = f"worker_class = '{worker_class}'\ntimeout = 1\n"
    with Site(config, app="held:application", files={"held.py": FINALLY}) as server, server.connect() as wire:
        server.log.wait("Ready: ")
        (worker,) = server.worker_pids()
        wire.send(request("GET", "/spin"))
        wire.ended()
        server.log.wait(rf"Worker exiting \(pid: {worker}\)")
        told = server.log.matching(r"\[(WARNING|ERROR|CRITICAL)\] (.*)")
        assert [line[1] for line in told] == ["CRITICAL"], server.log.text
        assert told[0][2].startswith(f"WORKER TIMEOUT (pid:{worker}): GET /spin has been running for 1.")
        assert server.log.matching(r'held\.py", line \d+ in spin')


def test_threads_that_wait_in_c_are_left_after_a_while() -> None:
    """No exception reaches them; the process does not wait for the arbiter to kill it."""
    with Site("worker_class = 'gthread'\n", app="held:application", files={"held.py": FINALLY}) as server:
        server.log.wait("Ready: ")
        worker = server.worker_pid()
        with server.connect() as wire:
            wire.send(request("GET", "/wait"))
            server.out.wait("begun")
            server.signal(signal.SIGQUIT)
            assert wire.ended() == b""
        assert server.wait_exit() == 0
        assert server.out.matching(f"atexit in {worker}")
        assert not server.log.matching("was sent SIG"), server.log.text


def test_the_hook_worker_abort_sees_the_frames_of_the_application() -> None:
    config = f"worker_class = 'sync'\ntimeout = 1\n{HOOK}"
    with Site(config, app="held:application", files={"held.py": FINALLY}) as server, server.connect() as wire:
        wire.send(request("GET", "/wait"))
        assert wire.reply().status == 500
        (told,) = server.log.wait(r"aborted in (.*)")
        assert "'application'" in told[1]


def test_a_call_that_keeps_on_is_killed() -> None:
    files = {
        "deaf.py": FINALLY.replace("    finally:\n", "    except SystemExit:\n        time.sleep(60)\n    finally:\n")
    }
    with Site("worker_class = 'sync'\n", app="deaf:application", files=files) as server, server.connect() as wire:
        wire.send(request("GET", "/wait"))
        server.out.wait("begun")
        server.signal(signal.SIGQUIT)
        assert server.wait_exit() == 0
        assert server.log.matching("was sent SIGKILL")
