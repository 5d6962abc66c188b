"""A command line that nothing but its words configures."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder, which is the current one; no variable of the server's, and the modules' path is restored."""
    for name in list(os.environ):
        if name.startswith(("TRICORN_", "GUNICORN_")) or name in ("PORT", "WEB_CONCURRENCY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PORT", "0")  # the default port may be in use
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setitem(sys.modules, "__config__", None)
    return tmp_path
