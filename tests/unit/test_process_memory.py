"""Memory of a process, as the kernel tells it."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tricorn import process_memory
from tricorn.process_memory import ProcessMemory

from tests.harness import until

ROLLUP = """\
00400000-7ffd2a9f6000 ---p 00000000 00:00 0                              [rollup]
Rss:               22700 kB
Pss:                4300 kB
Pss_Dirty:          2700 kB
Shared_Clean:       8000 kB
Shared_Dirty:      14100 kB
Private_Clean:       100 kB
Private_Dirty:       500 kB
Swap:                  0 kB
"""


def made(proc: Path, text: str) -> int:
    (proc / "11").mkdir()
    (proc / "11" / "smaps_rollup").write_text(text)
    return 11


def test_the_sizes_are_in_bytes(tmp_path: Path) -> None:
    found = process_memory.read(made(tmp_path, ROLLUP), tmp_path)
    assert found == ProcessMemory(4300 << 10, 600 << 10, 22100 << 10, 22700 << 10)


def test_a_process_that_has_ended_has_none(tmp_path: Path) -> None:
    assert process_memory.read(made(tmp_path, ""), tmp_path) is None
    with pytest.raises(OSError, match="12"):
        process_memory.read(12, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_memory_of_this_process_follows_what_is_touched() -> None:
    before = process_memory.read(os.getpid())
    assert before is not None
    with mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for page in range(0, len(memory), mmap.PAGESIZE):
            memory[page] = 1
        after = process_memory.read(os.getpid())
    assert after is not None
    for name in ("pss", "uss", "rss"):
        assert 60 << 20 < getattr(after, name) - getattr(before, name) < 80 << 20, name
    assert after.uss <= after.pss <= after.rss == after.uss + after.shared


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_zombie_has_none() -> None:
    def is_unknown(pid: int) -> bool:
        try:
            return process_memory.read(pid) is None
        except OSError:
            return True

    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        until(lambda: is_unknown(process.pid), "it has ended")
