"""Puts the address of the repository into README.md and pyproject.toml, for the page on a package index.

    python scripts/set_address.py https://HOST/OWNER/NAME REVISION

The release runs it before it builds. Links of the README lead to files of REVISION there, since an index shows the page
without the files around it; in the checkout and on the documentation site they stay relative.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.build_site import FENCE, LINK

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    address, revision = sys.argv[1].rstrip("/"), sys.argv[2]
    readme, project = ROOT / "README.md", ROOT / "pyproject.toml"
    readme.write_text(absolute(readme.read_text(), address, revision))
    project.write_text(with_urls(project.read_text(), address, revision))
    return 0


def absolute(text: str, address: str, revision: str) -> str:
    """Returns the README with absolute links. Pictures lead to the files themselves, and not to pages about them."""

    def replace(link: re.Match[str]) -> str:
        mark, words, target = link.groups()
        if re.match(r"[a-z]+:|#", target):
            return link[0]
        kind = "raw" if mark else "blob"
        return f"{mark}[{words}]({address}/{kind}/{revision}/{target})"

    parts: list[str] = []
    end = 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(replace, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join((*parts, LINK.sub(replace, text[end:])))


def with_urls(text: str, address: str, revision: str) -> str:
    """Returns pyproject.toml with the table `[project.urls]`."""
    if "\n[project.urls]\n" in text:
        raise SystemExit("pyproject.toml has addresses already")
    table = f"""\
[project.urls]
Homepage = "{address}"
Documentation = "{address}/blob/{revision}/docs/index.md"
Changelog = "{address}/blob/{revision}/CHANGELOG.md"
Issues = "{address}/issues"
Source = "{address}"

"""
    head, mark, rest = text.partition("[project.optional-dependencies]\n")
    if not mark:
        raise SystemExit("pyproject.toml has no [project.optional-dependencies]")
    return f"{head}{table}{mark}{rest}"


if __name__ == "__main__":
    sys.exit(main())
