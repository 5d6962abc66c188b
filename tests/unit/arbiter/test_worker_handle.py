"""The parent's side of a worker, with real pipes and without a worker."""

from __future__ import annotations

import os
from signal import Signals
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn._core import Core
from tricorn.arbiter import pages as arbiter_pages
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.worker_handle import (
    BURST,
    LAST_WORDS,
    READ_SIZE,
    Allowance,
    TooTalkative,
    WorkerHandle,
    open_bell,
    open_reports,
)
from tricorn.workers import watch
from tricorn.workers.messages import BootFailed, Ready

from tests.harness.core import OPTIONS, PAGE
from tests.harness.shared_memory import SharedMemory


def pair() -> tuple[WorkerHandle, int]:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    process: Any = None
    return WorkerHandle(1, process, pid=2**22 + 1, messages=read_end, pages=Pages(16, 1), page=0), write_end


def test_messages_arrive_however_they_are_cut() -> None:
    handle, worker = pair()
    assert handle.receive(0.0) == []
    os.write(worker, b"rea")
    assert handle.receive(0.0) == []
    os.write(worker, b"dy gevent\nboot-failed 3 no luck\n")
    assert handle.receive(0.0) == [Ready(kind="gevent"), BootFailed(3, "no luck")]
    assert handle.kind == "gevent"
    os.close(worker)
    handle.close()


def test_last_words_are_heard_and_the_pipe_closed() -> None:
    handle, worker = pair()
    os.write(worker, b"ready sync\n")
    os.close(worker)
    assert handle.receive(0.0) == [Ready(kind="sync")]
    assert not handle.open
    assert handle.receive(0.0) == []
    handle.close()


def test_a_turn_reads_a_bounded_part_of_what_a_worker_sends() -> None:
    handle, worker = pair()
    os.write(worker, b"parted\n" * 9000)
    assert len(handle.receive(0.0)) <= READ_SIZE / len(b"parted\n")
    assert len(handle.receive(0.0, LAST_WORDS)) > READ_SIZE / len(b"parted\n"), "the last words are read whole"
    os.close(worker)
    handle.close()


def test_a_worker_that_sends_without_end_is_found_out() -> None:
    handle, worker = pair()

    def write_on() -> None:
        for _ in range(BURST):
            os.write(worker, b"parted\n")
            handle.receive(0.0)

    with pytest.raises(TooTalkative):
        write_on()
    handle.receive(1.0)
    os.close(worker)
    handle.close()


def test_an_arbiter_that_falls_behind_refills_no_allowance() -> None:
    """On a busy machine a second may pass with each turn, in which all of the pipe cannot be read."""
    allowance = Allowance()
    turns = [allowance.take(READ_SIZE, READ_SIZE // 8, float(now), is_all=False) for now in range(100)]
    assert turns[0]
    assert not turns[-1]


def test_an_arbiter_that_keeps_up_refills_the_allowance() -> None:
    allowance = Allowance()
    assert all(allowance.take(READ_SIZE, READ_SIZE // 8, float(now), is_all=True) for now in range(1000))


def test_a_signal_to_a_worker_that_is_gone_is_no_error() -> None:
    handle, worker = pair()
    handle.send(Signals.SIGTERM)  # no process has such a pid
    os.close(worker)
    handle.close()


def test_of_a_page_of_rubbish_nothing_is_known() -> None:
    handle, worker = pair()
    handle.pages = Pages(PAGE, 1)
    page = handle.pages.page(0)
    Core([], OPTIONS, page).close()
    assert handle.snapshot() is not None
    page[8:] = b"\xff" * (PAGE - 8)  # the magic number is still there
    assert handle.snapshot() is None
    assert handle.requests() == []
    os.close(worker)
    handle.close()


SIZE = 4096


class TestPages:
    def test_a_page_that_comes_back_is_empty_again(self) -> None:
        pages = Pages(SIZE, 2)
        first = pages.take()
        assert first is not None
        pages.page(first)[:4] = b"beat"
        pages.give_back(first)
        assert pages.take() == first
        assert bytes(pages.page(first)) == bytes(SIZE)

    def test_pages_do_not_overlap(self) -> None:
        pages = Pages(SIZE, 2)
        one, two = pages.take(), pages.take()
        assert one is not None
        assert two is not None
        pages.page(one)[:] = b"x" * SIZE
        assert bytes(pages.page(two)) == bytes(SIZE)

    def test_all_of_them_are_one_piece_of_memory(self) -> None:
        pages = Pages(SIZE, 2)
        pages.page(1)[:4] = b"beat"
        assert len(pages.region) == 2 * SIZE
        assert bytes(pages.region[SIZE : SIZE + 4]) == b"beat"

    def test_no_worker_slot_is_free_when_all_are_in_use(self) -> None:
        pages = Pages(SIZE, 1)
        pages.take()
        assert pages.take() is None

    def test_a_large_page_takes_no_memory_before_it_is_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        size = 400 * SIZE
        memory = SharedMemory(4 * size)
        made = SimpleNamespace(view=memoryview(memory.map))
        monkeypatch.setattr(arbiter_pages, "Memory", lambda name, size: made)
        pages = Pages(size, 4)
        for _ in range(2):
            first = pages.take()
            assert first is not None
            pages.give_back(first)
        assert memory.allocated() == SIZE


class TestReports:
    """The file of a worker, whose layout the core knows (`report_file.rs`)."""

    def test_an_order_rings_the_bell_and_reports_of_other_orders_do_not_count(self) -> None:
        handle, worker = pair()
        handle.reports = open_reports()
        sampler, handle.profile_bell = open_bell()
        handle.order_profile(2.0, 100, 5000)
        first = handle.profiled
        assert len(os.read(sampler, 10)) == 1
        assert (handle.told_slow(), handle.told_profile()) == (b"", b"")
        os.close(sampler)
        handle.order_profile(1.0, 100, 5000)
        assert handle.profiled > first, "a sampler that is gone costs nothing"
        os.close(worker)
        handle.forget()
        handle.order_profile(1.0, 100, 5000)
        assert (handle.told_slow(), handle.told_profile(), handle.told_stacks(10)) == (b"", b"", "")

    def test_stacks_are_written_where_the_arbiter_asks_for_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watch, "STACKS_SIGNAL", Signals.SIGUSR1)
        handle, worker = pair()
        handle.reports = open_reports()
        for told in ("Thread 0x1: a long story\n" * 40, "Thread 0x1: a word\n", "Thread 0x1: two words\n"):
            handle.ask_for_stacks()
            assert handle.told_stacks(4096) == ""
            os.write(handle.reports, told.encode())  # as faulthandler does: at the offset of the open file
            assert handle.told_stacks(4096) == told
        os.close(worker)
        handle.forget()
