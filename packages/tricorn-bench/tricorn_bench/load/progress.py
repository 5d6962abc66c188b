"""Progress of a measurement: one line that changes on a terminal, a line each elsewhere."""

from __future__ import annotations

import os
from typing import TextIO


def show(stream: TextIO, line: str, *, stays: bool = False) -> None:
    """Writes a line in place of the last one. One that `stays` is not written over."""
    if stream.isatty():
        # A line that wraps could not be written over: only its last row would go.
        width = os.get_terminal_size(stream.fileno()).columns or 80  # some terminals do not tell it
        shown = line if stays else line[: width - 1]
        stream.write(f"\r\x1b[K{shown}" + "\n" * stays)
    else:
        stream.write(f"{line}\n")
    stream.flush()


def clear(stream: TextIO) -> None:
    """Makes room for the report."""
    if stream.isatty():
        stream.write("\r\x1b[K")
        stream.flush()
