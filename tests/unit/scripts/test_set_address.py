"""The README as the page of a package index: all of its links lead to the repository."""

from __future__ import annotations

import re
import sys

import pytest

from scripts.build_site import FENCE, LINK
from scripts.rendered import ROOT
from scripts.set_address import absolute, with_urls

ADDRESS = "https://code.example/owner/tricorn"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[How](docs/diagnose/top.md#keys)", f"[How]({ADDRESS}/blob/v1/docs/diagnose/top.md#keys)"),
        ("![A chart](docs/images/top.svg)", f"![A chart]({ADDRESS}/raw/v1/docs/images/top.svg)"),
        ("[a site](https://example.org/x)", "[a site](https://example.org/x)"),
        ("[below](#license)", "[below](#license)"),
        ("```\n[x](docs/diagnose/top.md)\n```\n", "```\n[x](docs/diagnose/top.md)\n```\n"),
    ],
)
def test_links_lead_to_the_files_of_the_release(text: str, expected: str) -> None:
    assert absolute(text, ADDRESS, "v1") == expected


def test_no_link_of_the_readme_stays_relative() -> None:
    text = (ROOT / "README.md").read_text()
    assert any(not re.match(r"https?:|#", target) for _, _, target in LINK.findall(text)), "they do in the checkout"
    made = FENCE.sub("", absolute(text, ADDRESS, "v1"))
    assert [target for _, _, target in LINK.findall(made) if not re.match(r"https?:|#", target)] == []


def test_the_project_gets_its_addresses() -> None:
    made = with_urls((ROOT / "pyproject.toml").read_text(), ADDRESS, "v1")
    assert f'[project.urls]\nHomepage = "{ADDRESS}"\n' in made
    assert made.count("[project.optional-dependencies]") == 1
    with pytest.raises(SystemExit, match="has addresses already"):
        with_urls(made, ADDRESS, "v1")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no parser of TOML")
def test_package_addresses_are_the_projects() -> None:
    import tomllib

    before = tomllib.loads((ROOT / "pyproject.toml").read_text())
    after = tomllib.loads(with_urls((ROOT / "pyproject.toml").read_text(), ADDRESS, "v1"))
    urls = after["project"].pop("urls")
    assert after == before
    assert {"Homepage", "Documentation", "Changelog", "Issues", "Source"} == set(urls)
    assert all(url.startswith(ADDRESS) for url in urls.values())
