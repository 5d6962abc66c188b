"""`tricorn top`: shows a running server live in the terminal, or prints a table or JSON."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

from tricorn.control.client import Control, ControlError, NoAnswer, find
from tricorn_tools.top import as_json, change, screen
from tricorn_tools.top.keys import View
from tricorn_tools.top.loop import Live
from tricorn_tools.top.screen import Scene
from tricorn_tools.top.source import Source

NO_SERVER, NO_ANSWER, INTERRUPTED = 3, 4, 130
"""Exit statuses, beside 0 and argparse's 2."""

MOST_DELAY = 240
"""A control socket closes the connection of a client that has not asked for 300 s."""

TIMEOUT = 2.0
"""Seconds that an answer may take. Keys wait meanwhile."""

DESCRIPTION = """\
Shows a running server live: request rate, latency, queue and memory of each worker, and slow requests. Without a
terminal, or with TERM=dumb, prints a table at each interval."""


def main(words: Sequence[str]) -> int:
    given = parser().parse_args(words)

    def connect() -> Source:
        return Source(Control.connect(find(given.socket, given.name), TIMEOUT))

    try:
        source = connect()
        try:
            if given.json or given.once or not _is_screen():
                return _print(source, given)
            return _show(connect, source, given)
        finally:
            source.close()
    except NoAnswer as error:
        return _failed(error, NO_ANSWER)
    except ControlError as error:
        return _failed(error, NO_SERVER)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # who reads it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser("tricorn top", description=DESCRIPTION, allow_abbrev=False)
    flags.add_argument("-s", "--socket", metavar="SOCKET", help="the control socket of the server")
    flags.add_argument("-n", "--name", metavar="NAME", help="the server with this proc_name")
    flags.add_argument(
        "-d", "--delay", metavar="S", type=_seconds, default=1.0, help="refresh interval in seconds (default: 1)"
    )
    flags.add_argument("--once", action="store_true", help="print one interval and exit")
    flags.add_argument("--json", action="store_true", help="print one line of JSON per interval")
    flags.add_argument("--routes", action="store_true", help="start with the routes; include them in tables and JSON")
    flags.add_argument("--read-only", action="store_true", help="disable the keys that change the server")
    return flags


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.1 <= seconds <= MOST_DELAY:
        raise argparse.ArgumentTypeError(f"expected seconds from 0.1 to {MOST_DELAY}, got {text!r}")
    return seconds


def _is_screen() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def _show(connect: Callable[[], Source], source: Source, given: argparse.Namespace) -> int:
    try:
        import curses  # some builds of Python have none

        from tricorn_tools.top import terminal
    except ImportError:
        return _print(source, given)
    signal.signal(signal.SIGTERM, _leave)  # the terminal is to be given back
    live = Live(connect, source, given.delay, View(is_read_only=given.read_only, shows_routes=given.routes))
    try:
        return terminal.run(live.run)
    except curses.error as error:
        print(
            f"Cannot use the terminal {os.environ.get('TERM')!r} ({error}); printing tables instead.", file=sys.stderr
        )
        return _print(source, given)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _print(source: Source, given: argparse.Namespace) -> int:
    """A first look to compare with, then one each interval."""
    width = os.get_terminal_size().columns if sys.stdout.isatty() else None
    before = source.look(routes=given.routes)
    while True:
        time.sleep(given.delay)
        look = source.look(routes=given.routes)
        changes = change.between(before, look)
        before = look
        if given.json:
            print(json.dumps(as_json.of(look, changes, time.time())), flush=True)
        else:
            print("\n".join(screen.plain(Scene(look, changes, View(shows_routes=given.routes)), width)), flush=True)
        if given.once:
            return 0
        if not given.json:
            print(flush=True)


def _failed(error: ControlError, status: int) -> int:
    print(f"Error: {error}", file=sys.stderr)
    return status
