"""Renders docs/reference/log-lines.md: every line that a server can write to its error log, and what to do about it.

python scripts/render_log_lines.py           writes the page
python scripts/render_log_lines.py --check   fails if it is not what the sources and the notes say
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.log_lines import ERRORS, ROOT, Line, all_lines

PAGE = ROOT / "docs/reference/log-lines.md"
NOTES = ROOT / "docs/reference/log-line-notes.txt"

WHOSE = ("-", "operator", "application", "client", "system", "tricorn")


class Note(NamedTuple):
    text: str
    whose: str
    do: str


INTRODUCTION = """\
# Troubleshooting by log line

<!-- Rendered by scripts/render_log_lines.py from the sources and docs/reference/log-line-notes.txt: change those. -->

This page explains every line of the error log. Search for a few words of the line; `…` replaces a value. Most lines
start with the time, the pid and the level, as in `[2026-11-23 09:06:26 +0000] [13887] [WARNING] …`. Debug lines are
logged only with `--log-level debug`.

*Who can fix it* is the **operator** (a setting, a file, an address), the **application** (its code), the **client**,
the **system** (the kernel, a disk, a network) or **tricorn** (a defect: please report it). If it is empty, nothing is
wrong.
"""

AT_START = """\
## Errors at startup

If the server cannot start, it prints `Error:` and one of these messages, and exits with a [status](exit-statuses.md).
If a reload fails for the same reason, the log has the message after *Reload failed*, and nothing changes.
"""

ENDS = {
    "ConfigError": ("The configuration", "operator", 1),
    "BindError": ("Addresses", "operator", 1),
    "AppImportError": ("Application not found", "operator or application", 4),
    "BootError": ("Application not loadable", "application", 3),
    "TricornError": ("Others", "operator", 1),
}


class Notes(NamedTuple):
    sections: dict[str, list[Note]]
    pieces: frozenset[str]

    @property
    def texts(self) -> list[str]:
        return [note.text for notes in self.sections.values() for note in notes]


def read(text: str) -> Notes:
    """The notes in the form of docs/reference/log-line-notes.txt, which its first lines describe."""
    sections: dict[str, list[Note]] = {}
    for part in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        blocks = [block for block in body.strip().split("\n\n") if block]
        if heading == "Pieces":
            return Notes(sections, frozenset(blocks[1:]))
        sections[heading] = [_note(block) for block in blocks]
    return Notes(sections, frozenset())


def _note(block: str) -> Note:
    text, _, below = block.partition("\n")
    whose, _, do = below.strip().partition(": ")
    if whose not in WHOSE or not do:
        raise SystemExit(
            f"docs/reference/log-line-notes.txt: below {text!r} stands {below!r}; expected WHOSE: WHAT TO DO"
        )
    return Note(text, whose, do)


def render(lines: Sequence[Line], notes: Notes) -> str:
    logged = {line.text: line.level for line in lines if line.level not in ERRORS}
    parts = [INTRODUCTION]
    for heading, section in notes.sections.items():
        rows = "".join(_row(note, logged.get(note.text, "error")) for note in section)
        parts.append(
            f"## {heading}\n\n| Line | Level | Who can fix it | Meaning and remedy |\n|---|---|---|---|\n{rows}"
        )
    parts.append(AT_START)
    for error, (heading, whose, status) in ENDS.items():
        texts = sorted({line.text for line in lines if error in line.level and line.text not in notes.pieces})
        if texts:
            rows = "".join(f"| {_code(text)} |\n" for text in texts)
            parts.append(f"### {heading}\n\nWho can fix it: {whose}. Exit status {status}.\n\n| Line |\n|---|\n{rows}")
    return "\n".join(parts)


def _row(note: Note, level: str) -> str:
    whose = "" if note.whose == "-" else note.whose
    levels = ", ".join(each for each in level.split(" or ") if each not in ERRORS)
    return f"| {_code(note.text)} | {levels} | {whose} | {note.do} |\n"


def _code(text: str) -> str:
    """Inline code in a table's cell."""
    fence = "``" if "`" in text else "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def problems(lines: Sequence[Line], notes: Notes) -> Iterator[str]:
    """Lines without a note, and notes without a line."""
    noted = {*notes.texts, *notes.pieces}
    logged = {line.text: line for line in lines if line.level not in ERRORS}
    for text, line in sorted(logged.items()):
        if text not in noted:
            yield f"{line.place} logs a line that docs/reference/log-line-notes.txt does not have: {text}"
    for text in sorted(noted - {line.text for line in lines}):
        yield f"docs/reference/log-line-notes.txt has a line that no source says: {text}"


def main() -> int:
    lines, notes = all_lines(), read(NOTES.read_text())
    found = list(problems(lines, notes))
    text = render(lines, notes)
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(text)
    elif not found and PAGE.read_text() != text:
        found = ["docs/reference/log-lines.md is not what the sources say: run python scripts/render_log_lines.py"]
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
