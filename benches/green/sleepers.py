"""Ten thousand requests that wait at once in one worker: how long until all are answered, and what each weighs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from tricorn.bench import proc

from benches.end_to_end.servers import Kind
from benches.green.crowd import Answers, Crowd
from benches.harness import report
from benches.harness.process import DidNotServe, Server, free_port

APPLICATION = "benches.green.apps:sleep"
SLEEP = 1.0
#: Long enough for every server to have begun all requests before the first is over.
LONG_SLEEP = 8.0
PATIENCE = 60.0


class Round(NamedTuple):
    """Seconds, and bytes of the server."""

    last: float
    first: float
    cpu: float
    client_cpu: float
    at_once: int
    failed: int
    pss_empty: int
    pss_connected: int
    pss_waiting: int


def one_round(kind: Kind, count: int, commands: dict[str, str], application: str = APPLICATION) -> Round:
    """One run for time. Then requests that sleep longer, so that all of them wait while the worker is weighed."""
    port = free_port()
    command = kind.command(application, port, None)
    commands[f"{kind.name}, sleepers"] = report.shown(command, port)
    with Server(command, port) as server:
        empty = weigh(server)
        with Crowd(port, count) as crowd:
            connected = weigh(server)
            pids = server.pids()
            before = proc.cpu(pids)
            crowd.ask(SLEEP)
            timed = crowd.answers(PATIENCE)
            cpu = (proc.cpu(pids) - before).total
            demand_all(timed, count)
            crowd.ask(LONG_SLEEP)
            rest(pids)
            waiting = weigh(server)
            demand_all(crowd.answers(PATIENCE), count, at_once=count)
    return Round(
        last=timed.last,
        first=timed.first,
        cpu=cpu,
        client_cpu=timed.cpu,
        at_once=timed.largest,
        failed=count - timed.good,
        pss_empty=empty,
        pss_connected=connected,
        pss_waiting=waiting,
    )


def demand_all(answers: Answers, count: int, at_once: int = 0) -> None:
    if answers.good < count:
        raise DidNotServe(f"answered {answers.good} of {count} requests within {PATIENCE:g} s")
    if answers.largest < at_once:
        raise DidNotServe(f"ran at most {answers.largest} requests at once")


def weigh(server: Server) -> int:
    """All processes: the worker's and the arbiter's, which does not change."""
    return sum(proc.memory(pid).pss for pid in server.pids())


def rest(pids: Sequence[int]) -> None:
    """Until the server has begun what was asked, and hardly uses its processor any more."""
    deadline = time.monotonic() + LONG_SLEEP / 2
    spent = proc.cpu(pids).total
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = proc.cpu(pids).total
        if now - spent < 0.02:
            return
        spent = now
    raise DidNotServe(f"used its processor without a pause for {LONG_SLEEP / 2:g} s, while all requests slept")


def render(rounds: dict[str, list[Round]], absent: dict[str, str], count: int) -> str:
    rows = []
    for name, several in rounds.items():
        median = {field: statistics.median(getattr(one, field) for one in several) for field in Round._fields}
        per_request = (median["pss_waiting"] - median["pss_empty"]) / count
        per_connection = (median["pss_connected"] - median["pss_empty"]) / count
        rows.append(
            [
                name,
                f"{median['last']:.2f}",
                f"{median['at_once']:,.0f}",
                f"{median['cpu'] / count * 1e6:.1f}",
                f"{median['pss_empty'] / 2**20:.1f}",
                f"{median['pss_connected'] / 2**20:.1f}",
                f"{median['pss_waiting'] / 2**20:.1f}",
                f"{per_connection / 1024:.1f}",
                f"{per_request / 1024:.1f}",
                f"{median['client_cpu']:.2f}",
            ]
        )
    header = ["server", "all answered after s", "at once", "CPU µs/req", "PSS MiB empty", "connected", "all waiting"]
    header += ["KiB per idle connection", "KiB per waiting request", "client's CPU s"]
    title = f"### {count:,} requests that sleep {SLEEP:g} s, one worker"
    lines = [f"* {name}: {reason}" for name, reason in absent.items()]
    return "\n\n".join([title, report.table(header, rows), *(["\n".join(lines)] if lines else [])])


def raw(rounds: dict[str, list[Round]], absent: dict[str, str]) -> dict[str, Any]:
    return {"rounds": {name: [one._asdict() for one in several] for name, several in rounds.items()}, "absent": absent}
