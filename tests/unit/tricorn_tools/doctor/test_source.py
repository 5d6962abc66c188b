"""Source lines of another process's frames."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tricorn_tools.doctor.source import Sources


def test_lines_of_files_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.py").write_text("one\n    two\n")
    sources = Sources(os.getpid())
    file = str(tmp_path / "app.py")
    assert [sources.line(file, number) for number in (0, 1, 2, 3)] == ["", "one", "two", ""]
    monkeypatch.chdir(tmp_path)
    assert sources.line("app.py", 1) == "one", "a relative name is one in the directory of the process"
    assert sources.line("<frozen importlib>", 1) == ""
    assert sources.line("/dev/null", 1) == ""
