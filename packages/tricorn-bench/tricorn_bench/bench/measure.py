"""Rounds: each configuration in turn is started, checked, warmed up, loaded and stopped; then all of them again.

One server runs at a time, so that none shares pages with another one (PSS) or is disturbed by it; each round starts
it anew, since where a process has its memory, and which keys of a dict collide, is a matter of luck.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from tricorn.record import Record, replace
from tricorn_bench.bench import proc, split, theory
from tricorn_bench.bench.budget import Budget
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.database import Watch
from tricorn_bench.bench.errors import BenchError, DidNotServe
from tricorn_bench.bench.machine import Cores
from tricorn_bench.bench.process import Server, demand_free, free_port
from tricorn_bench.bench.result import Cell, Expected, Load, OneProcess, Round, Window
from tricorn_bench.bench.servers import Certificate
from tricorn_bench.bench.trial import Request, Stage, Trial
from tricorn_bench.load import LoadError, Plan, Target, Tls, WebSocket

FIRST_LOOK, LOOKS_EVERY = 0.1, 0.25
"""Seconds until the first look at a server under load, and between two."""
STOPPING = 2.0
"""Seconds that a load generator has to stop, which looks about once a second."""
SHARE_OF_LOOKING = 0.05
"""Largest share of the time spent on looks: with ten thousand connections one takes tens of milliseconds."""
LEFT_OUT = ("WEB_CONCURRENCY", "PORT", "TRICORN_CMD_ARGS", "GUNICORN_CMD_ARGS")
"""Variables that would change what a command line says."""

Generator = Callable[[Plan, Callable[[Mapping[str, Any]], bool]], Any]
"""`tricorn_bench.load.run`: the second argument says about once a second whether to go on."""


class Say(Protocol):
    def __call__(self, line: str, *, stays: bool = False) -> object: ...


class Bench(Record):
    """Parameters that all rounds share."""

    application: str
    interface: str | None
    python: str
    request: Request
    cores: Cores
    rounds: int
    generate: Generator
    say: Say
    warmup: float = 1.0
    port: int | None = None
    database: Watch | None = None
    swarm: Generator | None = None
    """Measures instead of `generate`, which then warms up only."""
    host: str = "127.0.0.1"
    """Address that servers listen on."""
    certificate: Certificate | None = None
    """Servers speak TLS, with this one."""
    budget: Budget | None = None
    keep: Callable[[Measured], object] = lambda _: None
    """Is given what there is so far, after each start of a server."""


class Measured(Record):
    cells: Sequence[Cell] = ()
    absent: Mapping[str, str] = {}
    """Configurations that could not be measured, and why."""
    commands: Mapping[str, list[str]] = {}
    answer: str = ""
    """Response of every server: the same for all."""
    theory: Sequence[Expected] = ()
    notes: Sequence[str] = ()


class _Progress:
    """Findings on the way: the response of the first server, capacities."""

    def __init__(self) -> None:
        self.answer: tuple[int, int] | None = None
        self.answered_by = ""
        self.capacity: dict[str, float] = {}
        self.alone: dict[str, float] = {}
        """Seconds that a request takes while there is no other one."""
        self.agreed: dict[str, str] = {}
        """TLS parameters that each configuration negotiated."""


def measure(bench: Bench, trials: Sequence[Trial], before: Measured | None = None) -> Measured:
    """Measures what `before` has not. Raises BenchError if the application fails, or no configuration is left."""
    found = _Found(before or Measured(), trials)
    progress = _Progress()
    for number in range(bench.rounds):
        for trial in _in_time(bench, found.missing(number), bench.rounds - number):
            name = trial.configuration.name
            bench.say(f"round {number + 1} of {bench.rounds}: {name}")
            start = _Start(bench, trial, _ports(bench, trial), progress)
            found.commands[name] = [start.ports.named(word) for word in start.command]
            rounds: list[Round] = []
            try:
                rounds.extend(_rounds(start))
            except DidNotServe as reason:
                bench.say(f"{name} is skipped: {found.failed(trial, len(rounds), str(reason))}", stays=True)
            found.add(trial, rounds)
            bench.keep(found.measured(progress))
    if not found.cells:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.absent.items())
        raise BenchError(f"No configuration could be measured. {reasons}")
    return found.measured(progress)


class _Found:
    """Results so far. A start counts as a whole: its rounds are added together."""

    def __init__(self, before: Measured, trials: Sequence[Trial]) -> None:
        self.before = before
        self.trials = trials
        self.absent = {trial.configuration.name: why for trial in trials if (why := trial.configuration.why_not)}
        self.cells = {(cell["configuration"], cell["at"]): cell for cell in before.cells}
        self.commands = dict(before.commands)
        self.notes = list(before.notes)

    def missing(self, number: int) -> list[Trial]:
        """Returns what round `number` still has to measure."""
        possible = (trial for trial in self.trials if trial.configuration.name not in self.absent)
        return [trial for trial in possible if self.starts_of(trial) <= number]

    def starts_of(self, trial: Trial) -> int:
        first = next(stage.at for stage in trial.stages if stage.kept)
        cell = self.cells.get((trial.configuration.name, first))
        return len(cell["rounds"]) if cell else 0

    def add(self, trial: Trial, rounds: Sequence[Round]) -> None:
        kept = (stage for stage in trial.stages if stage.kept)
        for stage, one in zip(kept, rounds, strict=False):
            empty: Cell = {"configuration": trial.configuration.name, "at": stage.at, "rounds": []}
            self.cells.setdefault((trial.configuration.name, stage.at), empty)["rounds"].append(one)

    def failed(self, trial: Trial, rounds: int, reason: str) -> str:
        """After so many rounds of a start: what was measured at lower levels before it stays."""
        name = trial.configuration.name
        if rounds:
            kept = [stage for stage in trial.stages if stage.kept]
            self.notes.append(f"{name} at {kept[rounds].at:,g}: {reason}.")
            return self.notes[-1]
        self.absent[name] = reason
        self.cells = {key: cell for key, cell in self.cells.items() if key[0] != name}
        return reason

    def measured(self, progress: _Progress) -> Measured:
        expected = {(one["configuration"], one["at"]): one for one in self.before.theory}
        for cell in self.cells.values():
            expected.update(((one["configuration"], one["at"]), one) for one in _expected(cell, progress))
        answer = self.before.answer
        if progress.answer:
            status, length = progress.answer
            answer = f"status {status}, {length:,} bytes"
        cells = list(self.cells.values())
        notes = [
            *self.notes,
            *(f"{name}: {agreed}." for name, agreed in progress.agreed.items() if name not in self.absent),
        ]
        return Measured(cells, self.absent, self.commands, answer, list(expected.values()), notes)


def _in_time(bench: Bench, trials: Sequence[Trial], rounds: int) -> Iterator[Trial]:
    """Yields what the next of `rounds` rounds measures, shortened to the budget."""
    if bench.budget is None or not trials:
        yield from trials
        return
    shortened = bench.budget.begin(rounds, [stage.duration for trial in trials for stage in trial.stages])
    loaded = 0.0
    for trial in trials:
        stages = tuple(replace(stage, seconds=shortened(stage.seconds)) for stage in trial.stages)
        loaded += sum(stage.duration for stage in stages)
        yield replace(trial, stages=stages)
    bench.budget.end(loaded)


def _expected(cell: Cell, progress: _Progress) -> Iterator[Expected]:
    """M/M/W with the capacity that was measured; W by Little's law from what a request takes alone."""
    name, at = cell["configuration"], cell["at"]
    if at is None or name not in progress.alone or name not in progress.capacity:
        return
    capacity = progress.capacity[name]
    servers = servers_of_theory(capacity, progress.alone[name])
    p50, p95, p99 = (
        theory.latency_quantile(servers, at / 100, servers / capacity, share) for share in (0.5, 0.95, 0.99)
    )
    yield {"configuration": name, "at": at, "p50": p50, "p95": p95, "p99": p99}


class _Ports(Record):
    served: int
    admin: int | None
    """Port of tricorn's admin listener."""
    certificate: Certificate | None = None

    def named(self, word: str) -> str:
        if self.certificate is not None:
            for name, path in (("CERTIFICATE", self.certificate.file), ("KEY", self.certificate.key_file)):
                word = word.replace(path, name)
        word = word.replace(str(self.served), "PORT")
        return word.replace(str(self.admin), "ADMIN_PORT") if self.admin is not None else word


def _ports(bench: Bench, trial: Trial) -> _Ports:
    if bench.port is not None:
        demand_free(bench.port, bench.host)
    served = free_port(bench.host) if bench.port is None else bench.port
    return _Ports(served, free_port() if trial.configuration.server == "tricorn" else None, bench.certificate)


class _Start(Record):
    """A server that is started once, and measured under each of its stages."""

    bench: Bench
    trial: Trial
    ports: _Ports
    progress: _Progress

    @property
    def command(self) -> list[str]:
        bench, ports = self.bench, self.ports
        return self.trial.configuration.command(
            bench.python,
            bench.application,
            ports.served,
            bench.interface,
            ports.admin,
            bench.host,
            bench.certificate,
            bench.request.http2 is not None,
        )

    def server(self) -> Server:
        """Returns the server, to be entered."""
        bench = self.bench
        return Server(
            self.command,
            self.ports.served,
            cores=bench.cores.server,
            path=bench.request.path,
            without=LEFT_OUT,
            host=bench.host,
            secure=bench.certificate is not None,
        )


@contextmanager
def under_load(bench: Bench, one: Configuration, stage: Stage) -> Iterator[Server]:
    """Serves the configuration under load for the block, for other measurements than rounds. Raises DidNotServe."""
    trial = Trial(one, (stage,), one.name)
    start = _Start(bench, trial, _ports(bench, trial), _Progress())
    with start.server() as server:
        plan = _plan(bench, stage, server.port, None)
        with _started(bench.swarm or bench.generate, plan):
            yield server


def _rounds(start: _Start) -> Iterator[Round]:
    """Yields the rounds of the stages that are kept, in order."""
    bench, trial, ports = start.bench, start.trial, start.ports
    with start.server() as server:
        check(bench, trial.configuration.name, server, start.progress)
        if bench.warmup:
            plan = _plan(bench, Stage(bench.warmup, min(64, trial.stages[0].most_connections)), ports.served, None)
            _under_load(bench, plan, server, bench.generate)
        for stage in trial.stages:
            if len(trial.stages) > 1 and stage.at is not None:
                bench.say(f"  at {stage.at:g}")
            one = _one_round(start, stage, server)
            if stage.kept:
                yield one


def check(bench: Bench, name: str, server: Server, progress: _Progress) -> None:
    """One request, to be answered as by the first server. Raises DidNotServe, or BenchError if that one fails."""
    request = bench.request
    try:
        status, body = server.ask(request.method, request.path, request.body, dict(request.headers))
    except Exception as error:
        raise DidNotServe(f"does not answer {request.method} {request.path}: {error!r}") from error
    if progress.answer is None:
        if status >= 400:
            complaint = server.complained()
            raise BenchError(
                f"The application answers {request.method} {request.path} with status {status} under {name}: "
                "nothing is measured." + (f" The server's log says: {complaint}" if complaint else "")
            )
        progress.answer, progress.answered_by = (status, len(body)), name
    expected_status, expected_length = progress.answer
    if status != expected_status:
        raise DidNotServe(f"answers with status {status}, where {progress.answered_by} answers {expected_status}")
    if _differs(len(body), expected_length):
        raise DidNotServe(f"answers with {len(body):,} bytes, where {progress.answered_by} has {expected_length:,}")


def _differs(length: int, expected: int) -> bool:
    """Whether sizes differ by more than a tenth and 64 bytes: pages hold times, tokens, and names of processes."""
    return abs(length - expected) > max(64, expected / 10)


def _plan(bench: Bench, stage: Stage, port: int, capacity: float | None) -> Plan:
    request = bench.request
    origin = f"{'https' if bench.certificate else 'http'}://{bench.host}:{port}"
    rate = stage.rate
    if stage.share is not None:
        assert capacity is not None
        rate = max(1.0, stage.share * capacity)
    return Plan(
        targets=tuple(Target(f"{origin}{path}", weight) for path, weight in request.mix or ((request.path, 1.0),)),
        tls=Tls(verify=False, resume=request.resume),
        method=request.method,
        headers=request.headers,
        body=request.body,
        keep_alive=request.keep_alive,
        timeout=request.timeout,
        connections=stage.connections_of(request.http2.streams if request.http2 else 1),
        http2=request.http2,
        seconds=stage.duration,
        rate=rate,
        poisson=rate is not None,
        hatch_rate=stage.users / stage.hatch if stage.users else None,
        think=stage.think if stage.users else None,
        websocket=WebSocket(size=request.message, deflate=request.deflate) if request.message else None,
        cpus=bench.cores.load,
    )


def _one_round(start: _Start, stage: Stage, server: Server) -> Round:
    bench, ports, progress = start.bench, start.ports, start.progress
    name = start.trial.configuration.name
    plan = _plan(bench, stage, server.port, progress.capacity.get(name))
    times_before = split.read(ports.admin)
    begun, busy, own = time.monotonic(), proc.machine_busy_seconds(), time.process_time()
    spent, load, looks = _under_load(bench, plan, server, bench.swarm or bench.generate)
    busy, own = proc.machine_busy_seconds() - busy, time.process_time() - own
    if bench.swarm is not None:  # in processes of its own
        own += load["generator"]["cpu_seconds"]
    elapsed = time.monotonic() - begun
    times = split.read(ports.admin)
    if not load["answered"]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in load["errors"].items() if count)
        complaint = server.complained()
        raise DidNotServe(
            f"answered no request under load ({kinds or 'none was sent'}){f': {complaint}' if complaint else ''}"
        )
    if plan.rate is None and plan.think is None:
        load["window"] = window(load, plan)
    if tls := agreed(load):
        progress.agreed[name] = tls
    if not stage.kept and stage.connections == 1:
        progress.alone[name] = load["latency"]["mean"]
    elif not stage.kept:
        progress.capacity[name] = max(progress.capacity.get(name, 0.0), load["answered"] / load["seconds"])
    return {
        "load": load,
        "cpu": {"total": spent.total, "user": spent.user, "system": spent.system},
        "processes": memory_of(server, looks.threads),
        "connections": looks.connections,
        "parts": split.between(times_before, times),
        "database": looks.database,
        "ready": server.seconds_to_ready,
        "disturbance": max(0.0, busy - spent.total - own) / elapsed,
    }


def window(load: Load, plan: Plan) -> Window:
    """Returns the answers of a closed load before its end; later ones belong to the requests that were under way."""
    clients = plan.connections * (plan.http2.streams if plan.http2 else 1)
    late = clients - load.get("unanswered", 0)
    return {"seconds": plan.seconds or load["seconds"], "answered": max(0, load["answered"] - late)}


def agreed(load: Load) -> str:
    """Describes what the last round negotiated; empty without TLS."""
    tls: Mapping[str, Any] | None = load.get("tls")  # type: ignore[assignment]  # of `tricorn-load/1`, beyond `Load`
    if tls is None:
        return ""
    parts = [", ".join(tls[name]) for name in ("versions", "suites", "groups") if tls[name]]
    for kind in ("full", "resumed"):
        count, latency = tls[kind]["count"], tls[kind]["latency"]
        if count:
            parts.append(
                f"{count:,} {kind} handshakes (p50 {latency['p50'] * 1e3:.2g} ms, p99 {latency['p99'] * 1e3:.2g} ms)"
            )
    return "; ".join(parts)


def memory_of(server: Server, threads: Mapping[int, int]) -> list[OneProcess]:
    """The first process is first."""
    found: list[OneProcess] = []
    for pid in sorted(server.pids(), key=lambda pid: (pid != server.process.pid, pid)):
        try:
            memory = proc.memory(pid)
        except proc.GONE:  # it has ended meanwhile
            continue
        most = max(threads.get(pid, 0), proc.threads(pid))
        one: OneProcess = {
            "pid": pid,
            "name": proc.name(pid),
            "pss": memory.pss,
            "uss": memory.private,
            "rss": memory.rss,
            "threads": most,
        }
        found.append(one)
    return found


class _Looks:
    """Peaks seen while a server was under load."""

    def __init__(self) -> None:
        self.connections = 0
        self.threads: dict[int, int] = {}
        self.database: int | None = None

    def look(self, bench: Bench, server: Server) -> None:
        self.connections = max(self.connections, proc.connections(server.port))
        for pid in server.pids():
            self.threads[pid] = max(self.threads.get(pid, 0), proc.threads(pid))
        if bench.database is not None and (count := bench.database.count()) is not None:
            self.database = max(self.database or 0, count)


def _under_load(bench: Bench, plan: Plan, server: Server, generate: Generator) -> tuple[proc.Cpu, Load, _Looks]:
    """The CPU time of the server, what the generator saw, and what was seen meanwhile."""
    looks = _Looks()
    before = proc.cpu(server.pids())
    with _started(generate, plan) as running:
        pause = FIRST_LOOK
        while not running.ended.wait(pause):
            pause = looked(looks, bench, server)
            if server.process.poll() is not None:
                raise DidNotServe(f"left with status {server.process.returncode} under load: {server.said()}")
        load: Load = running.result()
    return proc.cpu(server.pids()) - before, load, looks


def looked(looks: _Looks, bench: Bench, server: Server) -> float:
    """Looks, and returns how long to wait until the next time."""
    begun = time.monotonic()
    looks.look(bench, server)
    return max(LOOKS_EVERY, (time.monotonic() - begun) / SHARE_OF_LOOKING)


class _Running(threading.Thread):
    """The generator, off the main thread: signals are handled there, at once."""

    def __init__(self, generate: Generator, plan: Plan) -> None:
        super().__init__(daemon=True)
        self.generate, self.plan = generate, plan
        self.ended = threading.Event()
        self.wanted = True
        self._found: Any = None
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._found = self.generate(self.plan, lambda _: self.wanted)
        except BaseException as failure:
            self._failure = failure
        finally:
            self.ended.set()

    def result(self) -> Load:
        if isinstance(self._failure, LoadError):  # the server does not speak what is sent
            raise DidNotServe(str(self._failure).rstrip(".")) from self._failure
        if isinstance(self._failure, BenchError):
            raise self._failure
        if self._failure is not None:
            raise BenchError(f"The load generator failed: {self._failure}") from self._failure
        found: Load = self._found.as_json()
        return found


@contextmanager
def _started(generate: Generator, plan: Plan) -> Iterator[_Running]:
    running = _Running(generate, plan)
    running.start()
    try:
        yield running
    finally:
        running.wanted = False
        running.join(STOPPING)


def servers_of_theory(capacity: float, alone: float) -> int:
    """Returns how many requests are served in parallel at capacity (Little's law), given the time of a lone one."""
    return max(1, math.floor(capacity * alone + 0.5))
