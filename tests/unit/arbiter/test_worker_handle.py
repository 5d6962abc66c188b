"""The parent's side of a worker, with real pipes and without a worker."""

from __future__ import annotations

import os
import sys
from signal import Signals
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn._core import Core
from tricorn.arbiter import pages as arbiter_pages
from tricorn.arbiter import worker_handle
from tricorn.arbiter.allowance import BURST
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.worker_handle import (
    LAST_WORDS,
    PROFILE,
    READ_SIZE,
    TooTalkative,
    WorkerHandle,
    open_bell,
    open_file,
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

    def test_when_all_are_in_use_there_is_none(self) -> None:
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
    """What a sampler writes (`monitor/sampler/file.rs`), as the arbiter reads it."""

    @staticmethod
    def handle() -> WorkerHandle:
        handle, worker = pair()
        os.close(worker)
        handle.close()
        handle.profile = open_file("test")
        return handle

    @staticmethod
    def write(handle: WorkerHandle, at: int, *words: int) -> None:
        os.pwrite(handle.profile, b"".join(word.to_bytes(8, sys.byteorder) for word in words), at)

    def test_the_head_says_which_area_counts(self) -> None:
        handle = self.handle()
        assert handle.told_slow() == b""
        for turn, text in ((1, b"one"), (2, b"other")):
            os.pwrite(handle.profile, text, 4096 + turn % 2 * (256 << 10))
            self.write(handle, 0, turn, len(text))
            assert handle.told_slow() == text
        assert handle.told_profile() == b""
        handle.forget()

    def test_a_profile_counts_if_it_is_of_the_last_order(self) -> None:
        handle = self.handle()
        sampler, handle.profile_bell = open_bell()
        handle.order_profile(2.0, 100, 5000)
        assert len(os.read(sampler, 10)) == 1
        number, end, interval, most, again = (
            int.from_bytes(os.pread(handle.profile, 8, 128 + 8 * word), sys.byteorder) for word in range(5)
        )
        assert (number, end - number, interval, most) == (again, 2_000_000_000, 10_000_000, 5000)
        os.pwrite(handle.profile, b"seen", 4096 + (512 << 10) + (512 << 10))
        self.write(handle, 64, 1, 4, number)
        assert handle.told_profile() == b"seen"
        handle.order_profile(1.0, 100, 5000)
        assert handle.told_profile() == b"", "of the order before"
        os.close(sampler)
        handle.order_profile(1.0, 100, 5000)
        handle.forget()
        handle.order_profile(1.0, 100, 5000)


def test_stacks_that_are_shorter_than_those_before_have_nothing_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "STACKS_SIGNAL", Signals.SIGUSR1)
    handle, worker = pair()
    handle.stacks = open_file("stacks")
    for told in ("Thread 0x1: a long story\n" * 40, "Thread 0x1: a word\n", "Thread 0x1: two words\n"):
        handle.ask_for_stacks()
        assert handle.told_stacks(4096) == ""
        os.write(handle.stacks, told.encode())
        assert handle.told_stacks(4096) == told
    os.close(handle.stacks)
    os.close(worker)
    handle.close()


def test_a_profile_that_is_replaced_while_it_is_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker writes two of them meanwhile, so that the area that is read is overwritten."""
    handle, worker = pair()
    handle.profile, handle.profiled = open_file("profile"), 77

    def write(turn: int, text: bytes) -> None:
        os.pwrite(handle.profile, text, PROFILE.areas + turn % 2 * PROFILE.length)
        words = (turn, len(text), handle.profiled)
        os.pwrite(handle.profile, b"".join(word.to_bytes(8, sys.byteorder) for word in words), PROFILE.head)

    write(1, b"the first one")
    read, meanwhile = os.pread, iter([(3, b"another"), (5, b"the last one")])

    def pread(file: int, count: int, offset: int) -> bytes:
        if offset >= PROFILE.areas:
            found = read(file, count // 2, offset)
            for turn, text in meanwhile:
                write(turn, text)
                break
            return found + read(file, count - count // 2, offset + count // 2)
        return read(file, count, offset)

    monkeypatch.setattr(worker_handle.os, "pread", pread)
    assert handle.told_profile() == b"the last one"
    os.close(handle.profile)
    os.close(worker)
    handle.close()


def test_a_profile_of_another_order_is_not_this_ones() -> None:
    handle, worker = pair()
    handle.profile, handle.profiled = open_file("profile"), 78
    words = (1, 4, 77)
    os.pwrite(handle.profile, b"".join(word.to_bytes(8, sys.byteorder) for word in words), PROFILE.head)
    assert handle.told_profile() == b""
    os.close(handle.profile)
    os.close(worker)
    handle.close()
