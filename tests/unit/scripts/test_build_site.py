"""Pages of the site: where each stands there, and what becomes of its links."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.build_site import ELSEWHERE, moved, pages, stage

FOUND = {
    "docs/index.md": "index.md",
    "docs/how-to/one.md": "how-to/one.md",
    "docs/plot.svg": "plot.svg",
    "CHANGELOG.md": "project/changelog.md",
}


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("[one](how-to/one.md#a)", "[one](how-to/one.md#a)"),
        ("[changes](../CHANGELOG.md)", "[changes](project/changelog.md)"),
        ("![plot](plot.svg)", "![plot](plot.svg)"),
        ("[the code](../python/a.py)", "the code (`python/a.py`)"),
        ("[../python/a.py](../python/a.py)", "`python/a.py`"),
        ("[python/a.py](../python/a.py)", "`python/a.py`"),
        ("[there](#here) [out](https://example.org/x)", "[there](#here) [out](https://example.org/x)"),
        ("```text\n[code](../python/a.py)\n```\n", "```text\n[code](../python/a.py)\n```\n"),
    ],
)
def test_links_of_a_page(text: str, becomes: str) -> None:
    assert moved(text, "docs/index.md", FOUND) == becomes


def test_links_of_a_page_that_stands_elsewhere() -> None:
    assert moved("[start](docs/index.md) [x](docs/how-to/one.md)", "CHANGELOG.md", FOUND) == (
        "[start](../index.md) [x](../how-to/one.md)"
    )


def test_a_text_behind_a_block_of_code_is_changed_too() -> None:
    text = "```sh\nx\n```\n[changes](../CHANGELOG.md)\n"
    assert moved(text, "docs/index.md", FOUND) == "```sh\nx\n```\n[changes](project/changelog.md)\n"


def test_every_file_of_the_documentation_is_staged(tmp_path: Path) -> None:
    root, target = tmp_path / "root", tmp_path / "site"
    for name in ("docs/index.md", "docs/how-to/one.md", "docs/plot.svg", "CHANGELOG.md", "docs/__pycache__/conf.pyc"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("[changes](../CHANGELOG.md)\n")
    assert pages(root) == FOUND
    (target / "old.md").parent.mkdir()
    (target / "old.md").touch()
    stage(root, target)
    assert {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()} == {*FOUND.values()}
    assert (target / "index.md").read_text() == "[changes](project/changelog.md)\n"
    assert (target / "plot.svg").read_text() == "[changes](../CHANGELOG.md)\n"


def test_pages_that_stand_elsewhere_are_in_the_tree_of_the_site() -> None:
    index = (Path(__file__).parents[3] / "docs/index.md").read_text().splitlines()
    assert [place for place in ELSEWHERE.values() if place.removesuffix(".md") not in index] == []
