"""The README: a user finds on the first screen how to install and start it, and sees what it then really prints."""

from __future__ import annotations

import re

from tests.harness.pages import DOCS, Command, File, Interrupt, Run

README = (DOCS.parent / "README.md").read_text()
SCREEN = 24
"""Lines of a terminal."""
FOR_USERS = 80
APPLICATION = "async def app(scope, receive, send):\n    assert scope['type'] == 'http'\n"


def log_lines() -> tuple[str, ...]:
    (block,) = re.findall(r"^```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return tuple(block.splitlines())


def test_it_prints_what_the_readme_shows() -> None:
    shown = log_lines()
    assert len(shown) == 5
    with Run() as run:
        run.make(File("main.py", APPLICATION))
        run.make(Command("tricorn main:app", shown))
        assert run.log is not None
        # No others, but the one about the variable by which a run chooses its port.
        others = [line for line in run.log.lines if "UVICORN_PORT" not in line]
        assert len(others) == len(shown), run.log.text
        run.make(Interrupt())


def test_the_first_screen_says_how_to_install_start_and_try_it() -> None:
    screen = "\n".join(README.splitlines()[:SCREEN])
    for words in ("pip install .", "tricorn main:app", "`make demo`", "`make test`"):
        assert words in screen, words


def test_what_users_need_comes_first_and_is_short() -> None:
    users, contributors = README.split("\n## For contributors\n")
    assert users.count("\n") <= FOR_USERS
    assert "docs/internals/architecture.md" in contributors


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
    tables = [rows for rows in README.split("\n\n") if rows.startswith("|") and "`make bench" in rows]
    assert len(tables) == 2
    for row in (row for table in tables for row in table.splitlines()[2:]):
        _, *figures = re.sub(r"\*\*", "", row).strip("| ").split(" | ")
        assert len(figures) >= 3
        for figure in figures:
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d|\.\d)", measured), figure
