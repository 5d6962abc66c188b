"""`tricorn ctl [COMMAND …]`: queries and controls a running server; without a command, an interactive prompt."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Any

from tricorn.cli import ctl_text
from tricorn.cli.ctl_syntax import FORMS, LS, Asking, Usage, asks_for_help, explanation, parse
from tricorn.control import client
from tricorn.control.client import Control, ControlError, NoAnswer, NoServer, Refused

TIMEOUT = 5.0
PATIENCE = 300.0
"""Timeout in seconds with `--wait`: a reload or a worker has to finish first."""

HISTORY = "~/.tricorn_ctl_history"

INTERRUPTED = 130


class Status(IntEnum):
    """Exit statuses."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    NO_SERVER = 3
    NO_ANSWER = 4


def main(words: Sequence[str]) -> int:
    options = _parser().parse_args(words)
    line = [word for word in options.word if word != "--json"]
    as_json = options.json or len(line) < len(options.word)
    try:
        if line == ["ls"]:
            return _list(as_json=as_json)
        if line == ["help"]:
            print(_help())
            return Status.DONE
        if (asked := asks_for_help(line)) is not None:
            print(explanation(asked))
            return Status.DONE
        asking = parse(line) if line else None
        path = os.fspath(client.find(options.socket, options.name))
        if asking is None:
            return _prompt(path, options.timeout, as_json=as_json)
        with Control.connect(path, _timeout(options.timeout, asking)) as control:
            if asking.changes and not client.is_named(options.socket, options.name):
                _check_meant(control)
            return _ask(control, asking, as_json=as_json)
    except Usage as usage:
        print(usage, file=sys.stderr)
        return Status.USAGE
    except ControlError as error:
        return _failed(error)
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tricorn ctl",
        usage="tricorn ctl [-s SOCKET | -n NAME] [-t SECONDS] [--json] [COMMAND ...]",
        description="Query and control a running server through its control socket. Without a command: interactive "
        "prompt.",
        epilog=f"{_help()}\n\nExit status: 0 success, 1 rejected or failed, 2 usage error, 3 no server, 4 timeout.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-s", "--socket", metavar="SOCKET", help=f"its control socket (${client.VARIABLE})")
    which.add_argument("-n", "--name", metavar="NAME", help="the server with this proc_name")
    parser.add_argument("-t", "--timeout", metavar="SECONDS", type=float, help="timeout for the answer")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("word", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _help() -> str:
    forms = [(form.usage, form.help) for form in FORMS.values()]
    forms.append((LS.usage, LS.help))
    width = max(len(usage) for usage, _ in forms)
    return "\n".join(["commands:", *(f"  {usage:{width}}  {about}" for usage, about in forms)])


def _timeout(given: float | None, asking: Asking) -> float:
    if given is not None:
        return given
    watched = asking.arguments.get("for", 0.0)
    return PATIENCE + watched if asking.waits else TIMEOUT


def _ask(control: Control, asking: Asking, *, as_json: bool) -> int:
    if asking.word == "events":
        for event in control.events():
            print(json.dumps(event) if as_json else ctl_text.text("event", event), flush=True)
        return Status.DONE
    if asking.word == "memory":
        return _memory(control, as_json=as_json)
    result = control.ask(asking.word, **asking.arguments)
    print(json.dumps(result, indent=2) if as_json else ctl_text.text(asking.word, result), flush=True)
    return Status.DONE


def _memory(control: Control, *, as_json: bool) -> int:
    from tricorn.cli import ctl_memory

    result = ctl_memory.look(control)
    heads = ("PROCESS", "SLOT", "PID", "PSS", "USS", "SHARED", "RSS")
    print(json.dumps(result, indent=2) if as_json else ctl_text.table(heads, ctl_memory.rows_of(result)), flush=True)
    return Status.DONE


def _check_meant(control: Control) -> None:
    """Prints which server was found. Raises Usage if it runs in another directory."""
    status = control.ask("status")
    name, directory = status.get("name"), status.get("directory")
    server = f"{name} (pid {status.get('pid')}, {status.get('app')}) in {directory}"
    try:
        is_here = directory is not None and os.path.samefile(directory, os.curdir)
    except OSError:
        is_here = False
    if not is_here:
        how = f"--name {shlex.quote(str(name))}" if name else f"--socket {shlex.quote(control.path)}"
        raise Usage(
            ctl_text.printable(f"The only server is {server}, which runs in another directory. Select it with {how}.")
        )
    print(ctl_text.printable(f"Server: {server}"), file=sys.stderr)


def _failed(error: ControlError) -> Status:
    print(ctl_text.printable(f"Error: {error}"), file=sys.stderr)
    match error:
        case NoServer():
            return Status.NO_SERVER
        case NoAnswer():
            return Status.NO_ANSWER
    return Status.REFUSED


def _list(*, as_json: bool) -> int:
    rows: list[dict[str, Any]] = []
    for found in client.sockets(client.looked_at()):
        if not found.alive:
            client.remove_dead(found)
            continue
        row: dict[str, Any] = {"name": None, "pid": None, "app": None, "uptime": None, "socket": found.path}
        try:
            with Control.connect(found.path, client.PROBE) as control:
                status = control.ask("status")
            row |= {key: status.get(key) for key in ("name", "pid", "app", "uptime")}
        except ControlError:
            pass  # it is shown without what it does not tell
        rows.append(row)
    if as_json:
        print(json.dumps(rows, indent=2))
        return Status.DONE
    shown = [
        (row["name"], row["pid"], row["app"], ctl_text.duration(row["uptime"] or 0), row["socket"]) for row in rows
    ]
    print(ctl_text.printable(ctl_text.table(("NAME", "PID", "APP", "AGE", "SOCKET"), shown)) or "No servers.")
    return Status.DONE


def _prompt(path: str, timeout: float | None, *, as_json: bool) -> int:
    """Reads commands until the end of the input."""
    history = _History()
    print(f"Connected to {path}. Type `help` for the commands, Ctrl-D to quit.")
    try:
        while True:
            try:
                line = shlex.split(input("tricorn> "))
            except ValueError as error:
                print(f"Could not parse this line: {error}.")
                continue
            if line in (["quit"], ["exit"], ["q"]):
                return Status.DONE
            if line:
                _answer(path, line, timeout, as_json=as_json)
    except EOFError:
        print()
        return Status.DONE
    finally:
        history.keep()


def _answer(path: str, line: list[str], timeout: float | None, *, as_json: bool) -> None:
    if line == ["help"]:
        print(_help())
        return
    try:
        if (asked := asks_for_help(line)) is not None:
            print(explanation(asked))
            return
        asking = parse(line)
        # A connection for each line: the server may be another one by then, and drops clients that are silent.
        with Control.connect(path, _timeout(timeout, asking)) as control:
            _ask(control, asking, as_json=as_json)
    except (Usage, Refused, ControlError) as error:
        print(ctl_text.printable(str(error)))
    except KeyboardInterrupt:
        print()


class _History:
    """Command history, if this Python has readline and the file is writable."""

    def __init__(self) -> None:
        self._path = os.path.expanduser(HISTORY)
        try:
            import readline
        except ImportError:
            return
        words = sorted({name.split(" ")[0] for name in FORMS} | {"help", "quit"})

        def complete(beginning: str, number: int) -> str | None:
            fitting = [word for word in words if word.startswith(beginning)]
            return fitting[number] if number < len(fitting) else None

        readline.set_completer(complete)
        readline.parse_and_bind("tab: complete")
        with suppress(OSError):
            readline.read_history_file(self._path)

    def keep(self) -> None:
        with suppress(ImportError, OSError):
            import readline

            readline.set_history_length(500)
            readline.write_history_file(self._path)
