"""`tricorn bench`: the command line, the run, the report and the exit status."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from enum import IntEnum
from pathlib import Path

from tricorn.errors import TricornError
from tricorn.record import Record, replace
from tricorn_bench.bench import compare, files, locust_figures, machine, probe, process, resume, servers, session, swarm
from tricorn_bench.bench import result as results
from tricorn_bench.bench.budget import Budget
from tricorn_bench.bench.compare import Condition
from tricorn_bench.bench.configuration import Configuration, against
from tricorn_bench.bench.database import Watch
from tricorn_bench.bench.errors import BenchError, Interrupted
from tricorn_bench.bench.machine import Cores
from tricorn_bench.bench.measure import Bench, Generator, Measured, measure
from tricorn_bench.bench.options import parser
from tricorn_bench.bench.presets import PLAIN, PRESETS, Asked, Preset
from tricorn_bench.bench.report import drawing, layout, text
from tricorn_bench.bench.result import Configured, Result
from tricorn_bench.bench.servers import certificate
from tricorn_bench.bench.swarm import Swarm
from tricorn_bench.bench.trial import Request, Stage, Trial
from tricorn_bench.load import Http2, progress


class Status(IntEnum):
    OK = 0
    ERROR = 1
    CONDITION = 5
    """A condition of `--fail-if` holds."""


def main(words: Sequence[str], generate: Generator | None = None) -> int:
    """Runs `tricorn bench`. The exit status: 0, 1 after an error, 5 for `--fail-if`, 128 + n after a signal."""
    arguments = parser().parse_intermixed_args(words)
    left = KEPT.format(arguments.output) if arguments.application and arguments.output else NOTHING_IS_LEFT
    try:
        with session.interruptible():
            conditions = [Condition.parse(condition) for condition in arguments.fail_if]
            if arguments.compare:
                left = INCOMPLETE
                first, second = map(Path, arguments.compare)
                return _compare(first, second, conditions)
            if arguments.report:
                result = results.read(Path(arguments.report))
            elif arguments.application:
                with session.leaving_no_process():
                    result = _measured(arguments, words, generate or session.generator())
            else:
                raise BenchError("No application given. Usage: tricorn bench MODULE:ATTRIBUTE")
            left = INCOMPLETE
            return _report(result, arguments, conditions)
    except Interrupted as signalled:
        sys.stderr.write(f"\nStopped by {signal.Signals(signalled.number).name}: {left}\n")
        return 128 + signalled.number
    except TricornError as error:
        error.report()
        return Status.ERROR


NOTHING_IS_LEFT = "all servers have been stopped; there is no report."
KEPT = "all servers have been stopped; --resume continues from {}."
INCOMPLETE = "the report is incomplete. No server was running."


SECONDS = 3.0
"""Seconds of load in a round."""
REPORTING, TELLING = 8.0, 1.0
"""Seconds of a budget that are left for the report, and for one without charts."""
IMPORTING = 1.0
"""Seconds that an application is expected to need, where it is not looked at."""
SERVING = 1.0
"""Seconds in which a server starts, answers and stops, beyond those in which its application is imported."""
LOCUST_USERS, LOCUST_HATCH = 10, 1.0
"""Users of a locustfile, and the seconds within which they come, if nothing else is said."""


# ---- Measuring


def _measured(arguments: argparse.Namespace, words: Sequence[str], generate: Generator) -> Result:
    begun = time.monotonic()
    cores = Cores.choose(arguments.cores, arguments.load_cores)
    limit = process.raise_descriptors()
    described = machine.describe(cores)
    if arguments.port is not None:
        process.demand_free(arguments.port, arguments.host)
    python = arguments.python or sys.executable
    preset = _preset(arguments)
    asked = _asked(arguments)
    locusts = _swarm(arguments, preset, cores)
    database = Watch(arguments.db) if arguments.db else None
    with ExitStack() as stack:
        if database is not None:
            stack.callback(database.close)
        pair = stack.enter_context(certificate(arguments.tls_key, arguments.host)) if arguments.tls else None
        importing = time.monotonic()
        interface = probe.interface_of(arguments.application, python)
        around = time.monotonic() - importing + SERVING + arguments.warmup
        asked = replace(asked, interface=interface, limit=database.limit if database else None)
        versions, trials = _trials(asked, preset, arguments, python)
        most = max(stage.most_connections for trial in trials for stage in trial.stages)
        machine.demand_descriptors(most, limit)
        os.sched_setaffinity(0, cores.load)
        possible = [trial for trial in trials if not trial.configuration.why_not]
        session.say(_announcement(arguments, possible, around), stays=True)
        bench = Bench(
            application=arguments.application,
            interface=interface,
            python=python,
            request=_request(arguments),
            cores=cores,
            rounds=arguments.rounds,
            generate=generate,
            say=session.say,
            warmup=arguments.warmup,
            port=arguments.port,
            database=database,
            swarm=locusts,
            host=arguments.host,
            certificate=pair,
            budget=_budget(arguments, begun, around * len(possible)),
        )
        told = _Told(arguments, words, preset, trials, versions, described)
        if not arguments.output:
            return told.result(bench, measure(bench, trials))
        path = Path(arguments.output) / "result.json"
        load = _load_sentence(arguments, preset, bench.request)
        before = resume.kept(path, bench.application, load) if arguments.resume else None
        kept = replace(bench, keep=lambda found: results.write(told.result(bench, found), path))
        return told.result(bench, measure(kept, trials, before))


def expected_seconds(words: Sequence[str]) -> float:
    """Estimates how long a command line measures."""
    arguments = parser().parse_intermixed_args(words)
    preset = _preset(arguments)
    asked = _asked(arguments)
    trials = preset.trials(asked, against(asked.configurations or preset.defaults(asked), arguments.against))
    possible = [trial for trial in trials if not trial.configuration.why_not]
    whole = _seconds(arguments, possible, arguments.warmup + IMPORTING + SERVING)
    return whole if arguments.budget is None else min(whole, arguments.budget)


def _preset(arguments: argparse.Namespace) -> Preset:
    """Raises BenchError. `arguments` says afterwards how long rounds are, and all of them."""
    preset = PRESETS[arguments.preset] if arguments.preset else PLAIN
    if arguments.budget is None and arguments.seconds is None:
        arguments.budget = preset.budget
    if arguments.budget is not None and preset.name == "users":
        raise BenchError("--budget and the preset users: users need the time in which they think.")
    if arguments.seconds is None:
        arguments.seconds = SECONDS
    if not arguments.tls and (arguments.full_handshakes or arguments.tls_key != "ecdsa"):
        named = "--full-handshakes" if arguments.full_handshakes else "--tls-key"
        raise BenchError(f"{named} requires --tls.")
    _check_http2(arguments, preset)
    if arguments.levels and not preset.at_levels:
        raise BenchError("--levels belongs to the presets workers, users, connections and tails.")
    return preset


def _check_http2(arguments: argparse.Namespace, preset: Preset) -> None:
    """Raises BenchError."""
    if not arguments.http2:
        if arguments.streams:
            raise BenchError("--streams requires --http2.")
        return
    if arguments.websocket:
        raise BenchError("--http2 and --websocket: WebSockets over HTTP/2 are not in this version.")
    if arguments.locustfile is not None:
        raise BenchError("--http2 and --locustfile: locust's users speak HTTP/1.1.")
    if (arguments.close or preset.name in ("users", "tails")) and arguments.streams:
        what = "--close" if arguments.close else f"the preset {preset.name}"
        raise BenchError(f"--streams and {what}: connections have one request at a time there.")


def _asked(arguments: argparse.Namespace) -> Asked:
    """Before the application is looked at."""
    given = tuple(map(Configuration.parse, arguments.configurations))
    return Asked(given, None, _stage(arguments), arguments.levels or ())


def _trials(
    asked: Asked, preset: Preset, arguments: argparse.Namespace, python: str
) -> tuple[dict[str, str | None], list[Trial]]:
    """The versions of servers, and what is to be measured; what is not installed has its reason."""
    configurations = against(asked.configurations or preset.defaults(asked), arguments.against)
    trials = preset.trials(asked, configurations)
    versions = {name: servers.version(servers.SERVERS[name], python) for name in _servers(trials)}
    return versions, [
        replace(trial, configuration=_possible(trial.configuration, asked.interface, versions, arguments))
        for trial in trials
    ]


def _servers(trials: Sequence[Trial]) -> list[str]:
    return list(dict.fromkeys(trial.configuration.server for trial in trials))


def _possible(
    one: Configuration, interface: str | None, versions: dict[str, str | None], arguments: argparse.Namespace
) -> Configuration:
    if one.why_not:
        return one
    if one.server != "tricorn" and versions[one.server] is None:
        return replace(one, why_not=f"{one.kind.package} is not installed: pip install {one.kind.package}")
    if interface and interface not in one.kind.interfaces:
        return replace(one, why_not=f"it serves no {interface} applications")
    if arguments.tls and not one.kind.has_tls:
        return replace(one, why_not="its command has no TLS")
    if arguments.http2 and not one.kind.has_http2:
        return replace(one, why_not="its command has no HTTP/2")
    return one


def _swarm(arguments: argparse.Namespace, preset: Preset, cores: Cores) -> Swarm | None:
    """Raises BenchError."""
    if arguments.locustfile is None:
        named = ("users", "hatch_rate", "locust_processes", "locust_master", "expect_workers")
        if given := [name for name in named if getattr(arguments, name) is not None]:
            raise BenchError(f"--{given[0].replace('_', '-')} requires --locustfile.")
        return None
    if preset.name in ("connections", "tails") or arguments.rate:
        what = "--rate" if arguments.rate else f"the preset {preset.name}"
        raise BenchError(
            f"--locustfile cannot be combined with {what}: locust users send the next request after the response."
        )
    if arguments.tls:
        raise BenchError("--locustfile and --tls: locust's users would have to trust a certificate of the run.")
    if arguments.websocket:
        raise BenchError("--locustfile and --websocket: each says what is sent; leave one of them out.")
    made = swarm.swarm_of(
        arguments.locustfile,
        cores.load,
        arguments.locust_processes,
        arguments.locust_master,
        arguments.expect_workers,
    )
    if made.master is not None:
        session.say(f"rounds of locust's workers: {made.invitation()}", stays=True)
    return made


def _stage(arguments: argparse.Namespace) -> Stage:
    if arguments.locustfile is not None:
        users = arguments.users or LOCUST_USERS
        hatch = users / arguments.hatch_rate if arguments.hatch_rate else LOCUST_HATCH
        return Stage(seconds=arguments.seconds, users=users, hatch=hatch)
    return Stage(
        seconds=arguments.seconds,
        connections=arguments.connections,
        rate=arguments.rate,
        think=arguments.think,
        hatch=arguments.hatch,
    )


def _request(arguments: argparse.Namespace) -> Request:
    made = session.request(arguments)
    messages = {"message": arguments.websocket, "deflate": arguments.deflate}
    http2 = Http2(arguments.streams or 1) if arguments.http2 else None
    return replace(made, **messages, resume=not arguments.full_handshakes, http2=http2)


def _announcement(arguments: argparse.Namespace, trials: Sequence[Trial], around: float) -> str:
    """`around`: the seconds of a configuration without its load."""
    names = ", ".join(dict.fromkeys(trial.configuration.name for trial in trials))
    limit = f", for which rounds are shorter than {arguments.seconds:g} s (--budget)"
    whole = _seconds(arguments, trials, around)
    if arguments.budget is None or whole <= arguments.budget - _reporting(arguments):
        limit = ""
    else:
        whole = arguments.budget
    return f"{arguments.rounds} rounds of {names}: about {duration(whole)}{limit}"


def _seconds(arguments: argparse.Namespace, trials: Sequence[Trial], around: float) -> float:
    return float(arguments.rounds * sum(around + sum(stage.duration for stage in trial.stages) for trial in trials))


def _budget(arguments: argparse.Namespace, begun: float, around: float) -> Budget | None:
    if arguments.budget is None:
        return None
    return Budget(begun + arguments.budget - _reporting(arguments), around, time.monotonic)


def _reporting(arguments: argparse.Namespace) -> float:
    return REPORTING if arguments.output else TELLING


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} minutes"


# ---- The result


class _Told(Record):
    """Context of a result: the command line, and the versions of what was measured."""

    arguments: argparse.Namespace
    words: Sequence[str]
    preset: Preset
    trials: Sequence[Trial]
    versions: dict[str, str | None]
    described: dict[str, str]

    def result(self, bench: Bench, found: Measured) -> Result:
        configurations: dict[str, Configured] = {}
        for trial in self.trials:
            one = trial.configuration
            configurations[one.name] = {
                "name": one.name,
                "family": trial.family,
                "server": one.server,
                "version": self.versions[one.server],
                "command": shlex.join(found.commands[one.name]) if one.name in found.commands else None,
                "absent": found.absent.get(one.name),
            }
        notes = list(found.notes)
        if not bench.cores.apart:
            notes.append(
                "Server and load generator shared a core: requests/s are too low; compare CPU per request instead."
            )
        if bench.database is not None:
            notes.append(f"The database allows {bench.database.limit} connections.")
        if bench.budget is not None and bench.budget.shortest is not None:
            limit = f"to end within --budget {self.arguments.budget:g}."
            notes.append(f"{resume.SHORTENED} {bench.budget.shortest:g} s of load or more, {limit}")
        if bench.swarm is not None:
            notes.append(locust_figures.ROUNDED)
        order = {name: place for place, name in enumerate(configurations)}
        known = [cell for cell in found.cells if cell["configuration"] in order]
        return {
            "schema": results.SCHEMA,
            "made": time.strftime("%Y-%m-%d %H:%M:%S %z"),
            "application": self.arguments.application,
            "preset": self.preset.question or None,
            "axis": self.preset.axis,
            "command": shlex.join(["tricorn", "bench", *self.words]),
            "load": _load_sentence(self.arguments, self.preset, bench.request),
            "machine": self.described,
            "answer": found.answer,
            "configurations": list(configurations.values()),
            "cells": sorted(known, key=lambda cell: (order[cell["configuration"]], cell["at"] or 0)),
            "theory": list(found.theory),
            "notes": list(dict.fromkeys(notes)),
        }


def _load_sentence(arguments: argparse.Namespace, preset: Preset, request: Request) -> str:
    if arguments.locustfile is not None:
        return _locust_sentence(arguments, preset)
    what = f"{request.method} {request.path}" + (f" with a body of {len(request.body):,} bytes" if request.body else "")
    if request.message:
        compressed = ", compressed," if request.deflate else ""
        what = f"Messages of {request.message:,} bytes{compressed} over WebSockets at {request.path}"
    low, high = arguments.think
    match preset.name:
        case "users":
            how = f"users who think {low:g} to {high:g} s, hatched in {arguments.hatch:g} s"
        case "connections":
            how = f"closed loop, {arguments.seconds:g} s at each level"
        case "tails":
            how = f"Poisson arrivals, {arguments.seconds:g} s at each load"
        case _ if arguments.rate:
            how = f"{arguments.rate:g} requests/s in Poisson arrivals, {arguments.seconds:g} s"
        case _:
            streams = f" with {arguments.streams} streams each" if arguments.streams else ""
            how = f"{arguments.connections} connections{streams}, {arguments.seconds:g} s"
    kept = "kept alive" if request.keep_alive else "a connection for each request"
    version = " over HTTP/2" if request.http2 else ""
    return f"{what}{version}{_tls_sentence(arguments)}; {how}, {kept}; {_turns(arguments)}."


def _tls_sentence(arguments: argparse.Namespace) -> str:
    if not arguments.tls:
        return ""
    full = ", without resumption" if arguments.full_handshakes else ""
    return f" over TLS ({'RSA' if arguments.tls_key == 'rsa' else 'ECDSA'} certificate{full})"


def _locust_sentence(arguments: argparse.Namespace, preset: Preset) -> str:
    stage = _stage(arguments)
    users = "users" if preset.name == "users" else f"{stage.users} users"
    where = f" on {arguments.expect_workers} workers" if arguments.expect_workers else ""
    how = f"{swarm.version()}{where}: {users} of {Path(arguments.locustfile).name}, hatched in {stage.hatch:g} s"
    return f"{how}, {stage.duration:g} s; {_turns(arguments)}."


def _turns(arguments: argparse.Namespace) -> str:
    return f"{arguments.rounds} rounds in turns" if arguments.rounds > 1 else "one round"


def _report(result: Result, arguments: argparse.Namespace, conditions: Sequence[Condition]) -> int:
    progress.clear(sys.stderr)
    print(text.terminal(result))
    if arguments.output:
        written = files.write(result, Path(arguments.output))
        print(f"\nWritten: {', '.join(map(str, written))}")
        if not drawing.available():
            print(drawing.MISSING)
    return _judge(compare.broken(conditions, None, result), conditions)


def _compare(first: Path, second: Path, conditions: Sequence[Condition]) -> int:
    base, other = results.read(first), results.read(second)
    compared = compare.table(base, other)
    print(layout.plain(compared.header, compared.rows))
    print(compared.note)
    for warning in compare.warnings(base, other):
        print(f"Warning: {warning}")
    return _judge(compare.broken(conditions, base, other), conditions)


def _judge(broken: Sequence[str], conditions: Sequence[Condition]) -> int:
    for line in broken:
        print(f"Failed: {line}")
    if conditions and not broken:
        print("No condition of --fail-if is true.")
    return Status.CONDITION if broken else Status.OK
