"""A call on the main thread that the server cannot wait for ends by SystemExit, and its client gets an answer."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.harness import Server, Site
from tests.harness.wire import request

FINALLY = """\
import atexit
import os
import time

atexit.register(lambda: print(f"atexit in {os.getpid()}", flush=True))


def application(environ, start_response):
    print("begun", flush=True)
    try:
        time.sleep(60)
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


@pytest.mark.parametrize("end", ENDS)
def test_clean_up_runs_and_the_client_gets_a_500(end: str) -> None:
    config, begin = ENDS[end]
    with Site(f"worker_class = 'sync'\n{config}", app="held:application", files={"held.py": FINALLY}) as server:
        server.log.wait("Ready: ")
        worker = server.worker_pid()
        with server.connect() as wire:
            wire.send(request("GET", "/"))
            server.out.wait("begun")
            begin(server)
            assert wire.reply().status == 500
        server.out.wait(f"atexit in {worker}")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert server.out.text.count("finally") == 1
        assert server.log.matching(rf"Worker exiting \(pid: {worker}\)")
        assert not server.log.matching("was sent SIG|exited with code"), server.log.text


def test_the_hook_worker_abort_sees_the_frames_of_the_application() -> None:
    config = f"worker_class = 'sync'\ntimeout = 1\n{HOOK}"
    with Site(config, app="held:application", files={"held.py": FINALLY}) as server, server.connect() as wire:
        wire.send(request("GET", "/"))
        assert wire.reply().status == 500
        (told,) = server.log.wait(r"aborted in (.*)")
        assert "'application'" in told[1]


def test_a_call_that_keeps_on_is_killed() -> None:
    files = {
        "deaf.py": FINALLY.replace("    finally:\n", "    except SystemExit:\n        time.sleep(60)\n    finally:\n")
    }
    with Site("worker_class = 'sync'\n", app="deaf:application", files=files) as server, server.connect() as wire:
        wire.send(request("GET", "/"))
        server.out.wait("begun")
        server.signal(signal.SIGQUIT)
        assert server.wait_exit() == 0
        assert server.log.matching("was sent SIGKILL")
