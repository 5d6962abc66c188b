"""`tricorn doctor --pid`: examines each thread of a process without stopping it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from tricorn.cli import values
from tricorn.cli.ctl_text import printable
from tricorn_tools.doctor.engine import SECONDS, DoctorError, look
from tricorn_tools.doctor.source import Sources
from tricorn_tools.doctor.text import text

FAILED, INTERRUPTED = 1, 130
"""Exit statuses, beside 0 and argparse's 2."""

LONGEST = 3600

DESCRIPTION = """\
Shows what each thread of a Python process does: Python frames, the system call and the peer it waits for, the C
library that made the call, CPU share, the holder of the GIL, and a verdict. Works on any CPython process, not only
tricorn's. The process is neither stopped nor signalled; only its memory is read."""

EPILOG = "Exit status: 0 success, 1 no such process, no permission or no Python (see stderr), 2 usage error."


def main(words: Sequence[str]) -> int:
    given = parser().parse_args(words)
    try:
        report = look(given.pid, given.seconds)
        if given.json:
            print(json.dumps(report, indent=2))
        else:
            print(printable(text(report, Sources(given.pid).line, native=given.native)))
        sys.stdout.flush()
    except DoctorError as error:
        print(printable(f"Error: {error}"), file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # who reads it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser("tricorn doctor", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    flags.add_argument("-p", "--pid", metavar="PID", type=values.pid, required=True, help="the process to examine")
    flags.add_argument("--json", action="store_true", help="print the results as JSON")
    flags.add_argument("--native", action="store_true", help="show full native stacks, and threads without Python")
    flags.add_argument(
        "--seconds",
        metavar="S",
        type=values.seconds(0.01, LONGEST),
        default=SECONDS,
        help=f"sampling duration, over which CPU shares are measured (default: {SECONDS})",
    )
    return flags
