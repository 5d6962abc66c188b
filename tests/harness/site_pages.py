"""The documentation site as `make docs` has built it."""

from __future__ import annotations

from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parent.parent.parent / "dist/docs"


def site() -> Path:
    """The directory of the site, or the test is skipped."""
    if not (SITE / "index.html").exists():
        pytest.skip("needs the site: make docs")
    return SITE
