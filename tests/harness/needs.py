"""Packages that a test's servers import, and the test does not."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def needs(*modules: str) -> None:
    """Skips the test, or the module that says so at its top, where one is not installed.

    `pytest.importorskip` would import them, in each process of pytest: frameworks and databases take a second of that.
    """
    for name in modules:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed", allow_module_level=True)
