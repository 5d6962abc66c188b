"""locust as the load generator: a user's own locustfile drives each configuration.

locust patches the standard library for gevent. It is never imported here, but runs in processes of its own, by its
command line (https://docs.locust.io/en/stable/configuration.html), pinned to the load generator's cores.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tricorn.config import addresses
from tricorn.config.addresses import TcpAddress
from tricorn.config.validators import Refused
from tricorn.record import Record
from tricorn_bench.bench import proc
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.locust_figures import Used, load_of
from tricorn_bench.bench.process import free_port, pinned
from tricorn_bench.bench.result import Load
from tricorn_bench.load import Plan

LISTENER = Path(__file__).with_name("locust_listener.py")
VARIABLE = "TRICORN_BENCH_LOCUST"
"""The file that the listener writes."""
LISTING = 60.0
"""Seconds in which a locustfile has to be imported."""
JOINING = 60
"""Seconds that the workers of other machines have to come."""
LOOKS_EVERY = 0.1
LEAVING = 1.0
"""Seconds between SIGTERM and SIGKILL: less than those in which a generator has to stop."""
BUSY = 0.9
"""Share of a core per process of locust; above it the figures measure locust rather than the server."""
MASTER_PORT = 5557
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?::\s.*)?$", re.MULTILINE)
"""The last line of a traceback: the name of an exception, and what it says. Frames are indented."""
EVERYWHERE = ("0.0.0.0", "::", "*")
"""Addresses to listen on; none to be reached by."""


class Swarm(Record):
    """A `Generator`: where the users come from. Closed, with as many users as the plan has connections."""

    file: str
    cores: tuple[int, ...]
    processes: int = 1
    """Processes on this machine. Several are locust's workers, with a master beside them."""
    master: TcpAddress | None = None
    """Address where workers on other machines find the master."""
    workers: int = 0
    """Number of workers on other machines to wait for."""

    def __call__(self, plan: Plan, tick: Callable[[Mapping[str, Any]], bool]) -> Driven:
        """Raises BenchError if locust does, or if it makes no request. `tick` says whether to go on."""
        with tempfile.TemporaryDirectory(prefix="tricorn-bench-") as folder:
            told = Path(folder) / "told.json"
            with (Path(folder) / "log").open("w+b") as log:
                used = _run(self.command(plan), {VARIABLE: str(told)}, self.cores, log, tick)
                log.seek(0)
                said = log.read().decode("utf-8", "replace")
            try:
                figures = json.loads(told.read_text())
            except FileNotFoundError:
                raise BenchError(self._failure(said)) from None
        busiest = used.share > BUSY * max(1, self.processes) or "exceeded cpu threshold" in said
        load = load_of(figures, Used(used.cpu_seconds, busiest))
        if not load["sent"]:
            raised = [f": {one['message']}" for one in figures["exceptions"]][:1]
            raise BenchError(f"{self.file} made no request{''.join(raised)}. More --seconds, if its users come late?")
        return Driven(load)

    def command(self, plan: Plan) -> list[str]:
        host, rate = f"http://{plan.targets[0].host}", plan.hatch_rate or float(plan.connections)
        return [
            *(sys.executable, "-m", "locust", "-f", f"{self.file},{LISTENER}", "--headless", "--only-summary"),
            *("--host", host, "--users", str(plan.connections), "--spawn-rate", f"{rate:g}"),
            *("--run-time", f"{math.ceil(plan.seconds or 0)}s", "--exit-code-on-error", "0", "--loglevel", "WARNING"),
            *self._roles(),
        ]

    def _roles(self) -> list[str]:
        if self.master is not None:
            bound = ("--master", "--master-bind-host", self.master.host, "--master-bind-port", str(self.master.port))
            return [*bound, "--expect-workers", str(self.workers), "--expect-workers-max-wait", str(JOINING)]
        if self.processes > 1:
            port = str(free_port())
            there = ("--master-bind-host", "127.0.0.1", "--master-bind-port", port)
            return ["--processes", str(self.processes), *there, "--master-host", "127.0.0.1", "--master-port", port]
        return []

    def _failure(self, said: str) -> str:
        if self.master is not None and "Gave up waiting for workers" in said:
            return f"locust's workers did not come within {JOINING} s: {self.invitation()}"
        return f"locust failed: {_sentence(said, self.file)}"

    def invitation(self) -> str:
        """Describes how to start workers: each round has a master of its own, which dismisses them at its end."""
        assert self.master is not None
        where = f"--master-host {self.master.host} --master-port {self.master.port}"
        return (
            f"start {self.workers} of them, each with "
            f"`while :; do locust -f {os.path.basename(self.file)} --worker {where}; done`"
        )


class Driven(Record):
    load: Load

    def as_json(self) -> Load:
        return self.load


class _Spent(Record):
    cpu_seconds: float
    share: float
    """Share of a core that all processes of locust used, without its start."""


def _run(
    command: Sequence[str],
    more: Mapping[str, str],
    cores: Sequence[int],
    log: Any,
    tick: Callable[[Mapping[str, Any]], bool],
) -> _Spent:
    """Until it ends, or `tick` says no. Its whole session is gone then."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **more},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: pinned(*cores),
    )
    seen = [(time.monotonic(), 0.0)]
    try:
        while process.poll() is None:
            if not tick({}):
                process.terminate()
                break
            # A zombie has no CPU time any more, in what `cpu` reads.
            seen.append((time.monotonic(), max(seen[-1][1], proc.cpu(proc.session_members(process.pid)).exact)))
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOKS_EVERY)
        with suppress(subprocess.TimeoutExpired):
            process.wait(LEAVING)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _Spent(seen[-1][1], _share(seen))


def _share(seen: Sequence[tuple[float, float]]) -> float:
    """Returns the share of a core used in the second half, in which all users are there."""
    (begun, before), (ended, after) = seen[len(seen) // 2], seen[-1]
    return (after - before) / (ended - begun) if ended > begun else 0.0


# ---- Before anything is started


def swarm_of(
    file: str, cores: tuple[int, ...], processes: int | None, master: str | None, workers: int | None
) -> Swarm:
    """Raises BenchError for what cannot drive a load: no locust, a locustfile with an error, no way to its master."""
    if "," in file or not os.path.isfile(file):
        raise BenchError(f"The locustfile {file!r} does not exist.")
    if (master is None) != (workers is None):
        raise BenchError("--locust-master and --expect-workers go together: where workers come, and how many.")
    if master is not None and processes is not None:
        raise BenchError("--locust-processes are on this machine, --locust-master is for others; one of them can be.")
    if find_spec("locust") is None:
        raise BenchError("--locustfile needs locust, which is not installed: pip install 'tricorn[locust]'.")
    demand_users(file)
    many = processes or (len(cores) if master is None else 1)
    return Swarm(os.path.abspath(file), cores, many, _address(master) if master else None, workers or 0)


def demand_users(file: str) -> None:
    """Raises BenchError with what is wrong with a locustfile; locust imports it, in a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "locust", "-f", file, "--list"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LISTING,
            preexec_fn=lambda: pinned(*os.sched_getaffinity(0)),
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"Could not import the locustfile {file!r} within {LISTING:g} s.") from None
    _, listed, users = done.stdout.partition("Available Users:")
    # Where there are none, newer versions look for tests of pytest's, and may fail in doing so.
    has_none = (listed and not users.strip()) or "load_locustfile_pytest" in done.stdout
    if not has_none and not listed:
        raise BenchError(f"Could not import the locustfile {file!r}: {_sentence(done.stdout, file)}")
    if has_none:
        raise BenchError(f"The locustfile {file!r} has no class derived from locust's User or HttpUser.")


def version() -> str:
    return f"locust {metadata.version('locust')}"


def _address(text: str) -> TcpAddress:
    try:
        found = addresses.parse(text if ":" in text else f"{text}:{MASTER_PORT}")
    except Refused as error:
        raise BenchError(f"--locust-master {text}: {error}.") from None
    if not isinstance(found, TcpAddress) or found.host in EVERYWHERE:
        raise BenchError(f"--locust-master {text}: expected the address by which workers reach this machine.")
    return found


def _sentence(said: str, file: str) -> str:
    """The last line of a traceback, and where in the locustfile it was: `NameError: … (locustfile.py:3)`."""
    name = os.path.basename(file)
    places = list(re.finditer(rf'File "[^"]*{re.escape(name)}", line (\d+)', said))
    if places:  # what follows is its exception; gevent may raise more while the process ends
        raised = _RAISED.search(said, places[-1].end())
        return f"{raised[0] if raised else 'it fails'} ({name}:{places[-1][1]})."
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = (_RAISED.findall(said) or lines or ["it said nothing"])[-1]
    return f"{last.rstrip('.')}."
