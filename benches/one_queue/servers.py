"""The servers that are compared, each with room for four requests at once. One record each."""

from __future__ import annotations

import subprocess
from functools import cache
from typing import NamedTuple

from tricorn.bench.configuration import Configuration
from tricorn.bench.servers import ASGI, WSGI

from benches.end_to_end.servers import PEER
from benches.harness import environment
from benches.harness.process import ROOT

SERVERS_OF_A_GROUP = 4

# A connection stays for the whole run, however long it idles, and no server runs out of connections.
PATIENT = "--keep-alive 600 --worker-connections 20000"
APPLICATION = "benches.one_queue.app"


class Kind(NamedTuple):
    """`line` is a configuration of `tricorn bench`; without the flag `needs` this version is not what `name` says."""

    name: str
    line: str
    needs: str | None = None
    interface: str = WSGI

    def command(self, port: int) -> list[str]:
        application = f"{APPLICATION}:{self.interface.lower()}"
        return Configuration.parse(self.line).command(PEER, application, port, self.interface)

    def why_not(self) -> str | None:
        package = Configuration.parse(self.line).kind.package
        failures = environment.installation_failures()
        if package in failures:
            return f"could not be installed: {failures[package]}"
        if self.needs is not None and self.needs not in tricorn_help():
            return f"this version has no {self.needs}"
        return None


@cache
def tricorn_help() -> str:
    words = [PEER, "-m", "tricorn", "--help"]
    done = subprocess.run(words, cwd=ROOT / "python", capture_output=True, text=True)
    return done.stdout


SYNC = f"sync -w 4 {PATIENT}"

GRANIAN = Kind("granian", "granian --workers 4 --blocking-threads 1 --http 1 --no-ws")

KINDS = [
    Kind("tricorn-sync", f"tricorn {SYNC}"),
    Kind("tricorn-gthread", f"tricorn gthread -w 2 --threads 2 {PATIENT}"),
    Kind("tricorn-no-handover", f"tricorn {SYNC} --no-handover", needs="--no-handover"),
    Kind("gunicorn-gthread", f"gunicorn gthread -w 4 --threads 1 {PATIENT}"),
    GRANIAN,
    Kind(
        "uvicorn",
        "uvicorn --workers 4 --timeout-keep-alive 600",
        interface=ASGI,
    ),
]
