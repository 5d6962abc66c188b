"""Commands of `tricorn` that measure: started in a session of their own, and ended whatever happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def started(command: str, directory: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tricorn", command, *words],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str], within: float = 120) -> tuple[int, str, str]:
    """Exit status, stdout and stderr."""
    try:
        out, err = process.communicate(timeout=within)
    finally:
        process.kill()
    return process.returncode, out, err
