"""A run is packed without loss: its page and the charts that docs show stay beside its raw data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benches import archive


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(archive, "RUNS", tmp_path)
    folder = tmp_path / "2026-01-01-classic"
    (folder / "one/charts").mkdir(parents=True)
    (folder / "README.md").write_text("# A page\n")
    (folder / "one/result.json").write_text(json.dumps({"rate": 1}))
    for name in ("rate", "cpu"):
        (folder / f"one/charts/{name}.svg").write_text(name)
    return folder


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_packed_run_has_its_page_and_the_charts_in_docs_beside_its_archive(run: Path) -> None:
    before = files(run)
    archive.pack(run, {f"{run.name}/one/charts/rate.svg"})
    assert files(run) == {"README.md", "data.tar.xz", "one/charts/rate.svg"}
    with archive.unpacked(run) as folder:
        assert files(folder) == before
        assert json.loads((folder / "one/result.json").read_text()) == {"rate": 1}


def test_a_run_that_is_not_packed_is_read_where_it_is(run: Path) -> None:
    with archive.unpacked(run) as folder:
        assert folder == run


def test_the_same_files_make_the_same_archive(run: Path, tmp_path: Path) -> None:
    archive.pack(run, set())
    first = (run / "data.tar.xz").read_bytes()
    with archive.unpacked(run) as folder:
        (run / "data.tar.xz").unlink()
        again = tmp_path / "again"
        folder.rename(again)
    archive.pack(again, set())
    assert (again / "data.tar.xz").read_bytes() == first
