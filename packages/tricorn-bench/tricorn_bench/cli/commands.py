"""`tricorn bench`, `tricorn tune` and `tricorn load`, interrupted or not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module


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
    return _measure("tricorn_bench.bench.command", words)


def tune(words: Sequence[str]) -> int:
    """Returns the exit status of `tricorn tune`."""
    return _measure("tricorn_bench.tune.command", words)


def _measure(module: str, words: Sequence[str]) -> int:
    try:
        status: int = import_module(module).main(words)
    except KeyboardInterrupt:  # before the command listened to signals
        sys.stderr.write("\nStopped by SIGINT: nothing had been started.\n")
        return 130
    return status
