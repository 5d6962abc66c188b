"""The page of a package index: links that lead nowhere are found."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from scripts.check_metadata import anchors, description, problems
from scripts.rendered import ROOT
from scripts.set_address import absolute

ADDRESS = "https://code.example/owner/tricorn"
FILE = f"{ADDRESS}/blob/v1/docs/get-started/quickstart.md"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (FILE, None),
        (f"{FILE}#a-reload", None),
        (f"{ADDRESS}/blob/v1/benches/runs", None),
        (f"{ADDRESS}/raw/v1/docs/images/cpu.svg", None),
        ("https://semver.org/", None),
        (f"{FILE}#no-such-heading", "has no heading for the anchor"),
        (f"{ADDRESS}/blob/v1/docs/none.md", "there is no file docs/none.md"),
        (f"{ADDRESS}/blob/main/README.md", "not a link to a file of the revision"),
        ("#none", "the page has no such anchor"),
        ("docs/index.md", "not a link to a file of the revision"),
        ("http://example.org/", "not a link to a file of the revision"),
    ],
)
def test_a_link_leads_to_a_file_of_the_release(target: str, problem: str | None) -> None:
    for html in (f'<p><a href="{target}">x</a></p>', f'<img src="{target}">'):
        found = list(problems(html, ADDRESS, "v1"))
        assert [problem in each for each in found] == [True] if problem else found == []


def test_an_anchor_of_the_page_itself_is_none_of_a_file() -> None:
    assert list(problems('<h2 id="below">x</h2><a href="#below">x</a>', ADDRESS, "v1")) == []


def test_a_description_without_links_is_a_problem() -> None:
    assert list(problems("<p>Hello</p>", ADDRESS, "v1")) == ["there are no links"]


def test_the_description_is_read_from_the_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "tricorn-0.1.0-py3-none-any.whl"
    text = absolute((ROOT / "README.md").read_text(), ADDRESS, "v1")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tricorn-0.1.0.dist-info/METADATA", f"Metadata-Version: 2.4\nName: tricorn\n\n{text}".encode())
    assert description(wheel) == text


def test_anchors_are_those_of_the_hosting() -> None:
    assert anchors("# One queue\n\n## What `run` does, exactly\n") == {"one-queue", "what-run-does-exactly"}
