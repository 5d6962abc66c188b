"""The reader agrees with the page that a real core writes."""

from __future__ import annotations

import mmap
import os
import socket
import threading

import pytest
from tricorn import _core
from tricorn.config.resolve import resolve
from tricorn.metrics import scoreboard
from tricorn.workers.native import core_options

OPTIONS = core_options(resolve([]), "gthread", siblings=False)


def hello(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def test_a_core_writes_what_the_reader_reads() -> None:
    page = mmap.mmap(-1, _core.SCOREBOARD_BYTES)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        core = _core.Core([os.dup(listener.fileno())], OPTIONS, page)
    gateway = _core.WsgiGateway(hello, {"SCRIPT_NAME": ""}, lambda *_: None)
    core.start()
    thread = threading.Thread(target=core.serve, args=(gateway,))
    thread.start()
    try:
        with socket.create_connection(address, timeout=10) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            while client.recv(4096):
                pass
        with socket.create_connection(address, timeout=10) as client:
            client.sendall(b"nonsense\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 400 ")
    finally:
        core.stop()
        thread.join(10)
        core.close()
    snapshot = scoreboard.read(page[:])
    assert snapshot is not None
    assert (snapshot.pid, snapshot.state, snapshot.threads) == (os.getpid(), scoreboard.State.STOPPED, 1)
    assert snapshot.statuses == (0, 2, 0, 1, 0)
    assert snapshot.counters["requests"] == 2
    assert snapshot.counters["accepted"] == 2
    assert snapshot.counters["refused"] == 1
    assert snapshot.total_time.total == 2
    assert snapshot.gauges["in_flight"] == 0


def test_bucket_edges_double_every_four_buckets() -> None:
    edges = [scoreboard.bucket_floor(index) for index in range(scoreboard.BUCKETS)]
    assert edges[:8] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert all(late == 2 * early for early, late in zip(edges[4:], edges[8:], strict=False))


def test_a_quantile_is_the_edge_of_its_bucket() -> None:
    counts = [0] * scoreboard.BUCKETS
    counts[3], counts[20] = 99, 1
    histogram = scoreboard.Histogram(counts)
    assert histogram.quantile(0.5) == 3
    assert histogram.quantile(1.0) == scoreboard.bucket_floor(20)
    assert scoreboard.Histogram([0] * scoreboard.BUCKETS).quantile(0.5) == 0


def test_a_page_nobody_began_is_no_worker() -> None:
    assert scoreboard.read(bytes(_core.SCOREBOARD_BYTES)) is None


def test_another_layout_is_refused() -> None:
    page = bytearray(_core.SCOREBOARD_BYTES)
    scoreboard.PAGE.pack_into(page, 0, scoreboard.MAGIC, 999, *[0] * (scoreboard.WORDS - 2))
    with pytest.raises(ValueError, match="layout 999"):
        scoreboard.read(bytes(page))
