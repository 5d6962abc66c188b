"""One trace on one server: the waits, and what they cost."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from tricorn.bench import proc

from benches.harness.open_loop import Clients, Outcome, Planned
from benches.harness.process import DidNotServe, Server
from benches.one_queue import theory

BASELINE_SERVICE = 5_000
BASELINE_REQUESTS = 200


class Waits(NamedTuple):
    """Seconds. `waits` is one per request of the trace that was answered."""

    waits: list[float]
    failed: int
    overhead: float
    cpu_per_request: float
    largest_share: float
    held_up: int
    reopened: int
    late_p99: float

    def summary(self) -> dict[str, Any]:
        return {
            **summary(self.waits),
            "failed": self.failed,
            "overhead_ms": self.overhead * 1e3,
            "cpu_ms_per_request": self.cpu_per_request * 1e3,
            "largest_share_of_a_worker": self.largest_share,
            "without_free_connection": self.held_up,
            "connections_reopened": self.reopened,
            "sent_late_p99_ms": self.late_p99 * 1e3,
        }


def summary(waits: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(waits)
    return {
        "requests": len(waits),
        "mean_ms": statistics.fmean(waits) * 1e3,
        "p50_ms": theory.quantile(ordered, 0.5) * 1e3,
        "p99_ms": theory.quantile(ordered, 0.99) * 1e3,
        "p99.9_ms": theory.quantile(ordered, 0.999) * 1e3,
        "max_ms": ordered[-1] * 1e3,
        "tail": [(round(wait * 1e3, 3), float(f"{share:.3g}")) for wait, share in theory.tail(waits)],
    }


def run(server: Server, trace: theory.Trace, clients: Clients, opening: theory.Trace) -> tuple[Waits, list[Outcome]]:
    """The connections are opened by requests of their own, so that the server has them all before the run begins."""
    opened = clients.open_all(planned(opening))
    if any(outcome.status != 200 for outcome in opened):
        raise DidNotServe(f"answered {Counter(outcome.status for outcome in opened)} while connections were opened")
    overhead = baseline(clients)
    opened_before = clients.opened
    pids = server.pids()
    before = proc.cpu(pids)
    outcomes = clients.run(planned(trace))
    spent = (proc.cpu(pids) - before).total
    served = [
        (outcome, service) for outcome, service in zip(outcomes, trace.services, strict=True) if outcome.status == 200
    ]
    if not served:
        raise DidNotServe(f"answered none of {len(outcomes)} requests")
    workers = Counter(outcome.body for outcome, _ in served)
    late = sorted(outcome.late for outcome in outcomes if not outcome.held_up)
    waits = Waits(
        waits=[outcome.latency - service for outcome, service in served],
        failed=len(outcomes) - len(served),
        overhead=overhead,
        cpu_per_request=spent / len(outcomes),
        largest_share=max(workers.values()) / len(served),
        held_up=sum(outcome.held_up for outcome in outcomes),
        reopened=clients.opened - opened_before,
        late_p99=theory.quantile(late, 0.99) if late else 0.0,
    )
    return waits, outcomes


def baseline(clients: Clients) -> float:
    """What an idle server adds to the service time, network and wake-ups of both sides included; the median."""
    service = BASELINE_SERVICE / 1e6
    plan = [
        Planned(number * 2 * service, f"/work?us={BASELINE_SERVICE}", number / BASELINE_REQUESTS)
        for number in range(BASELINE_REQUESTS)
    ]
    return statistics.median(outcome.latency - service for outcome in clients.run(plan))


def planned(trace: theory.Trace) -> list[Planned]:
    return [
        Planned(arrival, f"/work?us={round(service * 1e6)}", pick)
        for arrival, service, pick in zip(trace.arrivals, trace.services, trace.picks, strict=True)
    ]


def opening(connections: int, mean_service: float, servers: int, seed: int) -> theory.Trace:
    """A request per connection, at half the capacity: a server under ordinary load, to which clients come."""
    endless = theory.poisson(0.5, servers, mean_service, 4 * connections * mean_service, seed)
    return theory.Trace(*(column[:connections] for column in endless))
