"""Commands that run in the process of the tests."""

from __future__ import annotations

import pytest
from tricorn_bench.bench import process


@pytest.fixture(autouse=True)
def _descendants_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tricorn bench` ends every descendant of its process: here these are servers of other tests."""
    monkeypatch.setattr(process, "adopt_orphans", lambda: None)
    monkeypatch.setattr(process, "end_descendants", lambda: None)
