"""Running code in an interpreter of its own: for what a process can do only once, and that must begin with nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from tests.harness.forkserver import Forkserver

# eventlet says less when it finds that name.
_HIDDEN = ("PYTEST_CURRENT_TEST",)


def python(
    code: str,
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    within: float = 60,
    alias: str = "",
) -> subprocess.CompletedProcess[str]:
    """Runs `code`, whose `sys.argv[1:]` are the arguments; fails with what it said if it fails.

    With an `alias` it finds what the arbiter of this worker class has imported, and costs a third.
    """
    environ = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
    environ |= {"PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
    if alias and Forkserver.can_start(environ):
        directory = str(cwd or Path.cwd())
        done = Forkserver.of(alias).run(dedent(code), *arguments, cwd=directory, environ=environ, within=within)
    else:
        done = subprocess.run(
            [sys.executable, "-c", dedent(code), *arguments],
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
