"""What is a slip, and what is a name of its own."""

from __future__ import annotations

import pytest
from tricorn.config.registry import meant_by
from tricorn.spelling import hint, near, slips


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("", "", 0), ("a", "a", 0), ("ab", "ba", 1), ("abc", "ac", 1), ("ac", "abc", 1), ("abc", "axc", 1), ("ab", "", 2),
     ("timeout", "tiemout", 1), ("workers", "bind", 7)],
)  # fmt: skip
def test_slips_are_counted(one: str, other: str, expected: int) -> None:
    assert slips(one, other) == slips(other, one) == expected


def test_the_nearest_comes_first_and_longer_words_may_have_two_slips() -> None:
    assert near("logfil", ("logfiles", "profile", "log-file", "LogFil")) == ["LogFil", "log-file"]
    assert near("accslogfil", ("access_logfile",)) == []
    assert near("acceslogfil", ("access_logfile",)) == ["access_logfile"]


def test_the_end_of_a_sentence() -> None:
    assert hint("snyc", ("async", "sync")) == "; did you mean 'sync'?"
    assert hint("snyc", ("sync",), "--{}") == "; did you mean --sync?"
    assert hint("nope", ("sync",)) == "."
    assert hint("nope", ("sync",), otherwise="") == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [("worker", "workers"), ("log_level", "loglevel"), ("log_file", "errorlog"), ("preload", "preload_app")],
)
def test_settings_that_are_meant(name: str, meant: str) -> None:
    assert next(meant_by(name)).name == meant


@pytest.mark.parametrize("name", ["env", "name", "pid", "port", "x", "", "app", "settings", "logger", "handlers"])
def test_names_that_are_no_slips(name: str) -> None:
    assert not list(meant_by(name))
