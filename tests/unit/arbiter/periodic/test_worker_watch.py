"""How much memory a process has."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys

import pytest
from tricorn.arbiter.periodic.worker_watch import rss

from tests.harness import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def test_it_is_bytes_and_follows_what_is_touched() -> None:
    before = rss(os.getpid())
    assert before is not None
    with mmap.mmap(-1, 64 << 20) as memory:
        for page in range(0, len(memory), mmap.PAGESIZE):
            memory[page] = 1
        after = rss(os.getpid())
    assert after is not None
    assert 60 << 20 < after - before < 80 << 20


def test_of_nobody_nothing_is_known() -> None:
    assert rss(2**22) is None
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        until(lambda: rss(process.pid) is None, "a zombie has no memory")
