"""Output whose reader leaves early: `tricorn --print-config main:app | head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def until_reader_leaves() -> Iterator[None]:
    """Runs a command that prints. If the reader of standard output is gone, the command ends quietly with status 0.

    What is printed is buffered in part, so it is flushed here, not at the interpreter's end, which would complain.
    A broken pipe to anything else is an error as before.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        if not _has_lost_its_reader():
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)  # takes what is left in the buffer
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise SystemExit(0) from None


def _has_lost_its_reader() -> bool:
    """Whether nothing reads standard output any more: poll(2) reports POLLERR for such a pipe."""
    import select

    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))
    except (OSError, ValueError, AttributeError):  # no file, or closed
        return False
