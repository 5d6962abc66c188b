"""The servers that are compared: one worker each, otherwise as they come. One record each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from tricorn.bench.configuration import Configuration
from tricorn.bench.servers import ASGI, WSGI

from benches.end_to_end.cases import Case
from benches.harness.environment import BENCH_PYTHON
from benches.harness.process import ROOT

PEER = str(BENCH_PYTHON)
FLOOR = ROOT / "target" / "floor"

Command = Callable[[str, int, str | None], list[str]]


class Kind(NamedTuple):
    """`command(application, port, access_log)`; `package` is what has to be installed for it."""

    name: str
    package: str
    command: Command
    logs_access: bool = False
    cases: frozenset[str] | None = None

    def why_not(self, case: Case, failures: dict[str, str]) -> str | None:
        if self.package in failures:
            return f"could not be installed: {failures[self.package]}"
        if case.needs_access_log and not self.logs_access:
            return "has no access log"
        if self.cases is not None and case.name not in self.cases:
            return "-"
        return None


LOGS = {
    "tricorn": ("--access-logfile", "{}"),
    "gunicorn": ("--access-logfile", "{}"),
    "granian": ("--access-log",),
}
"""How a server is told to log each request."""


def kind(name: str, line: str, interface: str = WSGI) -> Kind:
    """A line as `tricorn bench` takes it. All run on one interpreter; this checkout's package comes by PYTHONPATH."""
    configuration = Configuration.parse(line)
    log = LOGS.get(configuration.server, ())

    def command(application: str, port: int, access_log: str | None) -> list[str]:
        words = configuration.command(PEER, application, port, interface)
        return [*words[:-1], *(word.format(access_log) for word in log), words[-1]] if access_log else words

    return Kind(name, configuration.kind.package, command, logs_access=bool(log))


def floor(application: str, port: int, access_log: str | None) -> list[str]:
    return [str(FLOOR), str(port)]


def compile_floor() -> None:
    FLOOR.parent.mkdir(exist_ok=True)
    source = ROOT / "benches" / "end_to_end" / "floor.c"
    done = subprocess.run(["cc", "-O2", "-Wall", "-o", str(FLOOR), str(source)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"floor.c does not compile:\n{done.stderr}")


HELLOS = frozenset({"hello", "hello-browser", "connection-per-request"})

SERVERS = [
    Kind("floor", "cc", floor, cases=HELLOS),
    kind("tricorn-sync", "tricorn sync -w 1"),
    kind("tricorn-gthread", "tricorn gthread -w 1 --threads 4"),
    kind("tricorn-gevent", "tricorn gevent -w 1"),
    kind("tricorn-eventlet", "tricorn eventlet -w 1"),
    kind("fastwsgi", "fastwsgi"),
    kind("bjoern", "bjoern"),
    kind("fastpysgi", "fastpysgi"),
    kind("meinheld", "meinheld"),
    kind("granian", "granian --workers 1 --http 1 --no-ws"),
    kind("waitress", "waitress --threads=4"),
    kind("gunicorn-gevent", "gunicorn gevent -w 1"),
    kind("gunicorn-gthread", "gunicorn gthread -w 1 --threads 4"),
    kind("gunicorn-sync", "gunicorn sync -w 1"),
]


def is_peer(name: str) -> bool:
    """What tricorn is compared with: not itself, and not the floor, which is no server."""
    return name != "floor" and not name.startswith("tricorn")


__all__ = ["ASGI", "PEER", "SERVERS", "WSGI", "Case", "Command", "Kind", "compile_floor", "is_peer", "kind"]
