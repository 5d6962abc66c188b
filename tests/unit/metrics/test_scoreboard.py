"""The reader agrees with the page that a real core writes."""

from __future__ import annotations

import mmap
import os
import socket
import struct
import threading
import time

import pytest
from tricorn import _core, workers
from tricorn.config.resolve import resolve
from tricorn.metrics import scoreboard
from tricorn.workers.native import core_options

from tests.harness.shared_memory import SharedMemory

OPTIONS = core_options(resolve([]), workers.load("gthread"), siblings=False)


def hello(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def test_a_core_writes_what_the_reader_reads() -> None:
    page = mmap.mmap(-1, _core.scoreboard_bytes(1))
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
    assert scoreboard.read(bytes(4096)) is None


def begun(entries: int = 2, words: int = scoreboard.WORDS) -> memoryview:
    """A page as a core leaves it that has just begun."""
    page = memoryview(bytearray(words * 8)).cast("Q")
    page[0], page[1], page[3], page[5] = scoreboard.MAGIC, scoreboard.VERSION, 1, 4
    page[scoreboard.ENTRIES] = entries
    return page


def put(page: memoryview, slot: int, started: int, text: bytes) -> None:
    at = scoreboard.TABLE + slot * scoreboard.ENTRY
    page[at], page[at + 1] = started, len(text)
    page[at + 2 : at + 15] = memoryview(text.ljust(104, b"\0")).cast("Q")


def test_another_layout_is_refused() -> None:
    page = begun()
    page[1] = 999
    with pytest.raises(ValueError, match="layout 999"):
        scoreboard.read(page)


def test_the_page_says_which_requests_are_running_and_since_when() -> None:
    page = begun()
    put(page, 1, time.monotonic_ns() - 2_000_000_000, b"GET /slow?x=1")
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    (request,) = snapshot.requests
    assert (request.slot, request.text) == (1, "GET /slow?x=1")
    assert 2 <= request.age < 20


def test_a_target_that_is_no_text_and_a_length_that_is_none_harm_nobody() -> None:
    page = begun()
    put(page, 0, 1, b"GET /\xff\xc3")
    put(page, 1, time.monotonic_ns() + 10**12, b"x" * 104)
    page[scoreboard.TABLE + scoreboard.ENTRY + 1] = 2**64 - 1
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    assert [request.text for request in snapshot.requests] == ["GET /\ufffd\ufffd", "x" * 104]
    assert snapshot.requests[1].age == 0


def test_a_page_that_is_too_short_for_its_entries_is_read_as_far_as_it_goes() -> None:
    page = begun(entries=10**9)
    put(page, 3, 1, b"GET /")
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    assert [request.slot for request in snapshot.requests] == [3]


def test_no_entry_is_looked_at_that_was_never_used() -> None:
    page = begun(entries=1)
    put(page, 0, 1, b"GET /used")
    put(page, 1, 1, b"GET /not")
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    assert [request.text for request in snapshot.requests] == ["GET /used"]


def test_who_wants_no_requests_gets_none() -> None:
    page = begun()
    put(page, 0, 1, b"GET /")
    snapshot = scoreboard.read(page, requests=False)
    assert snapshot is not None
    assert (snapshot.threads, snapshot.requests) == (4, ())


def test_a_cleared_page_is_one_that_nobody_began() -> None:
    page = begun(entries=3)
    put(page, 2, 1, b"GET /")
    scoreboard.order(page, drain=True)
    scoreboard.clear(page)
    assert scoreboard.read(page) is None
    assert bytes(page) == bytes(len(page) * 8)


def test_the_page_says_how_many_connections_to_databases_there_are() -> None:
    page = begun()
    scoreboard.count_databases(page, 7)
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    assert snapshot.gauges["databases"] == 7
    assert scoreboard.sum_of_databases(memoryview(bytes(page) + bytes(len(page)) + bytes(page)), len(page)) == 14
    scoreboard.vacate(page)
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    assert snapshot.gauges["databases"] == 0


def test_room_for_ten_thousand_requests_takes_no_memory_until_they_come() -> None:
    size = _core.scoreboard_bytes(10_000)
    memory = SharedMemory(size)
    page = memory.map
    with socket.create_server(("127.0.0.1", 0)) as listener:
        core = _core.Core([os.dup(listener.fileno())], OPTIONS | {"threads": 10_000}, page)
    core.start()
    try:
        snapshot = scoreboard.read(page)
        assert snapshot is not None
        assert (snapshot.threads, snapshot.requests) == (10_000, ())
    finally:
        core.close()
    scoreboard.vacate(page)
    scoreboard.clear(page)
    assert size > 1_280_000
    assert memory.allocated() == 4096


def test_the_page_says_how_long_somebody_has_waited_and_who_is_free() -> None:
    page = begun()
    page[10], page[12], page[13] = 3, 1, time.monotonic_ns() - 2_000_000_000
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    assert (snapshot.gauges["queued"], snapshot.gauges["free"]) == (3, 1)
    assert 2 <= snapshot.oldest_wait < 20


def test_where_nobody_waits_nobody_has_waited() -> None:
    page = begun()
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    assert snapshot.oldest_wait == 0
    page[13] = time.monotonic_ns() + 10**12
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    assert snapshot.oldest_wait == 0, "a moment that is yet to come"


def test_the_queue_has_counters() -> None:
    page = begun()
    page[40:45] = memoryview(struct.pack("5Q", 1, 2, 3, 4, 5)).cast("Q")
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    names = ["handed_over", "taken_over", "queue_full", "queue_late", "left_queue"]
    assert [snapshot.counters[name] for name in names] == [1, 2, 3, 4, 5]


def test_nobody_counts_on_a_worker_that_is_gone() -> None:
    page = begun()
    page[10], page[12], page[13] = 3, 1, 5
    put(page, 0, 1, b"GET /")
    scoreboard.vacate(page)
    snapshot = scoreboard.read(page)
    assert snapshot is not None
    assert (snapshot.gauges["free"], snapshot.oldest_wait) == (0, 0)
    assert (snapshot.gauges["queued"], len(snapshot.requests)) == (3, 1), "the rest is what its post mortem is made of"


def test_the_page_of_the_group_says_what_is_on_its_way_and_what_the_limit_is() -> None:
    page = bytearray(scoreboard.GROUP_BYTES)
    assert scoreboard.read_group(page) == scoreboard.Group(0, 0, 0, 0, 0, 0.0)
    page[:48] = struct.pack("6Q", 7, 5, 3, 12, 4711, 20_000_000)
    group = scoreboard.read_group(page)
    assert group == scoreboard.Group(7, 5, 3, 12, 4711, 0.02)
    assert group.in_channel == 2


def test_what_was_taken_before_it_was_counted_as_sent_is_not_less_than_nothing() -> None:
    page = bytearray(scoreboard.GROUP_BYTES)
    page[:16] = struct.pack("2Q", 5, 6)
    assert scoreboard.read_group(page).in_channel == 0


def test_orders_are_bits_of_one_word_and_replace_one_another() -> None:
    page = begun()
    scoreboard.order(page, drain=True)
    assert page[6] == 2
    scoreboard.order(page, not_ready=True, drain=True)
    assert page[6] == 3
    scoreboard.order(page)
    assert page[6] == 0


def test_a_worker_without_a_core_has_a_heartbeat_that_is_looked_at() -> None:
    page = memoryview(bytearray(scoreboard.WORDS * 8))
    scoreboard.begin(page, 17)
    first = scoreboard.read(page)
    assert first is not None
    assert (first.pid, first.state, first.threads, first.gauges["in_flight"]) == (17, scoreboard.State.SERVING, 1, 1)
    assert first.requests == ()
    scoreboard.beat(page)
    second = scoreboard.read(page)
    assert second is not None
    assert second.heartbeat > first.heartbeat
