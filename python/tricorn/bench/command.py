"""`tricorn bench`: from the command line to the report and the exit status."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from tricorn.bench import compare, files, machine, probe, process, servers
from tricorn.bench import result as results
from tricorn.bench.compare import Condition
from tricorn.bench.configuration import Configuration, against
from tricorn.bench.database import Watch
from tricorn.bench.errors import BenchError, Interrupted
from tricorn.bench.machine import Cores
from tricorn.bench.measure import Bench, Generator, Measured, measure
from tricorn.bench.options import parser
from tricorn.bench.presets import PLAIN, PRESETS, Asked, Preset
from tricorn.bench.report import drawing, layout, text
from tricorn.bench.result import Configured, Result
from tricorn.bench.trial import Request, Stage, Trial
from tricorn.errors import TricornError
from tricorn.record import replace


class Status(IntEnum):
    OK = 0
    ERROR = 1
    CONDITION = 5
    """A condition of `--fail-if` holds."""


def main(words: Sequence[str], generate: Generator | None = None) -> int:
    """Runs `tricorn bench`. The exit status: 0, 1 after an error, 5 for `--fail-if`, 128 + n after a signal."""
    arguments = parser().parse_intermixed_args(words)
    try:
        conditions = [Condition.parse(condition) for condition in arguments.fail_if]
        if arguments.compare:
            first, second = map(Path, arguments.compare)
            return _compare(first, second, conditions)
        if arguments.report:
            return _report(results.read(Path(arguments.report)), arguments, conditions)
        if not arguments.application:
            raise BenchError("Which application is to be measured? tricorn bench MODULE:ATTRIBUTE, or --help.")
        with _stopping_everything():
            result = _measured(arguments, words, generate or _generator())
        return _report(result, arguments, conditions)
    except Interrupted as signalled:
        name = signal.Signals(signalled.number).name
        sys.stderr.write(f"\nStopped by {name}: all servers have been stopped, and nothing is reported.\n")
        return 128 + signalled.number
    except TricornError as error:
        error.report()
        return Status.ERROR


def _generator() -> Generator:
    from tricorn import load

    return load.run


# ---- Measuring


@contextmanager
def _stopping_everything() -> Iterator[None]:
    """Whatever ends the block, no process is left. The first signal ends it; further ones do not disturb that."""
    ended = False

    def stop(number: int, _: object) -> None:
        nonlocal ended
        if not ended:
            ended = True
            raise Interrupted(number)

    process.adopt_orphans()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        ended = True
        process.end_descendants()
        for number, handler in before.items():
            signal.signal(number, handler)


def _measured(arguments: argparse.Namespace, words: Sequence[str], generate: Generator) -> Result:
    cores = Cores.choose(arguments.cores, arguments.load_cores)
    limit = process.raise_descriptors()
    described = machine.describe(cores)
    if arguments.port is not None:
        process.demand_free(arguments.port)
    python = arguments.python or sys.executable
    preset = PRESETS[arguments.preset] if arguments.preset else PLAIN
    if arguments.levels and not preset.at_levels:
        raise BenchError("--levels belongs to the presets workers, users, connections and tails.")
    given = tuple(map(Configuration.parse, arguments.configurations))
    database = Watch(arguments.db) if arguments.db else None
    try:
        interface = probe.interface_of(arguments.application, python)
        asked = Asked(given, interface, _stage(arguments), arguments.levels or (), database.limit if database else None)
        trials = _trials(asked, preset, arguments.against, python)
        most = max(stage.most_connections for trial in trials for stage in trial.stages)
        machine.demand_descriptors(most, limit)
        os.sched_setaffinity(0, cores.load)
        _say(_announcement(arguments, trials))
        bench = Bench(
            application=arguments.application,
            interface=interface,
            python=python,
            request=_request(arguments),
            cores=cores,
            rounds=arguments.rounds,
            generate=generate,
            say=_say,
            warmup=arguments.warmup,
            port=arguments.port,
            database=database,
        )
        found = measure(bench, trials)
    finally:
        if database is not None:
            database.close()
    return _result(arguments, words, preset, trials, found, described, bench)


def _trials(asked: Asked, preset: Preset, others: Sequence[str], python: str) -> list[Trial]:
    """What is to be measured; configurations of servers that are not installed have their reason."""
    configurations = against(asked.configurations or preset.defaults(asked), others)
    trials = preset.trials(asked, configurations)
    versions = {name: servers.version(servers.SERVERS[name], python) for name in _servers(trials) if name != "tricorn"}
    return [replace(trial, configuration=_possible(trial.configuration, asked.interface, versions)) for trial in trials]


def _servers(trials: Sequence[Trial]) -> list[str]:
    return list(dict.fromkeys(trial.configuration.server for trial in trials))


def _possible(one: Configuration, interface: str | None, versions: dict[str, str | None]) -> Configuration:
    if one.why_not:
        return one
    if one.server in versions and versions[one.server] is None:
        return replace(one, why_not=f"{one.kind.package} is not installed: pip install {one.kind.package}")
    if interface and interface not in one.kind.interfaces:
        return replace(one, why_not=f"it serves no {interface} applications")
    return one


def _stage(arguments: argparse.Namespace) -> Stage:
    return Stage(
        seconds=arguments.seconds,
        connections=arguments.connections,
        rate=arguments.rate,
        think=arguments.think,
        hatch=arguments.hatch,
    )


def _request(arguments: argparse.Namespace) -> Request:
    body = arguments.data.encode()
    if arguments.data_file:
        try:
            body = Path(arguments.data_file).read_bytes()
        except OSError as error:
            raise BenchError(f"The body {arguments.data_file} cannot be read: {error.strerror}.") from None
    return Request(
        path=arguments.path,
        method=arguments.method.upper() if not body or arguments.method != "GET" else "POST",
        headers=tuple(arguments.header),
        body=body,
        keep_alive=not arguments.close,
        timeout=arguments.timeout,
    )


def _announcement(arguments: argparse.Namespace, trials: Sequence[Trial]) -> str:
    possible = [trial for trial in trials if not trial.configuration.why_not]
    seconds = sum(stage.duration for trial in possible for stage in trial.stages)
    around = (arguments.warmup + 2.0) * len(possible)
    whole = arguments.rounds * (seconds + around)
    names = ", ".join(dict.fromkeys(trial.configuration.name for trial in possible))
    return f"{arguments.rounds} rounds of {names}: about {_duration(whole)}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _say(line: str) -> None:
    """Progress, apart from the report: one line that changes on a terminal, a line each elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        if " left out" in line or "rounds of" in line:
            sys.stderr.write("\n")
    else:
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


# ---- The result


def _result(
    arguments: argparse.Namespace,
    words: Sequence[str],
    preset: Preset,
    trials: Sequence[Trial],
    found: Measured,
    described: dict[str, str],
    bench: Bench,
) -> Result:
    python = bench.python
    versions = {name: servers.version(servers.SERVERS[name], python) for name in _servers(trials)}
    configurations: dict[str, Configured] = {}
    for trial in trials:
        one = trial.configuration
        configurations[one.name] = {
            "name": one.name,
            "family": trial.family,
            "server": one.server,
            "version": versions[one.server],
            "command": shlex.join(found.commands[one.name]) if one.name in found.commands else None,
            "absent": found.absent.get(one.name),
        }
    notes = []
    if not bench.cores.apart:
        notes.append("Server and load generator shared a core: requests/s are too low, CPU per request tells more.")
    if bench.database is not None:
        notes.append(f"The database takes {bench.database.limit} connections.")
    order = {name: place for place, name in enumerate(configurations)}
    return {
        "schema": results.SCHEMA,
        "made": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "application": arguments.application,
        "preset": preset.question or None,
        "axis": preset.axis,
        "command": shlex.join(["tricorn", "bench", *words]),
        "load": _load_sentence(arguments, preset, bench.request),
        "machine": described,
        "answer": found.answer,
        "configurations": list(configurations.values()),
        "cells": sorted(found.cells, key=lambda cell: (order[cell["configuration"]], cell["at"] or 0)),
        "theory": found.theory,
        "notes": notes,
    }


def _load_sentence(arguments: argparse.Namespace, preset: Preset, request: Request) -> str:
    what = f"{request.method} {request.path}" + (f" with a body of {len(request.body):,} bytes" if request.body else "")
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
            how = f"{arguments.connections} connections, {arguments.seconds:g} s"
    kept = "kept alive" if request.keep_alive else "a connection for each request"
    turns = f"{arguments.rounds} rounds in turns" if arguments.rounds > 1 else "one round"
    return f"{what}; {how}, {kept}; {turns}."


def _report(result: Result, arguments: argparse.Namespace, conditions: Sequence[Condition]) -> int:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
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
        print("No condition of --fail-if holds.")
    return Status.CONDITION if broken else Status.OK
