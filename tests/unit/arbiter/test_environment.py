"""What the process is given before anything is loaded."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest
from tricorn.arbiter import environment
from tricorn.arbiter.environment import Environment
from tricorn.config.command_line import read_arguments
from tricorn.config.config import Config
from tricorn.config.resolve import resolve
from tricorn.errors import ConfigError


def configure(*argv: str) -> Config:
    return resolve([read_arguments(argv)])


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["/usr/lib/elsewhere"])
    monkeypatch.setenv("TRICORN_TEST_VARIABLE", "before")


def test_variables_are_set() -> None:
    Environment().enter(configure("-e", "TRICORN_TEST_VARIABLE=a=b"))
    assert os.environ["TRICORN_TEST_VARIABLE"] == "a=b"


def test_the_directory_is_entered_and_imported_from(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    Environment().enter(configure("--chdir", str(tmp_path / "site")))
    assert Path.cwd() == tmp_path / "site"
    assert sys.path == [str(tmp_path / "site"), "/usr/lib/elsewhere"]


def test_pythonpath_comes_before_the_directory_and_the_last_first(tmp_path: Path) -> None:
    Environment().enter(configure("--pythonpath", "one,/two"))
    assert sys.path == ["/two", str(tmp_path / "one"), str(tmp_path), "/usr/lib/elsewhere"]


def test_a_directory_that_is_not_there_is_the_operators_to_mend() -> None:
    with pytest.raises(ConfigError, match="Invalid value for chdir: /no/such/directory: No such file"):
        Environment().enter(configure("--chdir", "/no/such/directory"))


def test_the_next_configuration_finds_all_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    it = Environment()
    it.enter(configure("--chdir", "site", "-e", "TRICORN_TEST_VARIABLE=one", "-e", "TRICORN_TEST_OTHER=1"))
    it.enter(configure())
    assert Path.cwd() == tmp_path
    assert os.environ["TRICORN_TEST_VARIABLE"] == "before"
    assert "TRICORN_TEST_OTHER" not in os.environ
    assert sys.path == [str(tmp_path), "/usr/lib/elsewhere"]


def test_a_configuration_that_cannot_be_entered_changes_nothing(tmp_path: Path) -> None:
    it = Environment()
    it.enter(configure("-e", "TRICORN_TEST_VARIABLE=one"))
    with pytest.raises(ConfigError):
        it.enter(configure("--chdir", "nowhere"))
    assert Path.cwd() == tmp_path
    assert os.environ["TRICORN_TEST_VARIABLE"] == "one"


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ((1024, 4096), (4096, 4096)),
        ((1024, 1 << 30), (65_536, 1 << 30)),
        ((1024, resource.RLIM_INFINITY), (65_536, resource.RLIM_INFINITY)),
        ((4096, 4096), None),
        ((1 << 20, 1 << 20), None),
    ],
)
def test_the_limit_of_open_files_is_raised_within_bounds(
    limits: tuple[int, int], wanted: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, value: done.append(value))
    environment.raise_file_limit()
    assert done == ([wanted] if wanted else [])
