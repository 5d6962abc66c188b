"""Progress on a terminal, and in a file."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest
from tricorn_bench.load import progress

AT_THE_START = b"\r\x1b[K"


@pytest.fixture
def terminal() -> Iterator[tuple[TextIO, int]]:
    """A terminal of 20 columns, and the end at which one sees what it shows."""
    seen, written = pty.openpty()
    fcntl.ioctl(written, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 20, 0, 0))
    with os.fdopen(written, "w") as stream:
        yield stream, seen
    os.close(seen)


def test_on_a_terminal_a_line_takes_the_place_of_the_last_one_and_never_wraps(terminal: tuple[TextIO, int]) -> None:
    stream, seen = terminal
    progress.show(stream, "1 s")
    progress.show(stream, "2 s   " + "x" * 40)
    progress.show(stream, "gunicorn is left out: it is not installed", stays=True)
    progress.clear(stream)
    written = b""
    while written.count(AT_THE_START) < 4:  # a terminal hands on what is written in pieces
        written += os.read(seen, 4096)
    lines = written.decode().split(AT_THE_START.decode())
    assert lines == ["", "1 s", "2 s   " + "x" * 13, "gunicorn is left out: it is not installed\r\n", ""]


def test_elsewhere_each_line_is_whole_and_has_no_escape_sequence() -> None:
    stream = io.StringIO()
    progress.show(stream, "x" * 200)
    progress.show(stream, "left out", stays=True)
    progress.clear(stream)
    assert stream.getvalue() == f"{'x' * 200}\nleft out\n"
