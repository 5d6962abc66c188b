"""The servers that are compared, each with room for four requests at once. One record each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from benches.end_to_end.servers import PEER
from benches.harness import environment
from benches.harness.process import ROOT

SERVERS_OF_A_GROUP = 4

# A connection stays for the whole run, however long it idles, and no server runs out of connections.
PATIENT = ("--keep-alive", "600", "--worker-connections", "20000")


class Kind(NamedTuple):
    """`command(port)`; `needs` is a flag without which the version at hand is not what the name says."""

    name: str
    package: str
    command: Callable[[int], list[str]]
    needs: str | None = None

    def why_not(self) -> str | None:
        failures = environment.installation_failures()
        if self.package in failures:
            return f"could not be installed: {failures[self.package]}"
        if self.needs is not None and self.needs not in tricorn_help():
            return f"this version has no {self.needs}"
        return None


@cache
def tricorn_help() -> str:
    words = [PEER, "-m", "tricorn", "--help"]
    done = subprocess.run(words, cwd=ROOT / "python", capture_output=True, text=True)
    return done.stdout


def like_gunicorn(package: str, *options: str) -> Callable[[int], list[str]]:
    return lambda port: [
        *(PEER, "-m", package, "-b", f"127.0.0.1:{port}"),
        *(*PATIENT, *options, "benches.one_queue.app:wsgi"),
    ]


def granian(port: int) -> list[str]:
    words = [PEER, "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(port)]
    words += ["--workers", "4", "--blocking-threads", "1", "--http", "1", "--no-ws", "--backpressure", "20000"]
    return [*words, "benches.one_queue.app:wsgi"]


def uvicorn(port: int) -> list[str]:
    words = [PEER, "-m", "uvicorn", "--host", "127.0.0.1", "--port", str(port), "--workers", "4"]
    words += ["--timeout-keep-alive", "600", "--no-access-log", "--log-level", "warning"]
    return [*words, "benches.one_queue.app:asgi"]


SYNC = ("-k", "sync", "-w", "4")
THREADS = ("-k", "gthread", "-w", "2", "--threads", "2")

KINDS = [
    Kind("tricorn-sync", "tricorn", like_gunicorn("tricorn", *SYNC)),
    Kind("tricorn-gthread", "tricorn", like_gunicorn("tricorn", *THREADS)),
    Kind(
        "tricorn-no-handover",
        "tricorn",
        like_gunicorn("tricorn", *SYNC, "--no-handover"),
        needs="--no-handover",
    ),
    Kind(
        "gunicorn-gthread",
        "gunicorn",
        like_gunicorn("gunicorn", "-k", "gthread", "-w", "4", "--threads", "1"),
    ),
    Kind("granian", "granian", granian),
    Kind("uvicorn", "uvicorn", uvicorn),
]
