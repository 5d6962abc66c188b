"""The README: the first screen says what tricorn is, how to install and how to start it; its figures are measured."""

from __future__ import annotations

import re

from tests.harness.pages import DOCS

README = (DOCS.parent / "README.md").read_text()
SCREEN = 24
"""Lines of a terminal."""
LENGTH = 80


def test_the_first_screen_says_what_it_is_and_how_to_install_and_start_it() -> None:
    screen = "\n".join(README.splitlines()[:SCREEN])
    for words in ("Linux", "pip install tricorn", "tricorn main:app", "docs/images/stall.svg"):
        assert words in screen, words


def test_it_is_short() -> None:
    assert README.count("\n") <= LENGTH


def test_the_pictures_have_the_figures_of_the_text() -> None:
    drawn = (DOCS / "images/cpu.svg").read_text()
    (text,) = re.findall(r"!\[CPU time per request: (.*?)\]", README)
    for figure in re.findall(r"\d+", text):
        assert f">{figure}</text>" in drawn, figure


def test_rules_of_the_migration_are_those_of_its_page() -> None:
    """Each row of the table names a difference that the whole table has."""
    page = (DOCS / "migrate/from-gunicorn.md").read_text()
    (table,) = re.findall(r"\| With gunicorn \| With tricorn \|\n\|---\|---\|\n((?:\|.*\n)+)", README)
    rows = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table.splitlines()]
    assert 5 <= len(rows) <= 10
    for gunicorn, ours in rows:
        words = re.findall(r"`(?:[^`]+)`", ours + gunicorn)
        assert words or "generation" not in ours
        missing = [word for word in words if word not in page]
        assert not missing, (gunicorn, missing)


def test_figures_are_those_of_the_pages_that_they_link_to() -> None:
    measured = (DOCS / "how-it-works/performance.md").read_text() + (DOCS / "how-it-works/one-queue.md").read_text()
    (table,) = re.findall(r"^ +\| Waiting time .*\n(?: +\|.*\n)+", README, re.MULTILINE)
    for row in table.splitlines()[2:]:
        _, *figures = re.sub(r"\*\*", "", row).strip("| ").split(" | ")
        assert len(figures) >= 3
        for figure in figures:
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d|\.\d)", measured), figure
