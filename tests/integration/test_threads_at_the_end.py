"""Threads and processes that the application has started, when the server ends: none of them holds it for ever."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from tests.harness import THREAD_CLASSES, Site, configured, each, until

CONSUMER = """\
import atexit
import os
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from gallery import application

{start}
atexit.register(lambda: print(f"atexit in {os.getpid()}", flush=True))
"""

THREAD = 'threading.Thread(target=time.sleep, args=(600,), name="consumer").start()'
EXECUTOR = 'ThreadPoolExecutor(1, thread_name_prefix="consumer").submit(queue.Queue().get)'
WAITS_FOR_MAIN = "threading.Thread(target=threading.main_thread().join).start()"

CHILD = """\
import multiprocessing
import time

from gallery import application

child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True)
child.start()
print(f"child {child.pid}", flush=True)
"""

LEFT = r"Process {} exits with threads still running 2 seconds after its last request: consumer"


@pytest.mark.parametrize("start", [THREAD, EXECUTOR], ids=["thread", "executor"])
@THREAD_CLASSES
def test_a_thread_that_never_ends_holds_a_worker_for_two_seconds(worker_class: str, start: str) -> None:
    files = {"consumer.py": CONSUMER.replace("{start}", start)}
    config = f"{configured(worker_class)}graceful_timeout = 60\n"
    with Site(config, app="consumer:application", files=files) as server:
        server.log.wait("Ready: ")
        worker = server.worker_pid()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert server.log.matching(LEFT.format(worker)), server.log.text
        assert not server.log.matching("is still running after|was sent SIG|exited with code"), server.log.text
        assert f"atexit in {worker}" in server.out.text


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent"))
def test_the_arbiter_does_not_wait_for_ever_for_a_thread_that_preloading_has_started(worker_class: str) -> None:
    files = {"consumer.py": CONSUMER.replace("{start}", THREAD)}
    config = f"{configured(worker_class)}preload_app = True\n"
    with Site(config, app="consumer:application", files=files, fresh=True) as server:
        server.log.wait("Ready: ")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert server.log.matching(LEFT.format(server.pid)), server.log.text
        assert f"atexit in {server.pid}" in server.out.text


def test_a_thread_that_waits_for_the_main_one_ends_with_it() -> None:
    files = {"consumer.py": CONSUMER.replace("{start}", WAITS_FOR_MAIN)}
    with Site("preload_app = True\n", app="consumer:application", files=files) as server:
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert not server.log.matching("exits with threads still running")


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "eventlet"))
def test_a_worker_leaves_processes_alone_that_preloading_has_started(worker_class: str) -> None:
    """`multiprocessing` would terminate them with the first worker that leaves. The arbiter's end is theirs."""
    config = f"{configured(worker_class)}preload_app = True\n"
    with Site(config, app="child:application", files={"child.py": CHILD}) as server:
        found = until(lambda: server.out.matching(r"child (\d+)"), "the application has started a process")
        child = int(found[0][1])
        server.log.wait("Ready: ")
        (worker,) = set(server.worker_pids()) - {child}
        os.kill(worker, signal.SIGTERM)
        until(lambda: len(pids := server.worker_pids()) == 2 and worker not in pids, "the worker is replaced")
        os.kill(child, 0)
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert "AssertionError" not in server.log.text
        until(lambda: is_gone(child), "the child ends with the arbiter")


def is_gone(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return False
    return True
