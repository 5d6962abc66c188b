"""Memory that forks write and others may only read."""

from __future__ import annotations

import mmap
import os

import pytest
from tricorn.shared_memory import Memory


@pytest.fixture
def memory() -> Memory:
    made = Memory("tricorn-test", 8192)
    if made.descriptor < 0:
        pytest.skip("the system has no seals for it (Linux 5.1)")
    return made


def test_who_gets_the_descriptor_can_neither_write_nor_change_its_size(memory: Memory) -> None:
    with pytest.raises(PermissionError):
        mmap.mmap(memory.descriptor, 8192)
    with pytest.raises(PermissionError):
        os.write(memory.descriptor, b"x")
    for size in (4096, 16384):
        with pytest.raises(PermissionError):
            os.truncate(memory.descriptor, size)
    reopened = os.open(f"/proc/self/fd/{memory.descriptor}", os.O_RDWR)
    try:
        with pytest.raises(PermissionError):
            mmap.mmap(reopened, 8192)
    finally:
        os.close(reopened)


def test_a_reader_sees_what_a_fork_writes_and_a_reader_writes_nothing(memory: Memory) -> None:
    reader = mmap.mmap(memory.descriptor, 8192, flags=mmap.MAP_PRIVATE)
    pid = os.fork()
    if pid == 0:
        memory.release()
        memory.view[5000] = 7
        os._exit(0)
    assert os.waitpid(pid, 0) == (pid, 0)
    assert reader[5000] == 7
    reader[5000] = 9
    assert memory.view[5000] == 7


def test_released_memory_stays_and_has_no_descriptor(memory: Memory) -> None:
    descriptor = memory.descriptor
    memory.release()
    memory.release()
    assert memory.descriptor == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    memory.view[0] = 1


def test_the_descriptor_goes_with_the_memory() -> None:
    memory = Memory("tricorn-test", 4096)
    descriptor = memory.descriptor
    if descriptor >= 0:
        assert not os.get_inheritable(descriptor)
        del memory
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
