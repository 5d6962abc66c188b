"""What the watch for changed files is told, and what it looks at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tricorn.workers.reloader import Files


def test_an_event_at_a_file_that_may_match_a_pattern_is_reason_to_look(tmp_path: Path) -> None:
    """At once, and not when the next look is due: the file is new, and its name known to nothing."""
    files = Files([str(tmp_path / "*.html")])
    files.look()
    new = tmp_path / "new.html"
    assert files.concerns(str(new))
    new.touch()
    assert files.look() == str(new)
    assert files.look() is None


def test_without_patterns_only_known_names_are_reason_to_look(tmp_path: Path) -> None:
    known = tmp_path / "settings.ini"
    known.touch()
    files = Files([str(known)])
    files.look()
    assert files.concerns(str(known))
    assert not files.concerns(str(tmp_path / "access.log"))


@pytest.mark.parametrize("only_new", [False, True])
def test_a_look_for_what_is_new_leaves_changes_for_the_next(tmp_path: Path, only_new: bool) -> None:
    known = tmp_path / "settings.ini"
    known.touch()
    files = Files([str(known), str(tmp_path / "*.html")])
    files.look()
    os.utime(known, (1, 1))
    assert files.look(only_new=only_new) == (None if only_new else str(known))
    (tmp_path / "a.html").touch()
    assert files.look(only_new=True) == str(tmp_path / "a.html")
