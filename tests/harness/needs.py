"""Packages that a test's servers import, and the test does not."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


def needs(*modules: str) -> None:
    """Skips the test, or the module that says so at its top, where one is not installed.

    `pytest.importorskip` would import them, in each process of pytest: frameworks and databases take a second of that.
    """
    for name in modules:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed", allow_module_level=True)


def gunicorns_packages() -> Path | None:
    """Where gunicorn itself is installed beside the tests, for this Python (`make test-reference`)."""
    root = Path(__file__).resolve().parents[2]
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = root / ".venvs" / "reference" / "lib" / version / "site-packages"
    return found if (found / "gunicorn").is_dir() else None
