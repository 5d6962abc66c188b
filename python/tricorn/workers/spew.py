"""`--spew`: prints every line that is executed. For the search of last resort, and never for production."""

from __future__ import annotations

import linecache
import sys
import threading
from types import FrameType
from typing import Any


def install() -> None:
    """Traces this thread and every one that `threading` starts from now on, to the standard output.

    The form is gunicorn's: `module:line: source`.
    """
    threading.settrace(_trace)
    sys.settrace(_trace)


def _trace(frame: FrameType, event: str, _: object) -> Any:
    if event == "line":
        name = frame.f_globals.get("__name__", "[unknown]")
        source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).rstrip()
        text = source or f"[no source: {frame.f_code.co_name}]"
        try:
            sys.stdout.write(f"{name}:{frame.f_lineno}: {text}\n")
        except (OSError, ValueError, AttributeError):
            pass  # closed, or a pipe without a reader
    return _trace
