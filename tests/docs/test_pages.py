"""The commands of the documentation: each page is gone through as its reader would, and shows what it says."""

from __future__ import annotations

import shutil

import pytest

from tests.harness.pages import DOCS, Run, pages, steps

PROGRAMS = {"guides/behind-nginx.md": ("nginx",)}
"""Pages that need programs which are not everywhere."""


@pytest.mark.parametrize("name", pages())
def test_a_page_does_what_it_says(name: str) -> None:
    for program in PROGRAMS.get(name, ()):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    with Run() as run:
        for step in steps((DOCS / name).read_text()):
            run.make(step)
