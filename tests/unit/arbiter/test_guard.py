"""Exceptions because of what a worker has written or sent."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn.arbiter.guard import PAUSE, Guard


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def exception(self, text: str, *arguments: object) -> None:
        self.lines.append(text % arguments)


def test_an_exception_is_suppressed_and_each_kind_logged_from_time_to_time() -> None:
    log: Any = Log()
    now = 0.0
    guard = Guard(lambda: log, lambda: now)
    for _ in range(3):
        for what in ("The pages cannot be read", "The status cannot be written"):
            with guard(what):
                raise ValueError("garbage")
    assert log.lines == [
        "The pages cannot be read (this is a defect of tricorn).",
        "The status cannot be written (this is a defect of tricorn).",
    ]
    now = PAUSE
    with guard("The pages cannot be read"):
        raise ValueError("garbage")
    assert len(log.lines) == 3


def test_what_ends_a_process_is_not_suppressed() -> None:
    log: Any = Log()
    guard = Guard(lambda: log, lambda: 0.0)
    with pytest.raises(SystemExit), guard("The pages cannot be read"):
        raise SystemExit(1)
    assert not log.lines
