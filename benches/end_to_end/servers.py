"""The servers that are compared: one worker each, otherwise as they come. One record each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from benches.end_to_end.cases import Case
from benches.harness.environment import BENCH_PYTHON
from benches.harness.process import ROOT

LAUNCH = "benches.end_to_end.launch"
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


def tricorn(*options: str) -> Command:
    # The same interpreter and the same libraries as the peers; the package comes from this checkout through PYTHONPATH.
    return like_gunicorn("tricorn", *options)


def like_gunicorn(package: str, *options: str) -> Command:
    def command(application: str, port: int, access_log: str | None) -> list[str]:
        log = ["--access-logfile", access_log] if access_log else []
        return [PEER, "-m", package, "-b", f"127.0.0.1:{port}", "-w", "1", *options, *log, application]

    return command


def granian(application: str, port: int, access_log: str | None) -> list[str]:
    words = [PEER, "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    words += ["--http", "1", "--no-ws", "--backpressure", "20000"] + (["--access-log"] if access_log else [])
    return [*words, application]


def launched(name: str) -> Command:
    return lambda application, port, access_log: [PEER, "-m", LAUNCH, name, application, str(port)]


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
    Kind("tricorn-sync", "tricorn", tricorn("-k", "sync"), logs_access=True),
    Kind("tricorn-gthread", "tricorn", tricorn("-k", "gthread", "--threads", "4"), logs_access=True),
    Kind("tricorn-gevent", "tricorn", tricorn("-k", "gevent"), logs_access=True),
    Kind("tricorn-eventlet", "tricorn", tricorn("-k", "eventlet"), logs_access=True),
    Kind("fastwsgi", "fastwsgi", launched("fastwsgi")),
    Kind("bjoern", "bjoern", launched("bjoern")),
    Kind("fastpysgi", "fastpysgi", launched("fastpysgi")),
    Kind("meinheld", "meinheld", launched("meinheld")),
    Kind("granian", "granian", granian, logs_access=True),
    Kind("waitress", "waitress", launched("waitress")),
    Kind("gunicorn-gevent", "gunicorn", like_gunicorn("gunicorn", "-k", "gevent"), logs_access=True),
    Kind(
        "gunicorn-gthread", "gunicorn", like_gunicorn("gunicorn", "-k", "gthread", "--threads", "4"), logs_access=True
    ),
    Kind("gunicorn-sync", "gunicorn", like_gunicorn("gunicorn", "-k", "sync"), logs_access=True),
]


def is_peer(name: str) -> bool:
    """What tricorn is compared with: not itself, and not the floor, which is no server."""
    return name != "floor" and not name.startswith("tricorn")
