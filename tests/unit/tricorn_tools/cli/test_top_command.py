"""The words of `tricorn top`."""

from __future__ import annotations

import curses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tricorn
import tricorn_tools
from tricorn.control.client import NoAnswer, NoServer
from tricorn_tools.cli import top_command
from tricorn_tools.top.look import Look

from tests.unit.tricorn_tools.top.made import busy_shop


def test_top_flags() -> None:
    given = top_command.parser().parse_args(["-s", "/run/x", "-d", "0.5", "--once", "--read-only"])
    assert (given.socket, given.name, given.delay, given.once, given.json) == ("/run/x", None, 0.5, True, False)
    assert given.read_only
    assert top_command.parser().parse_args([]).delay == 1.0


@pytest.mark.parametrize("words", [["-d", "0"], ["-d", "nan"], ["-d", "241"], ["--onc"], ["app:app"]])
def test_what_is_no_flag_is_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        top_command.main(words)
    assert ended.value.code == 2
    assert "tricorn top: error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [(NoServer("There is none at /run/x."), 3), (NoAnswer("None within 5 s."), 4), (KeyboardInterrupt(), 130)],
)
def test_why_there_is_nothing_to_show(
    error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(top_command, "find", fails)
    assert top_command.main([]) == status
    assert capsys.readouterr().err == (f"Error: {error}\n" if str(error) else "")


class Looking:
    """A source that is looked at twice."""

    def __init__(self) -> None:
        self.looks = list(busy_shop())

    def look(self, *, routes: bool = False) -> Look:
        return self.looks.pop(0)

    def close(self) -> None:
        pass


def test_a_terminal_that_cannot_be_used_gets_a_table_and_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    def cannot(*_: object) -> None:
        raise curses.error("setupterm: could not find terminal")

    monkeypatch.setattr(curses, "setupterm", cannot)
    monkeypatch.setenv("TERM", "odd")
    given = top_command.parser().parse_args(["--once", "-d", "0.1"])
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert top_command._show(Looking, Looking(), given) == 0  # type: ignore[arg-type]
    finally:
        signal.signal(signal.SIGTERM, before)
    told = capsys.readouterr()
    assert told.err == "Cannot use the terminal 'odd' (setupterm: could not find terminal); printing tables instead.\n"
    assert "891 req/s" in told.out


def test_the_standard_library_is_enough() -> None:
    """-S: without site-packages, as in a container into which nothing can be installed."""
    code = "import tricorn_tools.cli.top_command, tricorn_tools.top.terminal"
    where = os.pathsep.join(str(Path(package.__path__[0]).parent) for package in (tricorn, tricorn_tools))
    subprocess.run([sys.executable, "-S", "-c", code], env={**os.environ, "PYTHONPATH": where}, check=True, timeout=60)
