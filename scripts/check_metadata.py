"""Checks how a package index will show the files of a release. Runs in an environment with requirements/release.txt.

    python scripts/check_metadata.py FILE... [--address https://HOST/OWNER/NAME REVISION]

twine and check-wheel-contents must find nothing. The server's description is rendered as the index renders it, and each
of its links must lead to a file of this checkout, or to an anchor in one. The links start with the address; without it,
they are still relative, as in a wheel that was built before scripts/set_address.py ran.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import BytesParser
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.set_address import absolute

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ("https://code.example/owner/tricorn", "main")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--address", nargs=2, metavar=("ADDRESS", "REVISION"))
    options = parser.parse_args()
    wheels = [name for name in options.files if name.endswith(".whl")]
    # W002: the modules of tricorn.compat are small, and some are equal.
    commands = [["twine", "check", "--strict", *options.files], ["check_wheel_contents", "--ignore", "W002", *wheels]]
    status = max(subprocess.run([sys.executable, "-m", *command]).returncode for command in commands)
    servers = [name for name in wheels if Path(name).name.startswith("tricorn-")]
    for text in {description(Path(name)) for name in servers}:
        address = options.address or EXAMPLE
        for problem in problems(rendered(text if options.address else absolute(text, *EXAMPLE)), *address):
            print(f"description: {problem}")
            status = 1
    return status


def description(wheel: Path) -> str:
    """Returns the text of the page that a wheel has for the index."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", each))
        payload = BytesParser().parsebytes(archive.read(name)).get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def rendered(text: str) -> str:
    html: str | None = import_module("readme_renderer.markdown").render(text)
    if html is None:
        raise SystemExit("the index cannot render the description")
    return html


class Links(HTMLParser):
    """Collects where the links and pictures of a page lead."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.targets += [value or "" for name, value in attrs if (tag, name) in (("a", "href"), ("img", "src"))]


def problems(html: str, address: str, revision: str) -> Iterator[str]:
    """Yields the links of a rendered description that lead nowhere."""
    targets = Links(html).targets
    if not targets:
        yield "there are no links"
    for target in targets:
        own = re.fullmatch(rf"{re.escape(address)}/(?:blob|raw)/{re.escape(revision)}/([^#]+)(?:#(.+))?", target)
        if target.startswith("#"):
            if f'id="{target[1:]}"' not in html:
                yield f"{target}: the page has no such anchor"
        elif own is None:
            if not target.startswith("https://") or target.startswith(address):
                yield f"{target} is not a link to a file of the revision"
        elif not (ROOT / own[1]).exists():
            yield f"{target}: there is no file {own[1]}"
        elif own[2] and own[2] not in anchors((ROOT / own[1]).read_text()):
            yield f"{target}: {own[1]} has no heading for the anchor"


def anchors(page: str) -> set[str]:
    """Returns the anchors of the headings of a page in Markdown."""
    headings = re.findall(r"^#+ +(.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    sys.exit(main())
