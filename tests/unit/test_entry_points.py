"""The entry points of each distribution lead somewhere, and the server knows those of tricorn's own."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tricorn import extensions

ROOT = Path(__file__).parents[2]
PYPROJECTS = (ROOT / "pyproject.toml", *sorted((ROOT / "packages").glob("*/pyproject.toml")))


def project_of(pyproject: Path) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:
        pytest.skip("needs a parser for TOML")
    project: dict[str, Any] = tomllib.loads(pyproject.read_text())["project"]
    return project


@pytest.mark.parametrize("pyproject", PYPROJECTS, ids=lambda path: path.parent.name)
def test_each_entry_point_names_an_object_that_exists(pyproject: Path) -> None:
    project = project_of(pyproject)
    groups = {"console_scripts": project.get("scripts", {}), **project["entry-points"]}
    for group, points in groups.items():
        for name, target in points.items():
            module, _, attribute = target.partition(":")
            found = import_module(module)
            assert not attribute or callable(getattr(found, attribute)), f"{group}: {name} = {target}"


def test_other_tools_find_the_server() -> None:
    assert {"pytest11", "flask.commands"} <= project_of(PYPROJECTS[0])["entry-points"].keys()


def test_the_server_knows_what_its_own_distributions_add() -> None:
    added = {
        (group, name): project["name"]
        for project in map(project_of, PYPROJECTS[1:])
        for group, points in project["entry-points"].items()
        for name in points
    }
    known = {(group, name): own.name for group, names in extensions.OWN.items() for name, own in names.items()}
    assert added == known


def test_each_distribution_comes_with_an_extra() -> None:
    extras = project_of(PYPROJECTS[0])["optional-dependencies"]
    for own in (extensions.GEVENT, extensions.EVENTLET, extensions.BENCH, extensions.TOOLS):
        extra = own.requirement.partition("[")[2].rstrip("]'")
        assert own.name in extras[extra]
    assert extras["all"] == ["tricorn[gevent,bench,tools]"]
