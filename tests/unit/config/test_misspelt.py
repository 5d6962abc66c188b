"""What is a slip, and what is somebody's own name."""

from __future__ import annotations

import pytest
from tricorn.config.misspelt import candidates, slips


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("", "", 0), ("a", "a", 0), ("ab", "ba", 1), ("abc", "ac", 1), ("ac", "abc", 1), ("abc", "axc", 1), ("ab", "", 2),
     ("timeout", "tiemout", 1), ("workers", "bind", 7)],
)  # fmt: skip
def test_slips_are_counted(one: str, other: str, expected: int) -> None:
    assert slips(one, other) == slips(other, one) == expected


@pytest.mark.parametrize(
    ("name", "meant"),
    [("worker", "workers"), ("log_level", "loglevel"), ("log_file", "errorlog"), ("preload", "preload_app")],
)
def test_slips(name: str, meant: str) -> None:
    assert next(candidates(name)).name == meant


@pytest.mark.parametrize("name", ["env", "name", "pid", "port", "x", "", "app", "settings", "logger", "handlers"])
def test_names(name: str) -> None:
    assert not list(candidates(name))
