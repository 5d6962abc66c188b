"""`tricorn doctor profile`: samples all that a running server does for some seconds."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tricorn.cli import values
from tricorn.cli.ctl_text import printable
from tricorn.control.client import Control, ControlError, find
from tricorn_tools.doctor.profile import formats
from tricorn_tools.doctor.profile.analysis import Report, analyse
from tricorn_tools.doctor.profile.text import text
from tricorn_tools.doctor.source import Sources

FAILED, INTERRUPTED = 1, 130
"""Exit statuses, beside 0 and argparse's 2."""

LEAST_SECONDS, MOST_SECONDS, MOST_RATE = 0.1, 600.0, 1000
"""Limits of the server (`arbiter.control.inquiries`)."""
PATIENCE = 10.0
"""Seconds to wait for the answer beyond the time of the profile."""

DESCRIPTION = """\
Samples a running server: its requests (in threads, greenlets and tasks), and event loops and threads outside of
requests. Shows the most expensive functions and call paths of each route. Each worker samples itself by reading
memory, without signals and without the GIL, so a worker that hangs is profiled as well."""

EPILOG = "Exit status: 0 success, 1 no server, no answer or unwritable file (see stderr), 2 usage error."

_FORMATS: dict[str, Callable[[Report], str]] = {
    "text": lambda report: printable(text(report, Sources(os.getpid()).line)),
    "json": lambda report: json.dumps(formats.plain(report), indent=2) + "\n",
    "speedscope": lambda report: json.dumps(formats.speedscope(report)) + "\n",
    "collapsed": formats.collapsed,
    "html": formats.page,
}


def main(words: Sequence[str]) -> int:
    given = parser().parse_args(words)
    arguments = {"seconds": given.seconds, "rate": given.rate}
    if given.worker is not None:
        arguments["slot"] = given.worker
    try:
        with Control.connect(find(given.socket, given.name), timeout=given.seconds + PATIENCE) as control:
            report = analyse(control.ask("profile", **arguments), given.route)
        shown = _FORMATS[given.format](report)
        if given.output is None:
            print(shown, end="")
        else:
            Path(given.output).write_text(shown, encoding="utf-8")
        sys.stdout.flush()
    except (ControlError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # who reads it has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(printable(f"Error: {error}"), file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(
        "tricorn doctor profile", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False
    )
    flags.add_argument("-s", "--socket", metavar="SOCKET", help="the server's control socket")
    flags.add_argument("-n", "--name", metavar="NAME", help="the server with this proc_name")
    flags.add_argument(
        "--seconds",
        metavar="S",
        type=values.seconds(LEAST_SECONDS, MOST_SECONDS),
        default=10.0,
        help="duration (default: 10)",
    )
    flags.add_argument("--rate", metavar="HZ", type=_rate, default=100, help="samples per second (default: 100)")
    flags.add_argument("--worker", metavar="N", type=int, help="only this worker, by slot (see tricorn ctl workers)")
    flags.add_argument("--route", metavar="R", help="only this route, as shown: 'GET /orders/{}'")
    flags.add_argument("--format", choices=tuple(_FORMATS), default="text", help="output format (default: text)")
    flags.add_argument("-o", "--output", metavar="FILE", help="write to this file")
    return flags


def _rate(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else 0
    if not 1 <= number <= MOST_RATE:
        raise argparse.ArgumentTypeError(f"expected 1 to {MOST_RATE} samples per second, not {text!r}")
    return number
