"""The pages of the scoreboard: room for what reloads may ask for, and no memory for what is not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tricorn import shared_memory
from tricorn.arbiter import pages
from tricorn.arbiter.pages import COUNT, SIZE, Pages
from tricorn.shared_memory import Memory


def held() -> int:
    """Bytes of shared memory that this process has touched."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("RssShmem:")]
    return int(line.split()[1]) * 1024


def test_one_region_has_room_for_the_generations_to_come_and_takes_memory_for_what_is_used() -> None:
    before = held()
    some = Pages.roomy(4096, 10)
    assert (some.size, some.count, len(some.region)) == (SIZE, COUNT, SIZE * COUNT)
    assert some.holds(SIZE, COUNT)
    assert not some.holds(SIZE + 1, 1)
    assert not some.holds(1, COUNT + 1)
    numbers = [some.take() for _ in range(8)]
    assert numbers == list(range(8)), "the lowest first: siblings look at no page beyond the highest in use"
    some.page(7)[:] = bytes(SIZE)
    assert held() - before <= SIZE + 8 * 4096


def test_what_one_generation_needs_at_once_is_never_cut() -> None:
    some = Pages.roomy(2 * SIZE, COUNT + 1)
    assert (some.size, some.count) == (2 * SIZE, COUNT + 1)


def test_where_there_is_no_room_for_more_there_is_as_much_as_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(name: str, size: int) -> Memory:
        if size > 10 * 4096:
            raise OSError(12, "Cannot allocate memory")
        return Memory(name, size)

    monkeypatch.setattr(pages, "Memory", limited)
    some = Pages.roomy(4096, 10)
    assert (some.size, some.count) == (4096, 10)
    assert not some.holds(8192, 10)


def test_where_there_is_no_memfd_the_memory_is_shared_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "_memfd", lambda name, size: -1)
    some = Pages(4096, 2)
    pid = os.fork()
    if pid == 0:
        some.page(1)[0] = 7
        os._exit(0)
    assert os.waitpid(pid, 0) == (pid, 0)
    assert some.page(1)[0] == 7
