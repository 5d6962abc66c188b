"""What --spew prints."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tricorn.workers import spew


@contextmanager
def spewing() -> Iterator[None]:
    before = sys.gettrace()
    spew.install()
    try:
        yield
    finally:
        threading.settrace(None)
        sys.settrace(before)


def work() -> int:
    number = 20
    return number + 1


LINE = work.__code__.co_firstlineno + 1


def test_lines_are_printed_as_gunicorn_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    with spewing():
        assert work() == 21
    printed = capsys.readouterr().out.splitlines()
    assert f"{__name__}:{LINE}:     number = 20" in printed
    assert f"{__name__}:{LINE + 1}:     return number + 1" in printed


def test_in_threads_too(capsys: pytest.CaptureFixture[str]) -> None:
    with spewing():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert f"{__name__}:{LINE}:     number = 20" in capsys.readouterr().out


def test_code_without_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    with spewing():
        # A name of its own: from 3.13 on, linecache knows the program of `python -c` as that of "<string>".
        exec(compile("number = 20", "<nowhere>", "exec"), {})
    assert "[unknown]:1: [no source: <module>]" in capsys.readouterr().out


def test_where_nothing_can_be_printed_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with spewing():
        assert work() == 21
