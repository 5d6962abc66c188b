"""`tricorn doctor slow`: compares the slow requests of a running server with the usual ones."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tricorn.cli.ctl_text import printable
from tricorn.control.client import Control, ControlError, find
from tricorn_tools.doctor.slow import formats
from tricorn_tools.doctor.slow.analysis import Report, analyse
from tricorn_tools.doctor.slow.text import text
from tricorn_tools.doctor.source import Sources

FAILED = 1

DESCRIPTION = """\
Shows, for each route of a running server, what made its slowest 1 % of requests slower than the others: the lines of
Python code and the time they took. The server samples requests that take longer than profile_after."""

EPILOG = "Exit status: 0 success, 1 no server, no answer or unwritable file (see stderr), 2 usage error."

_FILES: dict[str, Callable[[Report], str]] = {
    "speedscope": lambda report: json.dumps(formats.speedscope(report)),
    "collapsed": formats.collapsed,
    "html": formats.page,
}


def main(words: Sequence[str]) -> int:
    given = parser().parse_args(words)
    try:
        with Control.connect(find(given.socket, given.name), timeout=given.timeout) as control:
            report = analyse(control.ask("slow"), given.route)
        written = [
            _write(Path(getattr(given, kind)), make(report)) for kind, make in _FILES.items() if getattr(given, kind)
        ]
        if given.json:
            print(json.dumps(formats.plain(report), indent=2))
        elif not written:
            print(printable(text(report, Sources(os.getpid()).line)), end="")
        sys.stdout.flush()
    except (ControlError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # who reads it has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(printable(f"Error: {error}"), file=sys.stderr)
        return FAILED
    return 0


def _write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser("tricorn doctor slow", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    flags.add_argument("-s", "--socket", metavar="SOCKET", help="the server's control socket")
    flags.add_argument("-n", "--name", metavar="NAME", help="the server with this proc_name")
    flags.add_argument("-t", "--timeout", metavar="S", type=float, default=5.0, help="timeout in seconds (default: 5)")
    flags.add_argument("--route", metavar="R", help="only this route, as shown: 'GET /orders/{}'")
    flags.add_argument("--json", action="store_true", help="print the results as JSON")
    flags.add_argument("--speedscope", metavar="FILE", help="write a profile for https://www.speedscope.app")
    flags.add_argument("--collapsed", metavar="FILE", help="write collapsed stacks, for flamegraph.pl")
    flags.add_argument("--html", metavar="FILE", help="write flame graphs to an HTML page")
    return flags
