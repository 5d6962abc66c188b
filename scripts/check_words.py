"""Finds turns of phrase in texts for users that scripts/words.txt replaces by plainer ones.

python scripts/check_words.py           fails if a page has more of them than scripts/words-left.txt grants
python scripts/check_words.py --show    prints each with its line and what to write
python scripts/check_words.py --write   writes the numbers of today, which may only become smaller
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORDS = ROOT / "scripts/words.txt"
LEFT = ROOT / "scripts/words-left.txt"
PAGES = ("README.md", "docs/**/*.md", "docs/reference/log-line-notes.txt")
NOT_FOR_USERS = ("docs/internals", "docs/how-it-works/attacks.md")

HEADER = "Pages that still have turns of scripts/words.txt, and how many. Numbers only become smaller.\n\n"
CODE = re.compile(r"`[^`]*`")


class Turn(NamedTuple):
    pattern: re.Pattern[str]
    instead: str


class Found(NamedTuple):
    number: int
    words: str
    instead: str


def turns(text: str) -> list[Turn]:
    """The table of scripts/words.txt."""
    rows = (line.split(" => ", 1) for line in text.splitlines() if " => " in line)
    return [Turn(re.compile(pattern), instead) for pattern, instead in rows]


def find(text: str, table: Sequence[Turn]) -> Iterator[Found]:
    """Yields the turns of a page. Code is left out."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            prose = CODE.sub("", line)
            for turn in table:
                yield from (Found(number, match[0], turn.instead) for match in turn.pattern.finditer(prose))


def granted(text: str) -> dict[str, int]:
    rows = (line.rsplit(" ", 1) for line in text.partition("\n\n")[2].splitlines())
    return {page: int(count) for page, count in rows}


def pages() -> list[Path]:
    found = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    return sorted(path for path in found if not str(path.relative_to(ROOT)).startswith(NOT_FOR_USERS))


def main(arguments: Sequence[str]) -> int:
    table = turns(WORDS.read_text())
    found = {str(path.relative_to(ROOT)): list(find(path.read_text(), table)) for path in pages()}
    counts = {page: len(some) for page, some in found.items() if some}
    if arguments == ["--write"]:
        LEFT.write_text(HEADER + "".join(f"{page} {count}\n" for page, count in counts.items()))
        return 0
    allowed = granted(LEFT.read_text())
    shown = [page for page, count in counts.items() if arguments == ["--show"] or count > allowed.get(page, 0)]
    for page in shown:
        for each in found[page]:
            print(f"{page}:{each.number}: {each.words!r}: {each.instead}")
    return int(bool(shown) and arguments != ["--show"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
