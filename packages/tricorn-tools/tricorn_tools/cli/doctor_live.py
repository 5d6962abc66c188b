"""`tricorn doctor` for a running server: stalls by cost, the workers' time, and running requests."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tricorn.cli import ctl_text, values
from tricorn.control import client
from tricorn.control.client import Control, ControlError, NoServer, Refused
from tricorn_tools.cli import doctor_live_text as live_text

FAILED, INTERRUPTED = 1, 130
"""Exit statuses, beside 0 and argparse's 2."""

TIMEOUT = 5.0
SCHEMA = "tricorn-doctor/1"
LOOK = 0.5
"""Seconds for which the workers' time is measured."""
LONG = 1.0
"""Age in seconds from which on the oldest request is shown with its stack."""
MOST_DELAY = 240.0

DESCRIPTION = """\
Shows what blocks the workers of a running server and how to fix it, most expensive first. Then: the cost of each
route, how workers spend their time, and running requests, with the stacks of the worker that has the oldest one."""

EPILOG = "Exit status: 0 success, 1 no server or no answer (see stderr), 2 usage error."


def main(words: Sequence[str]) -> int:
    given = parser().parse_args(words)
    try:
        with Control.connect(_socket(given), TIMEOUT) as control:
            while True:
                report = look(control, given.since)
                shown = json.dumps(report) if given.json else ctl_text.printable(live_text.text(report))
                print(shown, flush=True)
                if given.watch is None:
                    return 0
                time.sleep(max(0.0, given.watch - LOOK))
                if not given.json:
                    print(flush=True)
    except ControlError as error:
        print(ctl_text.printable(f"Error: {error}"), file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # who reads it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def look(control: Control, since: str) -> dict[str, Any]:
    """Collects the report. Raises ControlError."""
    before, began = control.ask("workers")["workers"], time.monotonic()
    time.sleep(LOOK)
    now, seconds = control.ask("workers")["workers"], time.monotonic() - began
    stalls = control.ask("stalls", since=since)
    running = control.ask("requests")
    oldest = next(iter(running["requests"]), None)
    stacks: list[Any] = []
    if oldest is not None and oldest["age"] >= LONG:
        try:
            stacks = control.ask("stacks", slot=oldest["slot"])["workers"]
        except Refused:  # it has ended meanwhile, or the user may only query
            pass
    return {
        "schema": SCHEMA,
        "status": control.ask("status", brief=True),
        "since": since,
        "doctor": stalls["doctor"],
        "stalls": stalls["stalls"],
        "forgotten": stalls["forgotten"],
        "routes": _routes(control),
        "workers": live_text.gauges(before, now, seconds),
        "requests": running["requests"],
        "count": running["count"],
        "stacks": stacks,
    }


def _routes(control: Control) -> dict[str, Any]:
    try:
        return control.ask("routes")
    except Refused:  # an older server has no routes
        return {"counted": False, "routes": []}


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser("tricorn doctor", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    which = flags.add_mutually_exclusive_group()
    which.add_argument("server", metavar="PID", nargs="?", type=values.pid, help="pid of the server (its arbiter)")
    which.add_argument("--pidfile", metavar="FILE", help="the server with this pidfile")
    which.add_argument("-s", "--socket", metavar="SOCKET", help=f"its control socket (${client.VARIABLE})")
    which.add_argument("-n", "--name", metavar="NAME", help="the server with this proc_name")
    flags.add_argument(
        "--since",
        choices=("start", "minute"),
        default="start",
        help="period for which costs are summed (default: start)",
    )
    how = flags.add_mutually_exclusive_group()
    how.add_argument("--once", action="store_true", help="print one report and exit (default)")
    how.add_argument(
        "--watch",
        metavar="S",
        nargs="?",
        type=values.seconds(LOOK, MOST_DELAY),
        const=2.0,
        help="print a report every S seconds (2)",
    )
    flags.add_argument("--json", action="store_true", help="print one line of JSON per report")
    return flags


def _socket(given: argparse.Namespace) -> str:
    """Raises NoServer."""
    pid = given.server if given.pidfile is None else _read(given.pidfile)
    if pid is None:
        return os.fspath(client.find(given.socket, given.name))
    for found in client.sockets(client.looked_at()):
        if found.alive:
            try:
                with Control.connect(found.path, client.PROBE) as control:
                    if control.ask("status", brief=True).get("pid") == pid:
                        return found.path
            except ControlError:
                continue
    raise NoServer(f"No control socket of a server with pid {pid} found in the usual places. Select it with --socket.")


def _read(pidfile: str) -> int:
    try:
        return values.pid(Path(pidfile).read_text("ascii").strip())
    except OSError as error:
        raise NoServer(f"Cannot read the pidfile {pidfile}: {error.strerror}.") from None
    except (ValueError, argparse.ArgumentTypeError):
        raise NoServer(f"{pidfile} is not a pidfile: expected a number.") from None
