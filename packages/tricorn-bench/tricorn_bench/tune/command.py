"""`tricorn tune`: the command line, the run and the exit status."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from enum import IntEnum
from pathlib import Path
from urllib.parse import urlsplit

from tricorn import cgroup
from tricorn.config.validators import Bytes, Malformed
from tricorn.control import client
from tricorn.errors import TricornError
from tricorn.record import Record, replace
from tricorn_bench.bench import machine, options, presets, probe, proc, process, session, swarm
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.database import Watch
from tricorn_bench.bench.errors import BenchError, Interrupted
from tricorn_bench.bench.machine import Cores
from tricorn_bench.bench.measure import Bench, Generator, under_load
from tricorn_bench.bench.presets import Asked
from tricorn_bench.bench.report import drawing
from tricorn_bench.bench.trial import Request, Stage
from tricorn_bench.load import LoadError, access_log, progress
from tricorn_bench.tune import model, running, trials
from tricorn_bench.tune.calibrate import Calibration, calibrate
from tricorn_bench.tune.explain import Place, places
from tricorn_bench.tune.model import KINDS, Limits, Prediction
from tricorn_bench.tune.page import html
from tricorn_bench.tune.report import Findings, as_json, text
from tricorn_bench.tune.verdict import Target, check_alone, judge

LOCAL = ("127.0.0.1", "::1", "localhost")
BUSY = 0.5
"""CPUs that other programs may use while an application is measured."""
LONGEST_LOOK = 60.0
"""Longest load during a profile, in seconds."""
LOOK = 0.5
"""Seconds for which the load of the machine is measured before a start."""
RUNNING = "tricorn-tune-running/1"
TODAY = {"WSGI": "sync", "ASGI": "asgi", "tornado": "tornado", "aiohttp": "aiohttp"}

EPILOG = """\
tricorn tune starts the application on this machine, one configuration at a time, and sends it requests: GET, unless
--method is set. Use a test system with its own database, never production. With --pid, --socket or --name it sends no
requests and only reads the counters of a running server.

examples:
  tricorn tune shop:app "sync -w 5" --path /cart
  tricorn tune shop:app --target 'p99 < 200ms' --memory 2G --db-connections 90
  tricorn tune --socket /run/shop/tricorn.ctl
"""


class Status(IntEnum):
    OK = 0
    ERROR = 1
    REFUSED = 5
    """No configuration is recommended."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="tricorn tune",
        description="Measure an application, and recommend a worker class and the number of workers and threads.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("application", nargs="?", metavar="APP", help="application, as module:attribute")
    made.add_argument(
        "today", nargs="?", metavar="TODAY", help="current configuration to compare with, quoted, such as 'sync -w 5'"
    )
    limits = made.add_argument_group("limits")
    limits.add_argument("--target", metavar="CONDITION", help="latency target, such as 'p99 < 200ms'")
    limits.add_argument("--memory", type=_size, metavar="SIZE", help="memory limit, such as 2G (default: the cgroup's)")
    limits.add_argument(
        "--cpus", type=options.positive, metavar="N", help="CPUs of the server (default: those of this machine)"
    )
    limits.add_argument(
        "--db-connections", type=options.count, metavar="N", help="connections that the database allows this server"
    )
    request = made.add_argument_group("request")
    request.add_argument("--url", metavar="URL", help="local URL whose path is requested")
    request.add_argument("--replay", metavar="FILE", help="access log; its mix of GET requests is sent")
    options.add_request(request)
    how = made.add_argument_group("measurement")
    how.add_argument(
        "--classes", type=options.words, metavar="CLASS,…", help="worker classes to measure (default: all)"
    )
    how.add_argument("--seconds", type=options.positive, default=2.0, help="duration of each load (default: 2)")
    how.add_argument("--rounds", type=options.count, default=3, help="number of rounds for the finalists (default: 3)")
    how.add_argument("--cores", metavar="0,2-3", help="CPUs of the server (default: three quarters of them)")
    how.add_argument("--load-cores", metavar="1", help="CPUs of the load generator (default: the others)")
    how.add_argument("--db", metavar="DSN", help="PostgreSQL database whose connections are counted (requires psycopg)")
    how.add_argument("--locustfile", metavar="FILE", help="generate the load with these locust users (tricorn[locust])")
    how.add_argument("--python", metavar="PATH", help="Python interpreter of the server (default: this one)")
    how.add_argument("--anyway", action="store_true", help="measure even if the machine is busy")
    server = made.add_argument_group("a running server (sends no requests)")
    server.add_argument("--pid", type=options.count, metavar="PID", help="pid of its arbiter")
    server.add_argument("--socket", metavar="PATH", help="its control socket")
    server.add_argument("--name", metavar="NAME", help="its proc_name")
    made.add_argument("--json", action="store_true", help="print the result as JSON (tricorn-tune/1)")
    made.add_argument("-o", "--output", metavar="FILE", help="also write the JSON to this file")
    made.add_argument("--html", metavar="FILE", help="write an HTML page with charts")
    return made


def main(words: Sequence[str], generate: Generator | None = None) -> int:
    """Returns the exit status: 0, 1 after an error, 5 if nothing is recommended, 128 + n after a signal."""
    arguments = parser().parse_args(words)
    found: list[Findings] = []
    try:
        with session.interruptible():
            if arguments.pid or arguments.socket or arguments.name:
                return _observe(arguments)
            if not arguments.application:
                raise BenchError("No application given. Usage: tricorn tune MODULE:ATTRIBUTE")
            with session.leaving_no_process():
                _tune(arguments, generate or session.generator(), found.append)
    except Interrupted as signalled:
        sys.stderr.write(f"\nStopped by {signal.Signals(signalled.number).name}: all servers have been stopped.\n")
        if found:
            _print(found[-1], arguments)
        return 128 + signalled.number
    except TricornError as error:
        error.report()
        return Status.ERROR
    last = found[-1]
    _print(last, arguments)
    return Status.REFUSED if last.verdict is not None and last.verdict.refusal else Status.OK


def _print(found: Findings, arguments: argparse.Namespace) -> None:
    answer = json.dumps(as_json(found), indent=1)
    _write(arguments.output, lambda: answer + "\n")
    _write(arguments.html, lambda: html(found))
    progress.clear(sys.stderr)
    print(answer if arguments.json else text(found))


def _write(path: str | None, content: Callable[[], str]) -> None:
    """Reports failures: what was measured is printed nevertheless."""
    if path is None:
        return
    try:
        Path(path).write_text(content())
    except OSError as error:
        sys.stderr.write(f"\nCould not write {path}: {error.strerror}.\n")
    except BenchError as error:
        error.report()


# ---- Measuring


class _Setup(Record):
    bench: Bench
    classes: tuple[Configuration, ...]
    today: Configuration
    limits: Limits


def _tune(arguments: argparse.Namespace, generate: Generator, say: Callable[[Findings], object]) -> None:
    """Runs the measurement, and passes on the findings after each step. Raises BenchError."""
    _demand_local(arguments)
    if arguments.html and not drawing.available():
        raise BenchError(drawing.MISSING)
    target = Target.parse(arguments.target) if arguments.target else None
    with ExitStack() as stack:
        database = Watch(arguments.db) if arguments.db else None
        if database is not None:
            stack.callback(database.close)
        setup = _set_up(arguments, generate, database)
        found = Findings(
            application=arguments.application,
            request=_described(arguments),
            limits=setup.limits,
            machine=machine.describe(setup.bench.cores),
            target=target,
            notes=_notes(arguments, setup),
        )
        say(found)
        calibration = calibrate(setup.bench, setup.classes)
        found = replace(found, calibration=calibration)
        say(found)
        check_alone(calibration.costs, target)
        chosen = trials.finalists(calibration, setup.limits)
        found = replace(found, chosen=chosen)
        say(found)
        found = replace(
            found, places=_places(setup.bench, chosen[0], trials.connections(calibration, chosen[0].configuration))
        )
        say(found)
        today = predicted(setup.today, calibration, setup.limits)
        measured = trials.compare(setup.bench, calibration, [today, *chosen], arguments.seconds)
        if other := trials.refined(calibration, setup.limits, measured):
            measured += trials.compare(setup.bench, calibration, [other], arguments.seconds)
        verdict = judge(measured, setup.today.name, target, setup.limits)
        say(replace(found, verdict=verdict))


def _set_up(arguments: argparse.Namespace, generate: Generator, database: Watch | None) -> _Setup:
    cores = Cores.choose(arguments.cores, arguments.load_cores)
    process.raise_descriptors()
    _demand_quiet(arguments)
    python = arguments.python or sys.executable
    interface = probe.interface_of(arguments.application, python)
    classes = presets.every_class(Asked((), interface, Stage()))
    wanted = arguments.classes or tuple(name for name in KINDS if name != "eventlet")  # its authors advise against it
    classes = [replace(one, words=("-k", name)) for one in classes if (name := one.worker_class) and name in wanted]
    if not classes:
        raise BenchError(f"None of the worker classes {', '.join(wanted)} can run a {interface or 'WSGI'} application.")
    today = Configuration.parse(arguments.today or TODAY[interface or "WSGI"])
    os.sched_setaffinity(0, cores.load)
    bench = Bench(
        application=arguments.application,
        interface=interface,
        python=python,
        request=_request(arguments),
        cores=cores,
        rounds=arguments.rounds,
        generate=generate,
        say=session.say,
        database=database,
        swarm=swarm.swarm_of(arguments.locustfile, cores.load, None, None, None) if arguments.locustfile else None,
    )
    allowed = arguments.db_connections or (database.limit if database is not None else None)
    memory = arguments.memory
    if memory is None and (limit := cgroup.memory_limit()) is not None:
        memory = int(limit.amount)
    limits = Limits(arguments.cpus or float(len(cores.server)), memory, allowed)
    return _Setup(bench, tuple(classes), today, limits)


def predicted(one: Configuration, found: Calibration, limits: Limits) -> Prediction | Configuration:
    """Returns what the model says of a configuration; the configuration itself if it says nothing."""
    costs = found.costs.get(one.worker_class or "sync")
    if one.server != "tricorn" or costs is None:
        return one
    prediction = model.predict(costs, limits, one.workers, one.threads)
    return replace(prediction, configuration=one)


def _places(bench: Bench, best: Prediction, at_once: int) -> list[Place]:
    """Profiles the most promising configuration under load."""
    bench.say(f"a profile of {best.configuration.name}")
    with tempfile.TemporaryDirectory(prefix="tricorn-tune-") as directory:
        socket = os.path.join(directory, "control.sock")
        one = replace(best.configuration, words=(*best.configuration.words, "--control-socket", socket))
        with under_load(bench, one, Stage(seconds=LONGEST_LOOK, connections=at_once)):
            return places(bench.python, socket)


def _demand_local(arguments: argparse.Namespace) -> None:
    if arguments.url:
        host = urlsplit(arguments.url).hostname or ""
        if host not in LOCAL:
            raise BenchError(
                f"{arguments.url} is not on this machine. tricorn tune starts the application here: give only a path "
                "(--path), or read the counters of a running server (--socket, --pid)."
            )


def _demand_quiet(arguments: argparse.Namespace) -> None:
    begun = proc.machine_busy_seconds()
    time.sleep(LOOK)
    busy = (proc.machine_busy_seconds() - begun) / LOOK
    if busy > BUSY and not arguments.anyway:
        raise BenchError(
            f"Other programs use {busy:.1f} CPUs, which would distort the results. Stop them, or measure nevertheless "
            "with --anyway."
        )


def _request(arguments: argparse.Namespace) -> Request:
    request = session.request(arguments)
    if arguments.url:
        parts = urlsplit(arguments.url)
        request = replace(request, path=f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}")
    if arguments.replay:
        mix = mix_of(Path(arguments.replay))
        return replace(request, path=mix[0][0], mix=mix)
    return request


def mix_of(path: Path) -> tuple[tuple[str, float], ...]:
    """Returns the paths of the log's GET requests, each with its number. Raises BenchError."""
    try:
        with path.open() as lines:
            found = access_log.read(lines)
    except OSError as error:
        raise BenchError(f"Could not read the access log {path}: {error.strerror}.") from None
    except LoadError as error:
        raise BenchError(str(error)) from None
    counts: dict[str, float] = {}
    for one in found.requests:
        if one.method == "GET":
            counts[one.path] = counts.get(one.path, 0.0) + 1
    if not counts:
        raise BenchError(f"The access log {path} has no GET requests, and only those are replayed.")
    return tuple(sorted(counts.items(), key=lambda item: -item[1]))


def _described(arguments: argparse.Namespace) -> str:
    if arguments.locustfile:
        return f"the users of {Path(arguments.locustfile).name}"
    if arguments.replay:
        return f"the GET requests of {Path(arguments.replay).name}"
    return f"{arguments.method.upper()} {urlsplit(arguments.url).path or '/' if arguments.url else arguments.path}"


def _notes(arguments: argparse.Namespace, setup: _Setup) -> list[str]:
    notes = []
    here = len(setup.bench.cores.server)
    if setup.limits.processors > here:
        notes.append(f"Measured on {here} CPUs and extrapolated to {setup.limits.processors:g}.")
    if not setup.bench.cores.apart:
        notes.append("Server and load generator shared a CPU: rates are too low, but ratios are right.")
    return notes


def _size(value: str) -> int:
    try:
        return Bytes(min=1).parse(value)
    except Malformed as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# ---- A running server


def _socket_of(pid: int) -> Path:
    """Returns the control socket of the arbiter with this pid. Raises ControlError."""
    for each in client.sockets(client.looked_at()):
        with suppress(client.ControlError), client.Control.connect(each.path, timeout=1) as control:
            if control.ask("status").get("pid") == pid:
                return Path(each.path)
    raise client.NoServer(f"Process {pid} has no control socket: give the pid of an arbiter, or --socket.")


def _observe(arguments: argparse.Namespace) -> int:
    limits = Limits(arguments.cpus or cgroup.processors(), arguments.memory, arguments.db_connections)
    try:
        path = _socket_of(arguments.pid) if arguments.pid else client.find(arguments.socket, arguments.name)
        with client.Control.connect(path) as control:
            seen = running.observe(control)
    except client.ControlError as error:
        raise BenchError(str(error)) from None
    sentences = running.advice(seen, limits)
    if arguments.json:
        answer = {
            "schema": RUNNING,
            "observed": vars(seen),
            "limits": vars(limits),
            "advice": sentences,
        }
        print(json.dumps(answer, indent=1))
        return Status.OK
    print(
        f"{seen.application}: {seen.worker_class}, {seen.workers} workers, {seen.requests:,} requests in "
        f"{seen.seconds:,.0f} s. A request takes {seen.spent * 1e3:.3g} ms, {seen.cpu * 1e3:.3g} ms of it on CPU."
    )
    print("\n".join(sentences))
    print(f"Confidence: {seen.confidence} ({seen.requests:,} requests). No load test was run.")
    return Status.OK
