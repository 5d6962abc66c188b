"""Builds the documentation site from docs/: `make docs`.

    python scripts/build_site.py [SPHINX-BUILD]

Copies the pages to dist/docs-source, together with a few from elsewhere in the repository. Links to files that are not
on the site become plain text, so that the site needs no network. Sphinx then writes dist/docs; its warnings, such as
one about an anchor that leads nowhere, are errors. Pagefind indexes the pages for users.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "dist/docs-source"
SITE = ROOT / "dist/docs"

ELSEWHERE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
}
"""Pages of the site by their path in the repository, if there is such a file; those of docs/ keep their names."""

NOT_ON_THE_SITE = ("docs/internals/", "docs/redirects.txt")
"""Pages for contributors, who read them in the repository, and files that build the site."""

SEARCHED = (
    "get-started",
    "guides",
    "deploying",
    "frameworks",
    "diagnose",
    "migrate",
    "reference",
    "how-it-works",
)
"""Folders of pages that the search knows: those for users."""

TABLES = (
    *("index", "migrate/flags", "migrate/from-uwsgi"),
    *("reference/command-line", "reference/environment", "how-it-works/attacks"),
)
"""Pages that have a row for what other pages explain. The search lists them after those."""

MAIN = 'id="furo-main-content"'
"""The element of a page that has its text."""

REDIRECT = """\
<!doctype html>
<meta charset="utf-8">
<title>Moved</title>
<meta name="robots" content="noindex">
<link rel="canonical" href="{target}">
<meta http-equiv="refresh" content="1; url={target}">
<script>
const moved = {anchors};
location.replace(moved[location.hash.slice(1)] ?? "{target}" + location.hash);
</script>
<p>This page is now <a href="{target}">here</a>.
"""
"""Page at an address of an earlier version. Only a script sees the anchor of the address."""

LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def main() -> int:
    builder = sys.argv[1] if len(sys.argv) > 1 else "sphinx-build"
    stage(ROOT, SOURCE)
    shutil.rmtree(SITE, ignore_errors=True)
    command = [builder, "-W", "--keep-going", "--fresh-env", "--quiet", "-d", str(SOURCE / ".doctrees")]
    environment = {**os.environ, "TRICORN_VERSION": version()}
    status = subprocess.run([*command, str(SOURCE), str(SITE)], env=environment).returncode
    if status == 0:
        print(f"{SITE.relative_to(ROOT)}/index.html: {len(list(SITE.rglob('*.html')))} pages")
        status = index(SITE, Path(builder).with_name("python"))
        write_redirects((ROOT / "docs/redirects.txt").read_text(), SITE)
    return status


def index(site: Path, python: Path) -> int:
    """Builds the search index of the pages for users with Pagefind, in place of Sphinx's, which knows no numbers."""
    (site / "searchindex.js").unlink()
    for name in TABLES:
        page = site / f"{name}.html"
        page.write_text(page.read_text().replace(MAIN, f'{MAIN} data-pagefind-weight="0.1"'))
    pages = f"{{index.html,{{{','.join(SEARCHED)}}}/**/*.html}}"
    command = [
        str(python),
        "-m",
        "pagefind_bin",
        "--site",
        str(site),
        "--glob",
        pages,
        "--root-selector",
        "#furo-main-content",
    ]
    command += ["--exclude-selectors", ".headerlink", "--quiet"]
    status = subprocess.run(command).returncode
    for interface in (site / "pagefind").glob("pagefind-*ui.*"):  # ours is docs/_static/search.js
        interface.unlink()
    return status


def version() -> str:
    text = (ROOT / "python/tricorn/version.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return found[1] if found else ""


def pages(root: Path) -> dict[str, str]:
    """Every file of the site: its path in the repository, and its path in the site's sources."""
    docs = [path for path in sorted((root / "docs").rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    own = {path.relative_to(root).as_posix(): path.relative_to(root / "docs").as_posix() for path in docs}
    own = {name: place for name, place in own.items() if not name.startswith(NOT_ON_THE_SITE)}
    return own | {name: place for name, place in ELSEWHERE.items() if (root / name).exists()}


def stage(root: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    found = pages(root)
    for name, place in found.items():
        path = target / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            path.write_text(moved((root / name).read_text(), name, found))
        else:
            shutil.copy(root / name, path)


def write_redirects(table: str, site: Path) -> None:
    """Writes a page for each address of an earlier version. A line of the table: OLD[#ANCHOR] NEW[#ANCHOR]."""
    rows = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
    goals: dict[str, str] = {}
    anchors: dict[str, dict[str, str]] = {}
    for old, new in rows:
        page, _, anchor = old.partition("#")
        goal, hash_, there = new.partition("#")
        if not (site / f"{goal}.html").is_file():
            raise SystemExit(f"docs/redirects.txt: there is no page {goal}")
        target = f"{os.path.relpath(f'{goal}.html', PurePosixPath(page).parent)}{hash_}{there}"
        if anchor:
            anchors.setdefault(page, {})[anchor] = target
        else:
            goals[page] = target
    for page, target in goals.items():
        path = site / f"{page}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(REDIRECT.format(target=target, anchors=json.dumps(anchors.get(page, {}))))


def moved(text: str, name: str, found: dict[str, str]) -> str:
    """The text of a page with its links as they are in the site. `name` is its path in the repository."""
    parts: list[str] = []
    end = 0
    for fence in FENCE.finditer(text):
        parts += [_relinked(text[end : fence.start()], name, found), fence[0]]
        end = fence.end()
    return "".join((*parts, _relinked(text[end:], name, found)))


def _relinked(text: str, name: str, found: dict[str, str]) -> str:
    def replace(link: re.Match[str]) -> str:
        mark, words, target = link.groups()
        path, hash_, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return link[0]
        goal = os.path.normpath(PurePosixPath(name).parent / path)
        if goal in found:
            there = os.path.relpath(found[goal], PurePosixPath(found[name]).parent)
            return f"{mark}[{words}]({there}{hash_}{anchor})"
        shown = words.strip("`")
        return f"{words} (`{goal}`)" if shown != goal and shown != path else f"`{goal}`"

    return LINK.sub(replace, text)


if __name__ == "__main__":
    sys.exit(main())
