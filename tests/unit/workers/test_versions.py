"""The version of an installed package."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from tricorn.workers import versions
from tricorn.workers.registry import OLDEST


def place(folder: Path, *names: str) -> None:
    for name in ("kangaroo", *names):
        (folder / name).mkdir(parents=True)
    (folder / "kangaroo" / "__init__.py").touch()
    for info in names:
        if info.startswith("kangaroo-") and info.endswith("-info"):
            version = info.removeprefix("kangaroo-").partition("-")[0].rpartition(".")[0]
            (folder / info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: kangaroo\nVersion: {version}\n")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who asked importlib.metadata."""
    asked: list[str] = []
    monkeypatch.setattr(metadata, "version", lambda name: asked.append(name) or "0.1")
    return asked


def test_it_is_in_the_name_of_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    place(tmp_path, "kangaroo-1.2.3.dist-info", "kangaroo_two-4.dist-info", "kangaroos-5.dist-info")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert versions.of_package("kangaroo") == "1.2.3"
    assert told == []


def test_two_of_them_tell_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    place(tmp_path, "kangaroo-1.2.3.dist-info", "kangaroo-1.2.4.dist-info")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert versions.of_package("kangaroo") == "0.1"
    assert told == ["kangaroo"]


def test_a_checkout_on_the_path_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert versions.of_package("kangaroo") is None


def test_it_is_what_the_metadata_say() -> None:
    for package in OLDEST:
        assert versions.of_package(package) == metadata.version(package)
