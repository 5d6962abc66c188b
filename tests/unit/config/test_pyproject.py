"""The table [tool.tricorn]."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from tricorn.config import pyproject
from tricorn.config.resolve import Layer, resolve
from tricorn.errors import ConfigError

toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="needs a parser for TOML")


def read(text: str, directory: Path) -> Layer:
    (directory / "pyproject.toml").write_text(text)
    return pyproject.read(str(directory))


@toml
def test_its_keys_are_settings(tmp_path: Path) -> None:
    layer = read(
        '[tool.tricorn]\nworkers = 3\nbind = [":1", "unix:x"]\npreload_app = true\nkeepalive = 1.5\n'
        'pre_fork = "os.path.join"\nraw_env = { A = "1", B = "x=y" }\nlogconfig_dict = { version = 1 }\n',
        tmp_path,
    )
    config = resolve([layer])
    assert (config.workers, config.bind, config.preload_app, config.keepalive) == (3, (":1", "unix:x"), True, 1.5)
    assert config.raw_env == (("A", "1"), ("B", "x=y"))
    assert config.logconfig_dict == {"version": 1}
    assert config.origin("workers") == "[tool.tricorn] in ./pyproject.toml"


@pytest.mark.parametrize(
    "text",
    ["", "[tool.ruff]\nx = 1\n", "[project]\nname = 'tricorn'\n", "[tool.tricorns]\nx = 1\n", "this is [ not toml\n"],
)
def test_other_peoples_tables_are_not_read(text: str, tmp_path: Path) -> None:
    assert read(text, tmp_path) == Layer({})


def test_no_file_is_no_table(tmp_path: Path) -> None:
    assert pyproject.read(str(tmp_path)) == Layer({})


@toml
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("worker = 2", "worker is not a setting; did you mean workers?"),
        ("worker-class = 'sync'", "worker-class is not a setting; did you mean worker_class?"),
        ("zzz = 2", "zzz is not a setting."),
    ],
)
def test_in_our_table_every_key_must_be_known(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"[tool.tricorn]\n{text}\n", tmp_path)
    assert str(caught.value) == f"[tool.tricorn] in ./pyproject.toml: {words}"


@toml
def test_pyproject_without_an_application(tmp_path: Path) -> None:
    (asked,) = read("[tool.tricorn]\ndirty_apps = ['shop:jobs']\n", tmp_path).asked
    words = "gunicorn's setting dirty_apps is not available in this version of tricorn."
    assert asked.sentence == f"[tool.tricorn] in ./pyproject.toml: {words}"


@toml
def test_what_asks_for_nothing_is_granted(tmp_path: Path) -> None:
    assert read("[tool.tricorn]\ndirty_apps = []\n", tmp_path) == Layer({})


@toml
def test_a_file_that_is_not_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^\./pyproject.toml is not valid TOML: .*line 2"):
        read("[tool.tricorn]\nworkers = \n", tmp_path)


@toml
@pytest.mark.parametrize("header", ["[tool.tricorn]", "  [ tool . tricorn ]", '[tool."tricorn"]'])
def test_the_header_in_all_its_forms(header: str, tmp_path: Path) -> None:
    assert set(read(f"x = 1\n{header}\nworkers = 2\n", tmp_path).values) == {"workers"}


def test_without_a_parser_only_who_has_the_table_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def import_module(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", import_module)
    assert read("[tool.other]\n", tmp_path) == Layer({})
    with pytest.raises(ConfigError, match=r"requires Python 3\.11 or later, or the package tomli"):
        read("[tool.tricorn]\n", tmp_path)
