"""Clients that are written in Go, of its standard library alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

OFFLINE = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}


@cache
def built(source: Path, directory: Path) -> str:
    """The program of a folder, built once. What is compiled of Go's library it keeps in its own cache."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    made = directory / source.name
    subprocess.run(
        [go, "build", "-o", str(made), "."], cwd=source, env={**os.environ, **OFFLINE}, check=True, timeout=600
    )
    return str(made)
