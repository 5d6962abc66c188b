"""Shared code of the frameworks' commands, which replace themselves by `tricorn`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import NoReturn

THREADS = 16
"""Threads of a development server: enough for a page and its files, a stream, and a call at a breakpoint."""


NO_SETTINGS = ("--config", "python:tricorn.contrib.no_settings")
"""No configuration file is looked for: gunicorn.conf.py is about the server of production."""


def become_server(words: Iterable[str], *, serves: str) -> NoReturn:
    """Replaces this process by `tricorn` with these command line arguments, in the same interpreter.

    `serves` names the application for the log and the titles of processes: what tricorn is given is a factory of ours.
    """
    os.environ["TRICORN_SERVES"] = serves
    warnings = [f"-W{option}" for option in sys.warnoptions]
    command = [sys.executable, *warnings, "-m", "tricorn", *NO_SETTINGS, *words]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, command)
