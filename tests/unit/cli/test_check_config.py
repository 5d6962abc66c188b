"""`--check-config` says of the logs and the pidfile what a start would say, and opens no file that is not there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tricorn.cli import main


@pytest.fixture(autouse=True)
def _here(nothing_configured: Path) -> None:
    (nothing_configured / "checked_app.py").write_text("def application(environ, start_response): ...\n")


@pytest.fixture(autouse=True)
def _forgotten() -> object:
    yield
    sys.modules.pop("checked_app", None)


def check(*argv: str) -> int:
    return main(["--check-config", *argv, "checked_app"])


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--error-logfile", "nowhere/log"], "The error log 'nowhere/log' (errorlog) cannot be written: No such file"),
        (["--access-logfile", "nowhere/log"], "The access log 'nowhere/log' (accesslog) cannot be written: No such"),
        (["--pid", "nowhere/pid"], "Cannot write the pidfile 'nowhere/pid': No such file or directory."),
        (["--pid", "."], "Cannot write the pidfile '.': Is a directory."),
        (
            ["--logger-class", "checked_app.application"],
            "Invalid logger_class 'checked_app.application': expected a subclass",
        ),
        (["--logger-class", "no_such.Logger"], "(logger_class) cannot be imported"),
        (["--log-config-json", "log.json"], "'log.json' (logconfig_json) cannot be used"),
    ],
)
def test_what_a_start_would_fail_with(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("log.json").write_text('{"version": 1, "root": {"handlers": ["nowhere"]}, "loggers": {"gunicorn.error": {}}}')
    assert check(*argv) == 1
    assert words in capsys.readouterr().err


def test_what_can_be_used_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--error-logfile", "error.log", "--access-logfile", "access.log", "--pid", "pid") == 0
    assert sorted({*os.listdir()} - {"__pycache__"}) == ["checked_app.py"]
    assert capsys.readouterr().err == ""


def test_atoms_that_do_not_exist_are_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--access-logfile", "-", "--access-logformat", "%(h)s %(zz)s") == 0
    error = capsys.readouterr().err
    assert "Warning: access_log_format (from --access-logformat): unknown atoms are logged as -: %(zz)s; known" in error


def test_a_class_of_the_applications_kind_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("-k", "asgi") == 1
    assert "is a WSGI application, which the worker class 'asgi' cannot run" in capsys.readouterr().err
    assert check() == 0
