"""The error log: the lines scrapers match."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tricorn.errors import ConfigError
from tricorn.log import ErrorLog


def test_a_line_looks_like_gunicorns(capsys: pytest.CaptureFixture[str]) -> None:
    ErrorLog("-", "info").info("Booting worker with pid: %s", 7)
    line = capsys.readouterr().err
    pattern = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}\] \[(\d+)\] \[INFO\] Booting worker with pid: 7\n"
    found = re.fullmatch(pattern, line)
    assert found is not None
    assert int(found[1]) == os.getpid()


def test_what_is_below_the_level_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    log = ErrorLog("-", "warning")
    log.info("quiet")
    log.warning("loud")
    assert "quiet" not in capsys.readouterr().err


def test_after_a_rotation_it_writes_to_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "error.log"
    log = ErrorLog(str(path), "info")
    log.info("before")
    path.rename(tmp_path / "error.log.1")
    log.reopen()
    log.info("after")
    assert "before" in (tmp_path / "error.log.1").read_text()
    assert "after" in path.read_text()
    assert "before" not in path.read_text()


def test_a_file_that_cannot_be_written_is_the_operators_to_mend() -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        ErrorLog("/no/such/directory/error.log", "info")


def test_a_new_file_that_cannot_be_opened_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = ErrorLog(str(tmp_path / "logs" / "error.log"), "info")
    (tmp_path / "logs").rename(tmp_path / "moved")
    log.reopen()
    assert "cannot be opened anew" in (tmp_path / "moved" / "error.log").read_text()
