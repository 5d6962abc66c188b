"""`tricorn bench`, `tricorn tune` and `tricorn load`, interrupted or not."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def load(words: Sequence[str]) -> int:
    """Returns the exit status of `tricorn load`."""
    try:
        from tricorn_bench.cli import load_command

        return load_command.main(words)
    except KeyboardInterrupt:  # before the first request, or while the report was written
        sys.stderr.write("\nInterrupted: there is no report.\n")
        return 130


def bench(words: Sequence[str]) -> int:
    """Returns the exit status of `tricorn bench`."""
    try:
        from tricorn_bench.bench import command

        return command.main(words)
    except KeyboardInterrupt:  # before it listened to signals
        sys.stderr.write("\nStopped by SIGINT: nothing had been started.\n")
        return 130


def tune(words: Sequence[str]) -> int:
    """Returns the exit status of `tricorn tune`."""
    try:
        from tricorn_bench.tune import command

        return command.main(words)
    except KeyboardInterrupt:  # before it listened to signals
        sys.stderr.write("\nStopped by SIGINT: nothing had been started.\n")
        return 130
