"""The commands of the documentation: each page is gone through as its reader would, and shows what it says."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.harness.pages import DOCS, Run, pages, steps, updated

PROGRAMS = dict.fromkeys(("guides/behind-nginx.md", "guides/uwsgi.md", "migrate/from-uwsgi.md"), ("nginx",))
"""Pages that need programs which are not everywhere."""
INTO_FILES = ("guides/rotate-logs.md",)
"""Pages whose server writes its logs into files; the others show a terminal, where the lines are shorter."""


@pytest.mark.parametrize("name", pages())
def test_a_page_does_what_it_says(name: str) -> None:
    for program in PROGRAMS.get(name, ()):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    with Run(log_format="text" if name in INTO_FILES else "pretty") as run:
        for step in steps((DOCS / name).read_text()):
            run.make(step)
        if os.environ.get("TRICORN_DOCS_OUTPUT") == "update":
            (DOCS / name).write_text(updated((DOCS / name).read_text(), run.shown))
