"""USR1: the same names, new files, not a line lost."""

from __future__ import annotations

import gc
import gzip
import logging
import logging.handlers
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tricorn import log as logs
from tricorn.config.config import Config

Configure = Callable[..., Config]


def test_after_a_rotation_it_writes_to_the_new_file(configure: Configure, tmp_path: Path) -> None:
    path = tmp_path / "error.log"
    log = logs.make(configure(errorlog=str(path)))
    log.info("before")
    path.rename(tmp_path / "error.log.1")
    log.reopen_files()
    log.info("after")
    assert "before" in (tmp_path / "error.log.1").read_text()
    assert "after" in path.read_text()
    assert "before" not in path.read_text()


def test_without_a_rotation_nothing_is_lost(configure: Configure, tmp_path: Path) -> None:
    log = logs.make(configure(errorlog=str(tmp_path / "e")))
    log.info("one")
    log.reopen()
    log.info("two")
    assert [line[-3:] for line in (tmp_path / "e").read_text().splitlines()] == ["one", "two"]


def test_a_new_file_that_cannot_be_opened_leaves_the_old_one(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = logs.make(configure(errorlog=str(tmp_path / "logs" / "error.log")))
    (tmp_path / "logs").rename(tmp_path / "moved")
    log.reopen_files()
    log.info("still here")
    written = (tmp_path / "moved" / "error.log").read_text()
    assert "still writing to the old file: No such file or directory" in written
    assert "still here" in written


def test_not_a_line_is_lost_between_threads(configure: Configure, tmp_path: Path) -> None:
    path = tmp_path / "e"
    log = logs.make(configure(errorlog=str(path)))

    def write() -> None:
        for number in range(500):
            log.info("line %s", number)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    rotations = 0
    while any(writer.is_alive() for writer in writers):
        path.rename(tmp_path / f"e.{rotations}")
        log.reopen_files()
        rotations += 1
    lines = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert len(lines) == 1500
    assert all("[INFO] line " in line for line in lines)


def test_rotations_leak_no_descriptor(configure: Configure, tmp_path: Path) -> None:
    log = logs.make(configure(errorlog=str(tmp_path / "e"), accesslog=str(tmp_path / "a")))
    gc.collect()  # what other tests have left
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        log.reopen_files()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(
    "kind", [logging.FileHandler, logging.handlers.WatchedFileHandler, logging.handlers.RotatingFileHandler]
)
def test_handlers_of_the_standard_library_too(
    configure: Configure, tmp_path: Path, kind: type[logging.FileHandler]
) -> None:
    path = tmp_path / "e"
    log = logs.make(configure())
    handler = kind(path)
    log.error_log.addHandler(handler)
    log.info("before")
    path.rename(tmp_path / "e.1")
    log.reopen_files()
    log.info("after")
    handler.close()
    assert (tmp_path / "e.1").read_text() == "before\n"
    assert path.read_text() == "after\n"


def test_a_handler_that_truncates_keeps_what_it_has(configure: Configure, tmp_path: Path) -> None:
    log = logs.make(configure())
    handler = logging.FileHandler(tmp_path / "e", mode="w")
    log.error_log.addHandler(handler)
    log.info("before")
    log.reopen_files()
    log.info("after")
    handler.close()
    assert (tmp_path / "e").read_text() == "before\nafter\n"


def test_rotation_of_a_compressed_log(configure: Configure, tmp_path: Path) -> None:
    class Compressed(logging.FileHandler):
        def _open(self):  # type: ignore[no-untyped-def]
            return gzip.open(self.baseFilename, "at")

    path = tmp_path / "e.gz"
    log = logs.make(configure())
    handler = Compressed(path)
    log.error_log.addHandler(handler)
    log.info("before")
    path.rename(tmp_path / "old.gz")
    log.reopen_files()
    log.info("after")
    handler.close()
    assert gzip.decompress((tmp_path / "old.gz").read_bytes()) == b"before\n"
    assert gzip.decompress(path.read_bytes()) == b"after\n"
