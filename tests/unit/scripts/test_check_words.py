"""Turns of phrase that texts for users do without."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_words
from scripts.check_words import Found, find, granted, turns

TABLE = turns("A table.\n\n\\bis told\\b => is logged\n^#+ What => a noun phrase\n")


def test_prose_is_searched_and_code_is_not() -> None:
    page = "# What it does\n\nA stall is told, as `it is told`.\n\n```\nis told\n```\n\nIt is told.\n"
    assert list(find(page, TABLE)) == [
        Found(1, "# What", "a noun phrase"),
        Found(3, "is told", "is logged"),
        Found(9, "is told", "is logged"),
    ]


def test_numbers_that_are_granted() -> None:
    assert granted("A header.\n\ndocs/a page.md 3\nREADME.md 1\n") == {"docs/a page.md": 3, "README.md": 1}


@pytest.mark.parametrize(("count", "status"), [(0, 1), (1, 0), (2, 0)])
def test_more_than_is_granted_fails(
    count: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("It is told.\n")
    (tmp_path / "left.txt").write_text(f"A header.\n\nREADME.md {count}\n")
    (tmp_path / "words.txt").write_text("\\bis told\\b => is logged\n")
    monkeypatch.setattr(check_words, "ROOT", tmp_path)
    monkeypatch.setattr(check_words, "WORDS", tmp_path / "words.txt")
    monkeypatch.setattr(check_words, "LEFT", tmp_path / "left.txt")
    assert check_words.main([]) == status
    assert capsys.readouterr().out == ("README.md:1: 'is told': is logged\n" if status else "")
    assert check_words.main(["--write"]) == 0
    assert granted((tmp_path / "left.txt").read_text()) == {"README.md": 1}
