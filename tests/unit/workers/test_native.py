"""What settings say of a core."""

from __future__ import annotations

import mmap
import os
import socket

import pytest
from tricorn.config.command_line import read_arguments
from tricorn.config.resolve import resolve
from tricorn.workers import registry
from tricorn.workers.core_options import core_options
from tricorn.workers.native import Core

from tests.harness import proc, until
from tests.harness.core import OPTIONS, PAGE


@pytest.mark.parametrize(
    ("alias", "count"), [("sync", 1), ("gthread", 4), ("gevent", 300), ("eventlet", 300), ("auto", 300)]
)
def test_a_class_says_how_many_requests_run_at_once(alias: str, count: int) -> None:
    config = resolve([read_arguments(["--threads", "4", "--worker-connections", "300"])])
    kind = registry.load(alias)
    assert kind.at_once(config) == count
    assert core_options(config, kind, siblings=False)["threads"] == count


def test_a_core_that_is_dropped_takes_its_monitor_and_its_memory_along() -> None:
    """Without `close`: the monitor writes the scoreboard, which may be unmapped after it."""
    listener = socket.create_server(("127.0.0.1", 0))
    page = mmap.mmap(-1, PAGE)
    threads = proc.threads(os.getpid())
    core = Core([listener.detach()], OPTIONS, page)
    core.start()
    until(lambda: proc.threads(os.getpid()) == threads + 1, "the monitor runs")
    with pytest.raises(BufferError):
        page.close()
    del core
    assert proc.threads(os.getpid()) == threads
    page.close()
