"""The interpreters of this machine, of every version that tricorn supports."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

MINORS = (10, 11, 12, 13, 14)


@cache
def interpreter(minor: int) -> str | None:
    """The program, and not the shim of a version manager, which may know it and not have it."""
    if sys.version_info[:2] == (3, minor):
        return sys.executable
    places = [Path(directory) for directory in os.environ.get("PATH", "").split(os.pathsep)]
    places += sorted((Path.home() / ".pyenv/versions").glob(f"3.{minor}.*/bin"))
    for place in places:
        program = place / f"python3.{minor}"
        if program.exists() and place.name != "shims":
            return str(program)
    return None


def static_interpreter() -> str | None:
    """One that is not linked with libpython: Debian's, where there is one."""
    program = Path("/usr/bin/python3")
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    is_static = program.exists() and "libc.so" in linked and "libpython" not in linked
    return str(program.resolve()) if is_static else None
