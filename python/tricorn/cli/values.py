"""Values of flags that several commands have."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def pid(text: str) -> int:
    """Raises ArgumentTypeError."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else 0
    if not 0 < number < 1 << 31:
        raise argparse.ArgumentTypeError(f"a process has a number from 1 on, not {text!r}")
    return number


def seconds(least: float, most: float) -> Callable[[str], float]:
    """A number within these bounds; else the result raises ArgumentTypeError."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"from {least:g} to {most:g} seconds, not {text!r}")
        return value

    return read
