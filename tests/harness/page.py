"""A page of the scoreboard as a core leaves it, made word by word as docs/internals/scoreboard.md has them."""

from __future__ import annotations

MAGIC = 0x5452_4943_4F52_4E00
VERSION = 10
QUEUED, FREE, OLDEST = 10, 12, 13
ENTRIES = 46
TABLE, ENTRY = 480, 16
PAGES = 2
"""Of the page of the group: how many pages were ever used."""


def begin(words: memoryview, entries: int = 2) -> None:
    """`words` is a page cast to `Q`. Three requests can run at once, and so many entries were ever used."""
    words[0], words[1], words[3], words[5], words[ENTRIES] = MAGIC, VERSION, 1, 4, entries


def begun(entries: int = 2, words: int = 512) -> memoryview:
    """The words of a new page that was begun."""
    page = memoryview(bytearray(words * 8)).cast("Q")
    begin(page, entries)
    return page


def put(words: memoryview, slot: int, started: int, text: bytes) -> None:
    """A request that runs since then."""
    at = TABLE + slot * ENTRY
    words[at], words[at + 1] = started, len(text)
    words[at + 2 : at + 15] = memoryview(text.ljust(104, b"\0")).cast("Q")
