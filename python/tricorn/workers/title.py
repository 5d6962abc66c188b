"""Process titles in `ps` and `top`, if the extra `tricorn[setproctitle]` is installed."""

from __future__ import annotations

import sys


def prepare() -> None:
    """Lets setproctitle find the memory it writes to; it cannot any more once the environment was changed."""
    set_title("")


def set_title(text: str) -> None:
    """Shows this process as `text`: "PREFIX: master [NAME]" or "PREFIX: worker [NAME]", after gunicorn's manner."""
    if sys.platform == "darwin":
        return  # what titles are made of there does not survive a fork
    try:
        from setproctitle import getproctitle, setproctitle
    except ImportError:
        return
    setproctitle(text or getproctitle())
