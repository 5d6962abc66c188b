"""A worker that ends while threads are inside the application: everything is told and flushed, and nothing aborts."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.harness import Site, until
from tests.harness.wire import request

CONFIG = """\
worker_class = "gthread"
threads = 4
graceful_timeout = 1
def worker_exit(server, worker):
    worker.log.info("hook worker_exit (pid: %s)", worker.pid)
"""


@pytest.mark.parametrize("path", ["/spin", "/nap"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_a_worker_whose_threads_are_busy_ends_in_good_order(tmp_path: Path, path: str, number: signal.Signals) -> None:
    """TERM: after `graceful_timeout` the worker is told to quit."""
    told = tmp_path / "end"
    with (
        Site(CONFIG, app="busy_end:application", env={"TRICORN_TEST_END": str(told)}) as server,
        ExitStack() as stack,
    ):
        worker = server.worker_pid()
        for _ in range(3):
            stack.enter_context(server.connect()).send(request("GET", path))
        until(lambda: server.get("/").status == 200, "the fourth thread serves")
        server.signal(number)
        assert server.wait_exit() == 0
        log = server.log
        assert not log.matching("FATAL|was sent SIG|exited with code|Fatal Python"), log.text
        assert log.matching(rf"hook worker_exit \(pid: {worker}\)")
        assert told.read_text() == f"thread {worker}\natexit {worker}\n"
        assert server.out.text.count("stays in the buffer until the end") == 3
