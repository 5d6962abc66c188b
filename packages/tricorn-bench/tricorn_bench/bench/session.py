"""Common to commands that measure: signals, processes that must not stay, the request, progress."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tricorn_bench.bench import process
from tricorn_bench.bench.errors import BenchError, Interrupted
from tricorn_bench.bench.measure import Generator
from tricorn_bench.bench.trial import Request
from tricorn_bench.load import progress


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises Interrupted in the block at the first signal. Further signals do not disturb the cleanup."""
    ended = False

    def stop(number: int, _: object) -> None:
        nonlocal ended
        if not ended:
            ended = True
            raise Interrupted(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        ended = True
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def leaving_no_process() -> Iterator[None]:
    """Kills every descendant at the end of the block, whatever ends it."""
    process.adopt_orphans()
    try:
        yield
    finally:
        try:
            process.end_descendants()
        except Interrupted:  # by the first signal; there is no second one
            process.end_descendants()
            raise


def generator() -> Generator:
    """Returns the native load generator."""
    from tricorn_bench import load

    return load.run


def request(arguments: argparse.Namespace) -> Request:
    """Makes the request of `options.add_request`. Raises BenchError if its body cannot be read."""
    body = arguments.data.encode()
    if arguments.data_file:
        try:
            body = Path(arguments.data_file).read_bytes()
        except OSError as error:
            raise BenchError(f"The body {arguments.data_file} cannot be read: {error.strerror}.") from None
    return Request(
        path=arguments.path,
        method=arguments.method.upper() if not body or arguments.method != "GET" else "POST",
        headers=tuple(arguments.header),
        body=body,
        keep_alive=not arguments.close,
        timeout=arguments.timeout,
    )


def say(line: str, *, stays: bool = False) -> None:
    """Shows progress on stderr, apart from the report."""
    progress.show(sys.stderr, line, stays=stays)
