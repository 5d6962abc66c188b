"""Readings of /proc."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest
from tricorn_bench.bench import proc
from tricorn_bench.bench.proc import Cpu

from tests.harness import until


def test_the_split_is_scaled_to_the_exact_sum() -> None:
    spent = Cpu(1.0, 0.6, 0.4) - Cpu(0.0, 0.0, 0.0)
    assert spent.total == 1.0
    spent = Cpu(2.0, 0.6, 0.2) - Cpu(1.0, 0.0, 0.0)
    assert (spent.total, spent.user, spent.system) == (1.0, pytest.approx(0.75), pytest.approx(0.25))


def test_threads_that_have_ended_are_counted_by_ticks() -> None:
    """A thread for each request: the scheduler's sum over those that live has lost most of it."""
    spent = Cpu(0.1, 1.5, 0.5) - Cpu(0.05, 0.0, 0.0)
    assert spent.total == 2.0
    assert spent.user == pytest.approx(1.5)


def test_children_of_children_are_found_and_counted() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as parent:
        try:
            found = until(lambda: proc.descendants(parent.pid), "its child runs")
            assert parent.pid in proc.descendants(os.getpid())
            assert until(lambda: proc.memory(found[0]).pss, "it has memory") > 0
        finally:
            assert parent.stdin is not None
            parent.stdin.write(b"\n")
            parent.stdin.close()
    assert proc.threads(found[0]) == 0
    assert proc.name(found[0]) == ""


def test_connections_at_a_port_are_counted_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert proc.connections(port) == 0
        with socket.create_connection(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
            assert proc.connections(port) == 2


def test_threads_of_this_process() -> None:
    before, go = proc.threads(os.getpid()), threading.Event()
    thread = threading.Thread(target=go.wait)
    thread.start()
    try:
        assert proc.threads(os.getpid()) == before + 1
    finally:
        go.set()
        thread.join()
