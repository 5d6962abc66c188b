"""The terminal, by curses: draws lines, reads keys. Nothing else knows of it.

No colour is set for the background, and only such for the text as can be read on a light and on a dark one. Without
colours (NO_COLOR, or a terminal that has none) the same things are bold.
"""

from __future__ import annotations

import curses
import locale
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from tricorn_tools.top.screen import Line

T = TypeVar("T")

_NAMES = {
    "KEY_UP": "up",
    "KEY_DOWN": "down",
    "KEY_PPAGE": "page up",
    "KEY_NPAGE": "page down",
    "KEY_ENTER": "enter",
    "\n": "enter",
    "\r": "enter",
    "\x1b": "escape",
    "KEY_RESIZE": "resize",
}
_PLAIN = str.maketrans({"↑": "^", "↓": "v", "·": "-"})


class Terminal:
    def __init__(self, window: curses.window) -> None:
        self._window = window
        window.keypad(True)
        self._attributes = _attributes()
        self._is_unicode = "utf" in locale.nl_langinfo(locale.CODESET).lower()

    def size(self) -> tuple[int, int]:
        """Width and height."""
        height, width = self._window.getmaxyx()
        return width, height

    def draw(self, lines: Sequence[Line]) -> None:
        width, height = self.size()
        self._window.erase()
        for y, line in enumerate(lines[:height]):
            x = 0
            for span in line:
                text = span.text if self._is_unicode else span.text.translate(_PLAIN)
                self._put(y, x, text[: width - x], self._attributes.get(span.style, 0))
                x += len(text)
        self._window.refresh()

    def key(self, seconds: float) -> str | None:
        """The name of the key that is pressed within this time."""
        self._window.timeout(max(0, int(seconds * 1000)))
        try:
            key = self._window.get_wch()
        except curses.error:  # none
            return None
        except KeyboardInterrupt:
            return "q"
        name = curses.keyname(key).decode() if isinstance(key, int) else key
        return _NAMES.get(name, name)

    def _put(self, y: int, x: int, text: str, attribute: int) -> None:
        try:
            self._window.addstr(y, x, text, attribute)
        except curses.error:  # the cursor cannot go beyond the last cell, which is written all the same; or a resize
            pass


def run(body: Callable[[Terminal], T]) -> T:
    """Runs `body` in curses mode, and restores the terminal afterwards. Raises curses.error on a dumb one."""
    locale.setlocale(locale.LC_ALL, "")
    os.environ.setdefault("ESCDELAY", "25")
    os.environ["TERM"] = known(os.environ["TERM"])
    for name in ("LINES", "COLUMNS"):  # ncurses believes them, and then does not follow the terminal's size
        os.environ.pop(name, None)
    return curses.wrapper(lambda window: body(Terminal(window)))


def known(name: str) -> str:
    """The terminal of this name, or the one that it is like. Raises curses.error if neither is known here.

    A slim container has the descriptions of a dozen terminals (Debian: ncurses-base); others are like one of them.
    """
    try:
        curses.setupterm(name)
    except curses.error:
        name = "screen" if name.startswith(("tmux", "screen")) else "xterm"
        curses.setupterm(name)
    return name


def _attributes() -> dict[str, int]:
    styles = {
        "bold": curses.A_BOLD,
        "head": curses.A_REVERSE,
        "chosen": curses.A_REVERSE | curses.A_BOLD,
        "bad": curses.A_BOLD,
        "warn": curses.A_BOLD,
    }
    try:
        curses.curs_set(0)
    except curses.error:  # it has no cursor that could be hidden
        pass
    if curses.has_colors():
        curses.use_default_colors()
    if curses.has_colors() and not os.environ.get("NO_COLOR"):
        for number, (style, colour) in enumerate((("bad", curses.COLOR_RED), ("warn", curses.COLOR_MAGENTA)), 1):
            curses.init_pair(number, colour, -1)
            styles[style] |= curses.color_pair(number)
    return styles
