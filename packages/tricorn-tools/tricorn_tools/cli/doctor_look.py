"""`tricorn doctor --pid`: what each thread of a process does, read without stopping it."""

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
Shows what each thread of a Python process does: its frames, the system call and the peer it waits for, the C library
that called it, its share of a processor, who holds the GIL, and a verdict. It reads the memory of the process, which is
not stopped, gets no signal, and need not be tricorn's."""

EPILOG = "Exit status: 0; 1 with a sentence on stderr: no such process, not permitted, no Python; 2 usage."


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
        help=f"how long the look takes (default: {SECONDS}): processor time is that of this time",
    )
    return flags
