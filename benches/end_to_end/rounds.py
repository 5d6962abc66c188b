"""Servers take turns under load, round after round; what a round has shown, and the table of their medians."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tricorn.bench import proc

from benches.end_to_end.cases import Case
from benches.end_to_end.servers import Kind, is_peer
from benches.harness import environment, load, report
from benches.harness.process import DidNotServe, Server, free_port

HEADER = [
    "server",
    "req/s",
    "÷ best peer",
    "CPU µs/req",
    "user",
    "system",
    "÷ best peer",
    "p50 ms",
    "p99 ms",
    "PSS MiB",
]


class Round(NamedTuple):
    per_second: float
    cpu_us: float
    user_us: float
    system_us: float
    p50_ms: float
    p99_ms: float
    pss: int
    private: int
    requests: int
    errors: int
    #: Share of the machine's two cores that neither server nor load generator used: others were busy if it is large.
    disturbance: float


def measure(
    case: Case, chosen: Sequence[Kind], arguments: argparse.Namespace, commands: dict[str, str]
) -> tuple[dict[str, list[Round]], dict[str, str]]:
    failures = environment.installation_failures()
    absent = {kind.name: reason for kind in chosen if (reason := kind.why_not(case, failures))}
    rounds: dict[str, list[Round]] = {kind.name: [] for kind in chosen if kind.name not in absent}
    for number in range(arguments.rounds):
        for kind in chosen:
            if kind.name in absent:
                continue
            progress(f"  {case.name}: round {number + 1}: {kind.name}")
            try:
                rounds[kind.name].append(one_round(case, kind, arguments, commands))
            except DidNotServe as reason:
                absent[kind.name] = str(reason)
                rounds.pop(kind.name)
    progress("")
    return rounds, {name: reason for name, reason in absent.items() if reason != "-"}


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:<70}\r", end="", file=sys.stderr, flush=True)


def one_round(case: Case, kind: Kind, arguments: argparse.Namespace, commands: dict[str, str]) -> Round:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        access_log = f"{folder}/access.log" if case.needs_access_log else None
        command = kind.command(case.application, port, access_log)
        commands[f"{kind.name}, {case.name}"] = report.shown(command, port).replace(folder, "FOLDER")
        with Server(command, port) as server:
            demand_right_answer(case, server)
            load.run(case.load, port, arguments.connections, 1)
            pids = server.pids()
            cpu, busy = proc.cpu(pids), proc.machine_busy_seconds()
            seen = load.run(case.load, port, arguments.connections, arguments.seconds)
            spent, busy = proc.cpu(pids) - cpu, proc.machine_busy_seconds() - busy
            memory = worker_memory(pids)
            if access_log and kind.name != "granian":
                demand_access_log(Path(access_log), seen.requests)
    if not seen.requests:
        raise DidNotServe("answered no request under load")
    micro = 1e6 / seen.requests
    return Round(
        per_second=seen.per_second,
        cpu_us=spent.total * micro,
        user_us=spent.user * micro,
        system_us=spent.system * micro,
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        pss=memory.pss,
        private=memory.private,
        requests=seen.requests,
        errors=seen.errors,
        disturbance=max(0.0, busy - spent.total - seen.cpu) / seen.seconds,
    )


def demand_right_answer(case: Case, server: Server) -> None:
    try:
        status, body = server.ask(case.load.method, case.load.path, case.request_body(), dict(case.load.headers))
    except Exception as error:
        raise DidNotServe(f"no right answer: {error!r}") from error
    if (status, body) != (200, case.answer):
        raise DidNotServe(f"wrong answer: status {status}, {len(body)} bytes instead of {len(case.answer)}")


def demand_access_log(log: Path, requests: int) -> None:
    lines = log.read_bytes().count(b"\n") if log.exists() else 0
    if lines < requests:
        raise DidNotServe(f"logged {lines} of {requests} requests")


def worker_memory(pids: Sequence[int]) -> proc.Memory:
    """The worker is the process that has spent the most CPU; its arbiter has hardly spent any."""
    worker = max(pids, key=lambda pid: proc.cpu([pid]).total)
    return proc.memory(worker)


def render(case: Case, rounds: dict[str, list[Round]], absent: dict[str, str]) -> str:
    medians = {name: medians_of(several) for name, several in rounds.items()}
    peers = [median for name, median in medians.items() if is_peer(name)]
    best_rate = max((peer["per_second"] for peer in peers), default=0.0)
    best_cpu = min((peer["cpu_us"] for peer in peers), default=0.0)
    rows = []
    for name, median in sorted(medians.items(), key=lambda item: item[1]["cpu_us"]):
        rows.append(
            [
                name + (f" ({median['errors']:.0f} errors)" if median["errors"] else ""),
                f"{median['per_second']:,.0f}",
                f"{median['per_second'] / best_rate:.2f}" if best_rate else "",
                *(f"{median[key]:.1f}" for key in ("cpu_us", "user_us", "system_us")),
                f"{median['cpu_us'] / best_cpu:.2f}" if best_cpu else "",
                f"{median['p50_ms']:.2f}",
                f"{median['p99_ms']:.2f}",
                f"{median['pss'] / 2**20:.1f}",
            ]
        )
    lines = [f"### {case.name}: {case.question}", "", report.table(HEADER, rows)]
    if absent:
        lines += ["", *[f"* {name}: {reason}" for name, reason in absent.items()]]
    disturbed = max((median["disturbance"] for median in medians.values()), default=0.0)
    if disturbed > 0.1:
        lines += [
            "",
            f"Other processes used up to {disturbed:.0%} of a core in the median round: repeat on a quiet machine.",
        ]
    return "\n".join(lines)


def raw(rounds: dict[str, list[Round]], absent: dict[str, str]) -> dict[str, Any]:
    """What is kept beside the table."""
    return {
        "rounds": {name: [one._asdict() for one in several] for name, several in rounds.items()},
        "absent": absent,
    }


def medians_of(rounds: Sequence[Round]) -> dict[str, Any]:
    return {field: statistics.median(getattr(one, field) for one in rounds) for field in Round._fields}
