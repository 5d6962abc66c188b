from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tricorn_bench.bench.process import keep_niceness

GROUPED = Path("/proc/self/autogroup")
"""Of the session, where the kernel schedules by session."""
HIGHEST = 19
"""The kernel's highest niceness (setpriority(2)): a run that is nice itself may reach it."""


@pytest.mark.skipif(not GROUPED.exists(), reason="the kernel does not schedule by session")
def test_the_session_of_a_server_has_the_niceness_of_the_command() -> None:
    def begins() -> None:
        os.nice(5)
        keep_niceness()

    command = [sys.executable, "-c", f"print(open({str(GROUPED)!r}).read())"]
    told = subprocess.run(
        command, preexec_fn=begins, start_new_session=True, capture_output=True, text=True, check=True
    )
    assert told.stdout.split()[-1] == str(min(HIGHEST, os.getpriority(os.PRIO_PROCESS, 0) + 5))
