"""The plugins of gevent that are found without `importlib.metadata` are those that it finds."""

from __future__ import annotations

import importlib
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from tricorn_green import plugins

from tests.harness import with_each

GROUP = "gevent.plugins.monkey.did_patch_all"
NAMED = f"""\
[console_scripts]
plug = plug:main

[{GROUP}]
# called last
first = plug:patched
second=plug:Kind.patched [x]
"""
FOUND = [(GROUP, "plug:Kind.patched [x]"), (GROUP, "plug:patched")]


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(plugins, "_found", None)
    yield sys.path
    importlib.invalidate_caches()


def package(folder: Path, name: str, text: str | None = NAMED) -> str:
    """A directory for the path, in which a package is installed under this name."""
    (folder / name).mkdir(parents=True)
    (folder / name / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: Plug\nVersion: 1.0\n")
    (folder / name / "METADATA").write_text("Metadata-Version: 2.1\nName: Plug\nVersion: 1.0\n")
    if text is not None:
        (folder / name / "entry_points.txt").write_text(text)
    return str(folder)


def found() -> list[tuple[str, str]]:
    return sorted((each.group, each.value) for each in plugins.look())


def told() -> list[tuple[str, str]]:
    """By the standard library."""
    importlib.invalidate_caches()
    return sorted((each.group, each.value) for each in metadata.entry_points().select(group=GROUP))


@with_each(
    "name",
    {
        "of a wheel": "Plug-1.0.dist-info",
        "of setuptools, beside the package": "plug-1.0-py3.11.egg-info",
        "of a checkout": "plug.egg-info",
        "of an egg": "EGG-INFO",
    },
)
def test_a_plugin_is_found(name: str, path: list[str], tmp_path: Path) -> None:
    path.append(package(tmp_path / "plug-1.0-py3.11.egg", name))
    assert found() == told() == FOUND
    assert all(isinstance(each, plugins.Plugin) for each in plugins.look())


def test_the_first_of_a_name_hides_the_others(path: list[str], tmp_path: Path) -> None:
    path += [package(tmp_path / "a", "plug-2.0.dist-info", None), package(tmp_path / "b", "Plug-1.0.dist-info")]
    assert found() == told() == []
    path.reverse()
    assert found() == told() == FOUND


def test_what_is_missing_is_passed_by(path: list[str], tmp_path: Path) -> None:
    (tmp_path / "old-1.0.egg-info").write_text("Metadata-Version: 1.0\nName: old\n")
    path += [str(tmp_path / "none"), package(tmp_path, "plug-1.0.dist-info")]
    assert found() == told() == FOUND
    assert all(isinstance(each, plugins.Plugin) for each in plugins.look())


def test_what_is_in_an_archive_is_asked_for(path: list[str], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("plug-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
        archive.writestr("plug-1.0.dist-info/entry_points.txt", NAMED)
    path.append(str(tmp_path / "packages.zip"))
    assert found() == told() == FOUND


def test_another_way_to_find_packages_is_asked(
    path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = package(tmp_path, "plug-1.0.dist-info")

    class Finder:
        def find_spec(self, *_: object) -> None:
            return None

        def find_distributions(self, _context: object = None) -> Iterator[metadata.Distribution]:
            yield metadata.PathDistribution(Path(folder) / "plug-1.0.dist-info")

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert found() == told() == FOUND


def test_a_plugin_is_loaded_as_the_standard_library_would(
    path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plug.py").write_text("class Kind:\n    patched = 1\n\npatched = 2\n")
    path.append(package(tmp_path, "plug-1.0.dist-info"))
    monkeypatch.delitem(sys.modules, "plug", raising=False)
    asked = plugins.Metadata().entry_points(group=GROUP)
    assert sorted(each.load() for each in asked) == [1, 2]
    assert plugins.Metadata().entry_points(group="gevent.plugins.monkey.will_patch_all") == []
    monkeypatch.delitem(sys.modules, "plug")


def test_all_else_is_asked_of_the_standard_library(path: list[str], tmp_path: Path) -> None:
    path.append(package(tmp_path, "plug-1.0.dist-info"))
    importlib.invalidate_caches()
    stand_in = plugins.Metadata()
    assert [each.value for each in stand_in.entry_points(group="console_scripts")] == ["plug:main"]
    assert stand_in.version("plug") == "1.0"
