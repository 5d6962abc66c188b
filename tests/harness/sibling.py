"""Sibling progress: while one greenlet waits, does another get on? Asked in a process of its own, patched for a hub.

    outcome = run("gevent", "tests.integration.drivers.jobs:psycopg2_query", dsn)
    assert outcome["query"].advanced

A job is a function; it gets a `Watch` and what else `run` was given (JSON), and marks what is watched:

    def psycopg2_query(watch, dsn):
        connection = psycopg2.connect(dsn)
        with watch("query"):
            connection.cursor().execute("SELECT pg_sleep(0.3)")
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"import runpy; runpy.run_path({__file__!r}, run_name='__main__')"
TICK = 0.005
PAGE_BYTES = 4096
THREADS = 4
"""Of the pool that makes calls for jobs."""


@dataclass(frozen=True)
class Progress:
    """Of a sibling, during something that was watched."""

    seconds: float
    ticks: int
    longest_pause: float
    """Seconds in which the sibling did not run, at most."""
    error: str = ""
    """What came out of it: `OperationalError: ...`."""

    @property
    def advanced(self) -> bool:
        return self.ticks >= 5 and self.longest_pause < 0.8 * self.seconds

    @property
    def stood(self) -> bool:
        """The sibling did not run for as good as all of the time."""
        return self.longest_pause > 0.8 * self.seconds


@dataclass
class Outcome:
    watched: dict[str, Progress] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    """Level and text."""
    told: list[tuple[str, str]] = field(default_factory=list)
    """Address and text of refusals, as the arbiter would hear of them."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What the job wrote down."""

    def __getitem__(self, name: str) -> Progress:
        return self.watched[name]

    def lines(self, *levels: str) -> list[str]:
        return [text for level, text in self.log if level in (levels or ("info", "warning"))]


def run(
    hub: str,
    job: str,
    *arguments: Any,
    install: bool = True,
    care: dict[str, Any] | None = None,
    early: Sequence[str] = (),
    env: dict[str, str] | None = None,
    within: float = 60,
) -> Outcome:
    """Runs a job. `early` modules are imported before anything is patched; `care` is what the settings ask for."""
    from tests.harness.interpreter import python  # not in the job's process: it imports pytest

    order = {"hub": hub, "job": job, "arguments": arguments, "install": install, "early": list(early), "care": care}
    done = python(PROGRAM, json.dumps(order), cwd=ROOT, env=env, within=within, alias=hub)
    raw = json.loads(done.stdout.splitlines()[-1])
    return Outcome(
        {name: Progress(**progress) for name, progress in raw["watched"].items()},
        [(level, text) for level, text in raw["log"]],
        [(address, text) for address, text in raw["told"]],
        raw["notes"],
    )


class Late:
    """A TCP server that takes connections, reads nothing, and closes them after `seconds`: a context manager."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            threading.Timer(self._seconds, peer.close).start()


GRPC_SERVER = """
import sys, time
from concurrent import futures
import grpc

class Slow(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.wait)
    def wait(self, request, context):
        time.sleep(float(request))
        return b"waited"

server = grpc.server(futures.ThreadPoolExecutor(40), (Slow(),))
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
"""


class GrpcServer:
    """A gRPC server in a process of its own; its method /slow/Wait waits for as many seconds as it is sent."""

    def __enter__(self) -> int:
        """The port."""
        command = [sys.executable, "-c", GRPC_SERVER]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


class Log:
    """As much of a logger as drivers use."""

    def __init__(self, lines: list[tuple[str, str]]) -> None:
        for level in ("debug", "info", "warning", "error"):
            setattr(self, level, self._at(level, lines))

    @staticmethod
    def _at(level: str, lines: list[tuple[str, str]]) -> Any:
        return lambda text, *args, **kwargs: lines.append((level, text % args))


class Watch:
    """In the child: what a job says is worth watching, and the sibling that gets on or does not."""

    def __init__(self, hub: str, outcome: Outcome) -> None:
        self.hub = hub
        self.outcome = outcome
        self.notes = outcome.notes
        self.connections: Any = None
        self.prefix = ""
        """Before the names of what is watched, where one process does several jobs."""
        self._ticks: list[float] = []
        self.spawn(self._tick)

    def spawn(self, function: Any, *args: Any) -> Any:
        """A greenlet of the hub's own kind."""
        return importlib.import_module(self.hub).spawn(function, *args)

    def wait(self, greenlet: Any) -> Any:
        """What it returned, or raises what it raised."""
        return greenlet.get() if self.hub == "gevent" else greenlet.wait()

    def timeout(self, seconds: float) -> Any:
        """One that runs."""
        timeout = importlib.import_module(self.hub).Timeout(seconds)
        if self.hub == "gevent":
            timeout.start()
        return timeout

    @contextmanager
    def __call__(self, name: str, *expected: type[BaseException]) -> Iterator[None]:
        """Watches the sibling during the block. `expected` exceptions are noted and go no further."""
        time.sleep(2 * TICK)  # the sibling is under way
        self._ticks.clear()
        began, error = time.perf_counter(), ""
        try:
            yield
        except expected as raised:
            error = f"{type(raised).__name__}: {raised}"
        finally:
            ended = time.perf_counter()
            points = [began, *self._ticks, ended]
            pause = max(after - before for before, after in pairwise(points))
            self.outcome.watched[self.prefix + name] = Progress(ended - began, len(points) - 2, pause, error)

    def _tick(self) -> None:
        while True:
            time.sleep(TICK)
            self._ticks.append(time.perf_counter())


def patch(hub: str) -> None:
    if hub == "gevent":
        from gevent import monkey

        monkey.patch_all()
    else:
        import eventlet

        eventlet.monkey_patch()


def main(order: dict[str, Any]) -> None:
    warnings.simplefilter("ignore")
    for name in order["early"]:
        importlib.import_module(name)
    patch(order["hub"])
    outcome = Outcome()
    connections = None
    if order["install"]:
        from tricorn.metrics.scoreboard import Scoreboard
        from tricorn_green import database, drivers
        from tricorn_green import offload as offloading
        from tricorn_green.drivers import records

        def tell(address: str, refusals: database.Refusals) -> None:
            outcome.told.append((address, refusals.text))

        page = Scoreboard(bytearray(PAGE_BYTES))
        connections = database.Connections(page, tell, lambda _, report: report())  # each refusal is told
        care = {
            name: tuple(value) if isinstance(value, list) else value for name, value in (order["care"] or {}).items()
        }
        log = Log(outcome.log)
        offloading.settle(order["hub"], THREADS, log.warning)  # type: ignore[attr-defined]
        drivers.install(order["hub"], log, connections, records.Care(**care))  # type: ignore[arg-type]
    module, _, name = order["job"].partition(":")
    watch = Watch(order["hub"], outcome)
    watch.connections = connections
    getattr(importlib.import_module(module), name)(watch, *order["arguments"])
    print("\n" + json.dumps(asdict(outcome)), flush=True)
    # Some libraries wait at the end for threads that wait for greenlets.
    os._exit(0)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # as a program and not with `-m`: the package of this file imports pytest
    main(json.loads(sys.argv[1]))
