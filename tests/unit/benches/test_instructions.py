"""How servers come to run under valgrind, and what is said where it is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ASK = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
answer = libc.prctl(0x41555856, ctypes.create_string_buffer(1024), 1024, 0, 0)
print(answer, ctypes.get_errno(), libc.prctl(3, 0, 0, 0, 0))
"""
"""PR_GET_AUXV, and PR_GET_DUMPABLE, which is answered."""


def test_the_shield_refuses_one_call_and_no_other() -> None:
    shield = [sys.executable, str(ROOT / "benches" / "instructions" / "shield.py")]
    asked = subprocess.run([*shield, sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    answer, error, other = asked.stdout.split()
    assert (answer, error) == ("-1", "22")
    assert other in ("0", "1", "2")


def test_without_valgrind_the_benchmark_says_what_to_install(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    command = [sys.executable, "-m", "benches.instructions", "--dry"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "valgrind and vgdb cannot be found: install valgrind (apt install valgrind).\n"
