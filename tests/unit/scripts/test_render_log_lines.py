"""The page of log lines has a row for each line, and a line without a note, or a note without a line, is an error."""

from __future__ import annotations

import pytest

from scripts.log_lines import Line
from scripts.render_log_lines import Note, problems, read, render

NOTES = """\
The form of the file.

# Start

Ready: …
    -: A worker serves.

No room for `…` | …
    operator: Make room.

# Stop

Gone
    client: Nothing.

# Pieces

Parts of lines, in no table.

and …
"""
LINES = [
    Line("Ready: …", "info", "a.py"),
    Line("No room for `…` | …", "warning or error", "a.py"),
    Line("Gone", "debug", "b.py"),
    Line("and …", "ConfigError", "b.py"),
    Line("A value is none", "ConfigError", "b.py"),
]


def test_notes_are_read_by_their_sections() -> None:
    notes = read(NOTES)
    assert list(notes.sections) == ["Start", "Stop"]
    assert notes.sections["Start"][1] == Note("No room for `…` | …", "operator", "Make room.")
    assert notes.pieces == frozenset({"and …"})


@pytest.mark.parametrize("below", ["guest: Do it.", "client:", "", "client Do it."])
def test_a_note_says_whose_move_it_is_and_what_to_do(below: str) -> None:
    with pytest.raises(SystemExit, match="expected WHOSE: WHAT TO DO"):
        read(f"# Start\n\nReady\n    {below}\n")


def test_each_line_is_a_row() -> None:
    page = render(LINES, read(NOTES))
    assert "| `Ready: …` | info |  | A worker serves. |\n" in page
    assert "| ``No room for `…` \\| …`` | warning, error | operator | Make room. |\n" in page
    assert page.index("## Start") < page.index("## Stop") < page.index("## Errors at startup")


def test_errors_that_end_a_start_have_a_table_without_the_pieces() -> None:
    table = render(LINES, read(NOTES)).partition("### The configuration\n\n")[2]
    assert table == "Who can fix it: operator. Exit status 1.\n\n| Line |\n|---|\n| `A value is none` |\n"


def test_lines_and_notes_that_lack_the_other_are_told() -> None:
    assert list(problems(LINES, read(NOTES))) == []
    (missing,) = problems([*LINES, Line("New", "info", "c.py")], read(NOTES))
    assert missing == "c.py logs a line that docs/reference/log-line-notes.txt does not have: New"
    (left,) = problems(LINES[1:], read(NOTES))
    assert left == "docs/reference/log-line-notes.txt has a line that no source says: Ready: …"
