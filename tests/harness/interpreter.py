"""Running code in an interpreter of its own: for what a process can do only once, and that must begin with nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

# eventlet says less when it finds that name.
_HIDDEN = ("PYTEST_CURRENT_TEST",)


def python(code: str, *arguments: str, cwd: Path | None = None, within: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs `code`, whose `sys.argv[1:]` are the arguments; fails with what it said if it fails."""
    environ = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
    done = subprocess.run(
        [sys.executable, "-c", dedent(code), *arguments],
        cwd=cwd,
        env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
