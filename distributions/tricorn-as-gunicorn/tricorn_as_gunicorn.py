"""Every gunicorn of this environment is tricorn; a line of a .pth file says so to each interpreter that starts."""

from __future__ import annotations

import os
import sys


def install() -> None:
    """From now on the names of gunicorn are tricorn's. An interpreter starts without it, whatever is wrong here."""
    try:
        from tricorn import compat
    except ImportError:
        return
    compat.install(programs=True)


def command() -> int:
    """The command `gunicorn`."""
    os.environ.setdefault("TRICORN_TITLE_PREFIX", "gunicorn")
    from tricorn.cli import main

    return main(sys.argv[1:])
