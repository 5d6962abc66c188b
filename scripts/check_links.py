"""Links in the Markdown files lead somewhere: files exist, and anchors name a heading of the page they point into."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\[\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def main() -> int:
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True
    )
    pages = [ROOT / line for line in listing.stdout.splitlines()]
    found = [problem for page in pages if page.exists() for problem in check(page)]
    print("\n".join(found) or f"{len(pages)} pages: every link leads somewhere")
    return 1 if found else 0


def check(page: Path) -> Iterator[str]:
    text = FENCE.sub("", page.read_text())
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        goal = (page.parent / name).resolve() if name else page
        where = page.relative_to(ROOT)
        if not goal.exists():
            yield f"{where}: {target}: no such file"
        elif not goal.is_relative_to(ROOT):
            yield f"{where}: {target}: leads out of the repository"
        elif anchor and goal.suffix == ".md" and anchor not in anchors(goal):
            yield f"{where}: {target}: no such heading"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {slug(heading) for heading in headings}


def slug(heading: str) -> str:
    """As GitHub makes it: lower case, punctuation dropped, blanks to hyphens."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main())
