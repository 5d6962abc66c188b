"""The reader agrees with the page that a real core writes."""

from __future__ import annotations

import mmap
import os
import socket
import struct
import threading
import time
from typing import Any, get_args

import pytest
from tricorn import _core
from tricorn.arbiter.policy.worker import Cause
from tricorn.config.resolve import resolve
from tricorn.metrics.scoreboard import (
    LAYOUT,
    Ledger,
    LedgerReader,
    PageReader,
    Scoreboard,
    Snapshot,
    histogram_edges,
    pages_in_use,
    sum_of_databases,
)
from tricorn.workers import registry
from tricorn.workers.core_options import core_options

from tests.harness.page import ENTRY, FREE, OLDEST, PAGES, QUEUED, TABLE, begun, put
from tests.harness.shared_memory import SharedMemory

OPTIONS = core_options(resolve([]), registry.load("gthread"), siblings=False)


def hello(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def of(page: Any) -> Scoreboard:
    return Scoreboard(memoryview(page).cast("B"))


def read(page: Any) -> Snapshot:
    snapshot = of(page).read()
    assert snapshot is not None
    return snapshot


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
    snapshot = read(page)
    assert (snapshot.pid, snapshot.state, snapshot.threads) == (os.getpid(), "stopped", 1)
    assert snapshot.statuses == (0, 2, 0, 1, 0)
    assert snapshot.figures["requests"] == 2
    assert snapshot.figures["accepted"] == 2
    assert snapshot.figures["refused"] == 1
    assert sum(Scoreboard(page).histogram("total").values()) == 2
    assert snapshot.figures["in_flight"] == 0


def test_another_layout_is_refused() -> None:
    page = begun()
    page[1] = LAYOUT
    assert read(page)
    page[1] = 999
    with pytest.raises(ValueError, match="layout 999"):
        read(page)


@pytest.mark.parametrize("page", [bytearray(64), bytes(4096), memoryview(bytearray(4104))[1:]])
def test_what_is_no_page_is_refused(page: Any) -> None:
    """Too short, not writable, not aligned."""
    with pytest.raises(ValueError, match="scoreboard"):
        Scoreboard(page)


def test_a_page_nobody_began_is_no_worker() -> None:
    board = Scoreboard(bytearray(4096))
    assert (board.read(), board.begun, board.requests()) == (None, 0, [])


def test_the_page_says_which_requests_are_running_and_since_when() -> None:
    page = begun()
    put(page, 1, time.monotonic_ns() - 2_000_000_000, b"GET /slow?x=1")
    (request,) = of(page).requests()
    assert (request.slot, request.text) == (1, "GET /slow?x=1")
    assert request.started == page[TABLE + ENTRY]
    assert 2 <= request.age < 20


def test_a_target_that_is_no_text_and_a_length_that_is_none_harm_nobody() -> None:
    page = begun()
    put(page, 0, 1, b"GET /\xff\xc3")
    put(page, 1, time.monotonic_ns() + 10**12, b"x" * 104)
    page[TABLE + ENTRY + 1] = 2**64 - 1
    requests = of(page).requests()
    assert [request.text for request in requests] == ["GET /\ufffd\ufffd", "x" * 104]
    assert requests[1].age == 0


def test_a_page_that_is_too_short_for_its_entries_is_read_as_far_as_it_goes() -> None:
    page = begun(entries=10**9)
    put(page, 1, 1, b"GET /")
    assert [request.slot for request in of(page).requests()] == [1]


def test_no_entry_is_looked_at_that_was_never_used() -> None:
    page = begun(entries=1)
    put(page, 0, 1, b"GET /used")
    put(page, 1, 1, b"GET /not")
    assert [request.text for request in of(page).requests()] == ["GET /used"]


def test_a_cleared_page_is_one_that_nobody_began() -> None:
    page = begun(entries=2)
    put(page, 1, 1, b"GET /")
    board = of(page)
    board.order(drain=True)
    board.clear()
    assert board.read() is None
    assert bytes(page) == bytes(len(page) * 8)


def test_the_page_says_how_many_connections_to_databases_there_are() -> None:
    page = begun()
    of(page).count_databases(7)
    assert read(page).figures["databases"] == 7
    pages = memoryview(bytearray(bytes(page) + bytes(len(page) * 8) + bytes(page)))
    for used, held in [(0, 0), (1, 7), (2, 7), (3, 14), (9, 14)]:
        group = memoryview(bytearray(_core.GROUP_BYTES)).cast("Q")
        group[PAGES] = used
        assert sum_of_databases(pages, len(page) * 8, group.cast("B")) == held
    of(page).vacate()
    assert read(page).figures["databases"] == 0


def test_room_for_ten_thousand_requests_takes_no_memory_until_they_come() -> None:
    size = _core.scoreboard_bytes(10_000)
    memory = SharedMemory(size)
    page = memory.map
    with socket.create_server(("127.0.0.1", 0)) as listener:
        core = _core.Core([os.dup(listener.fileno())], OPTIONS | {"threads": 10_000}, page)
    core.start()
    board = Scoreboard(page)
    try:
        assert (read(page).threads, board.requests()) == (10_000, [])
    finally:
        core.close()
    board.vacate()
    board.clear()
    assert size > 1_280_000
    assert memory.allocated() == 4096


def test_the_page_says_how_long_somebody_has_waited_and_who_is_free() -> None:
    page = begun()
    page[QUEUED], page[FREE], page[OLDEST] = 3, 1, time.monotonic_ns() - 2_000_000_000
    snapshot = read(page)
    assert (snapshot.figures["queued"], snapshot.figures["free"]) == (3, 1)
    assert 2 <= snapshot.oldest_wait < 20


def test_where_nobody_waits_nobody_has_waited() -> None:
    page = begun()
    assert read(page).oldest_wait == 0
    page[OLDEST] = time.monotonic_ns() + 10**12
    assert read(page).oldest_wait == 0, "a moment that is yet to come"


def test_figures_stand_where_the_documents_have_them() -> None:
    page = begun()
    page[8:16] = memoryview(struct.pack("8Q", *range(8, 16))).cast("Q")
    page[16:31] = memoryview(struct.pack("15Q", *range(16, 31))).cast("Q")
    page[31] = 31
    page[37:40] = memoryview(struct.pack("3Q", 37, 38, 39)).cast("Q")
    page[40:46] = memoryview(struct.pack("6Q", *range(40, 46))).cast("Q")
    page[47:62] = memoryview(struct.pack("15Q", *range(47, 62))).cast("Q")
    page[439] = 439
    page[442:448] = memoryview(struct.pack("6Q", *range(442, 448))).cast("Q")
    page[448:473] = memoryview(struct.pack("25Q", *range(448, 473))).cast("Q")
    names = {
        8: "connections in_flight queued body_bytes free",
        14: "response_bytes response_disk_bytes",
        16: "accepted requests refused head_timeouts body_timeouts write_timeouts idle_closes evicted client_gone",
        25: "spooled app_errors bytes_in bytes_out rescues log_lost",
        31: "call_blocked_nanoseconds",
        37: "loop_work_nanoseconds loop_blocked_nanoseconds call_delayed_nanoseconds",
        40: "handed_over taken_over queue_full queue_late left_queue databases",
        47: "leaving stuck late head_bytes heads_shed body_disk_bytes unforwarded cpu_nanoseconds slot generation",
        57: "messages_in messages_out syslog_lost statsd_lost resident_bytes",
        439: "streams_closed",
        442: "offload_calls offload_nanoseconds offload_abandoned offload_threads offload_busy offload_waiting",
        448: "tls_full tls_resumed tls_failed_version tls_failed_cipher tls_failed_protocol tls_failed_name",
        454: "tls_failed_certificate tls_failed_alert tls_failed_plain tls_failed_garbage tls_failed_left",
        459: "tls_failed_timeout tls_failed_crowded tls_failed_internal tls_handshakes tls_bytes",
        464: "http2_connections http2_streams http2_resets http2_violations lent",
        469: "sessions_learned sessions_followed sessions_forgotten static_files",
    }
    expected = {name: first + at for first, group in names.items() for at, name in enumerate(group.split())}
    assert read(page).figures == expected


def test_a_histogram_has_the_lower_edges_of_the_buckets_that_are_in_use() -> None:
    page = begun()
    page[64 + 2], page[64 + 24], page[266 + 100] = 99, 1, 5
    board = of(page)
    assert board.histogram("queue") == {1_250: 99, 125_000: 1}
    assert board.histogram("application") == {}
    assert board.histogram("total") == {1_000_000_000_000: 5}
    with pytest.raises(KeyError):
        board.histogram("other")


def test_nobody_counts_on_a_worker_that_is_gone() -> None:
    page = begun()
    page[QUEUED], page[FREE], page[OLDEST] = 3, 1, 5
    put(page, 0, 1, b"GET /")
    of(page).vacate()
    snapshot = read(page)
    assert (snapshot.figures["free"], snapshot.oldest_wait, snapshot.state) == (0, 0, "stopped")
    assert snapshot.figures["queued"] == 3, "the rest is what its post mortem is made of"
    assert len(of(page).requests()) == 1


def test_orders_are_bits_of_one_word_and_replace_one_another() -> None:
    page = begun()
    board = of(page)
    board.order(drain=True)
    assert page[6] == 2
    board.order(not_ready=True, yields=True, replaced=True)
    assert page[6] == 13
    assert board.replaced
    board.order()
    assert page[6] == 0
    assert not board.replaced


def test_a_worker_without_a_core_has_a_heartbeat_that_is_looked_at() -> None:
    board = of(bytearray(4096))
    board.begin(17)
    first = board.read()
    assert first is not None
    assert (first.pid, first.state, first.threads, first.figures["in_flight"]) == (17, "serving", 1, 1)
    assert board.requests() == []
    board.beat()
    second = board.read()
    assert second is not None
    assert second.heartbeat > first.heartbeat


def test_what_a_worker_has_counted_is_the_ledgers_when_it_is_gone() -> None:
    ledger_page, page = memoryview(bytearray(_core.LEDGER_BYTES)).cast("Q"), begun()
    ledger = Ledger(ledger_page.cast("B"))
    for _ in range(2):
        page[17], page[33], page[64 + 2], page[FREE] = 3, 3, 3, 1
        ledger.bury(of(page))
        assert (page[17], page[33], page[64 + 2], page[FREE]) == (0, 0, 0, 0)
    assert (ledger_page[17], ledger_page[33], ledger_page[64 + 2], ledger_page[FREE]) == (6, 6, 6, 0)
    assert read(page).state == "stopped"


def test_the_arbiter_counts_by_names_that_are_known() -> None:
    ledger = Ledger(memoryview(bytearray(_core.LEDGER_BYTES)))
    for reason in get_args(Cause):
        ledger.exited(reason)
    for result in ("committed", "refused", "rolled_back"):
        ledger.reloaded(result)
    for count in (ledger.exited, ledger.reloaded):
        with pytest.raises(KeyError, match="nothing"):
            count("nothing")


def test_no_ledger_is_too_short() -> None:
    with pytest.raises(ValueError, match="short"):
        Ledger(memoryview(bytearray(_core.LEDGER_BYTES - 8)))


def test_pages_that_cannot_be_written_are_read() -> None:
    page = begun()
    page[9], page[17], page[33], page[64 + 2] = 2, 7, 6, 3
    put(page, 0, 1, b"GET /")
    reader = PageReader(bytes(page))
    snapshot = reader.read()
    assert snapshot is not None
    assert (snapshot.figures["in_flight"], [request.text for request in reader.requests()]) == (2, ["GET /"])
    counts = reader.counts()
    assert (counts.figures["requests"], counts.statuses) == (7, (0, 6, 0, 0, 0))
    assert counts.histograms["queue"][2] == 3
    ledger = memoryview(bytearray(_core.LEDGER_BYTES)).cast("Q")
    ledger[17], ledger[TABLE + 2] = 40, 3
    totals = LedgerReader(bytes(ledger)).totals([reader, reader])
    assert (totals.figures["requests"], totals.statuses[1]) == (54, 12)
    assert LedgerReader(bytes(ledger)).generation == 3
    group = memoryview(bytearray(_core.GROUP_BYTES)).cast("Q")
    group[PAGES] = 9
    assert pages_in_use(bytes(group)) == 9


def test_a_reader_takes_no_memory_that_is_too_short_or_not_aligned() -> None:
    for make, size in ((PageReader, 3584), (LedgerReader, _core.LEDGER_BYTES), (pages_in_use, _core.GROUP_BYTES)):
        with pytest.raises(ValueError, match="short"):
            make(bytes(size - 8))
        with pytest.raises(ValueError, match="aligned"):
            make(memoryview(bytes(size + 1))[1:])


def test_each_bucket_lies_between_two_edges() -> None:
    edges, exported = histogram_edges()
    counts = PageReader(begun().cast("B")).counts()
    assert [len(counts.histograms[name]) for name in ("queue", "application", "total")] == [len(edges) - 1] * 3
    assert len(counts.histograms["gil"]) == len(exported) - 1
    assert (edges == sorted(edges), exported == sorted(exported)) == (True, True)
