"""The entry points of the distribution lead somewhere."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_each_names_what_is_there() -> None:
    try:
        import tomllib
    except ImportError:
        pytest.skip("needs a parser for TOML")
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    assert {"pytest11", "flask.commands"} <= groups.keys()
    for group, points in groups.items():
        for name, target in points.items():
            module, _, attribute = target.partition(":")
            found = import_module(module)
            assert not attribute or callable(getattr(found, attribute)), f"{group}: {name} = {target}"
