"""Process titles in `ps` and `top`, if the extra `tricorn[setproctitle]` is installed."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any


def prepare() -> None:
    """Lets setproctitle find the memory it writes to; it cannot any more once the environment was changed."""
    set_title("")


def set_title(text: str) -> None:
    """Shows this process as `text`: "PREFIX: master [NAME]" or "PREFIX: worker [NAME]", after gunicorn's manner."""
    if sys.platform == "darwin":
        return  # what titles are made of there does not survive a fork
    library = _library()
    if library is not None:
        library.setproctitle(text or library.getproctitle())


@cache
def _library() -> Any:
    """Returns setproctitle. Looked for in the arbiter: to search for what is missing dirties pages of each worker."""
    try:
        import setproctitle
    except ImportError:
        return None
    return setproctitle
