"""Pages of the site: where each stands there, and what becomes of its links."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.build_site import ELSEWHERE, moved, pages, stage, write_redirects

FOUND = {
    "docs/index.md": "index.md",
    "docs/guides/one.md": "guides/one.md",
    "docs/plot.svg": "plot.svg",
    "CHANGELOG.md": "project/changelog.md",
}


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("[one](guides/one.md#a)", "[one](guides/one.md#a)"),
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
    assert moved("[start](docs/index.md) [x](docs/guides/one.md)", "CHANGELOG.md", FOUND) == (
        "[start](../index.md) [x](../guides/one.md)"
    )


def test_a_text_behind_a_block_of_code_is_changed_too() -> None:
    text = "```sh\nx\n```\n[changes](../CHANGELOG.md)\n"
    assert moved(text, "docs/index.md", FOUND) == "```sh\nx\n```\n[changes](project/changelog.md)\n"


def test_every_file_of_the_documentation_is_staged(tmp_path: Path) -> None:
    root, target = tmp_path / "root", tmp_path / "site"
    left_out = ("docs/__pycache__/conf.pyc", "docs/internals/code-map.md", "docs/redirects.txt")
    for name in ("docs/index.md", "docs/guides/one.md", "docs/plot.svg", "CHANGELOG.md", *left_out):
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


def test_old_addresses_lead_to_the_new_pages(tmp_path: Path) -> None:
    (tmp_path / "guides").mkdir()
    for name in ("guides/tls.html", "guides/logs.html"):
        (tmp_path / name).touch()
    write_redirects("# comment\nhow-to/tls guides/tls\nLOGS guides/logs\nLOGS#tls guides/tls#a\n", tmp_path)
    assert 'content="1; url=../guides/tls.html"' in (tmp_path / "how-to/tls.html").read_text()
    assert 'const moved = {"tls": "guides/tls.html#a"};' in (tmp_path / "LOGS.html").read_text()
    with pytest.raises(SystemExit, match="no page guides/none"):
        write_redirects("old guides/none\n", tmp_path)
