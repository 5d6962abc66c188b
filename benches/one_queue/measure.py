"""One trace on one server: the waits, and what they cost."""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from tricorn_bench.bench.servers import ASGI, WSGI, certificate
from tricorn_bench.load import Http2, Sample

from benches.harness.load import Due, singly
from benches.harness.process import DidNotServe, Server
from benches.harness.servers import Figures, Found, serving, spent
from benches.one_queue import theory

GROUP = 4
"""Requests that a server has room for at once."""
BASELINE_SERVICE = 5_000
BASELINE_REQUESTS = 200


def summary(waits: Sequence[float]) -> Figures:
    """Milliseconds."""
    ordered = sorted(waits)
    quantiles = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
    return {
        "mean ms": statistics.fmean(waits) * 1e3,
        **{name: theory.quantile(ordered, share) * 1e3 for name, share in quantiles.items()},
        "requests": len(waits),
        "tail": [(round(wait * 1e3, 3), float(f"{share:.3g}")) for wait, share in theory.tail(waits)],
    }


def run(line: str, found: Found, trace: theory.Trace, arguments: argparse.Namespace) -> tuple[Figures, list[Sample]]:
    """The connections are opened by requests of their own, so that the server has them all before the run begins."""
    interface = ASGI if line.startswith(("uvicorn", "hypercorn", "tricorn asgi")) else WSGI
    path = "/compute" if interface == ASGI else "/work"
    opening = planned(opening_of(arguments.connections, arguments.service, arguments.seed), path)
    application = f"benches.apps.{interface.lower()}:app"
    over = Over(arguments.over, arguments.streams)
    with ExitStack() as stack:
        pair = stack.enter_context(certificate()) if over.is_secure else None
        server = stack.enter_context(
            serving(line, application, found, interface, certificate=pair, http2=over.is_http2)
        )
        overhead = baseline(server, path, over)
        before = spent(server)
        outcomes, reopened = singly(server.port, opening, planned(trace, path), **over.plan)
        cpu = spent(server) - before
    pairs = zip(outcomes, trace.services, strict=True)
    served = [(outcome, service) for outcome, service in pairs if outcome.ended == 200]
    if not served:
        raise DidNotServe(f"answered none of {len(outcomes)} requests")
    late = sorted(outcome.late for outcome in outcomes if not outcome.held)
    return {
        **summary([outcome.latency - service for outcome, service in served]),
        "failed": len(outcomes) - len(served),
        "overhead ms": overhead * 1e3,
        "CPU ms/req": cpu / (len(opening) + len(outcomes)) * 1e3,
        "busiest worker": max(Counter(outcome.body for outcome, _ in served).values()) / len(served),
        "found none free": sum(outcome.held for outcome in outcomes),
        "reopened": reopened,
        "late p99": theory.quantile(late, 0.99) * 1e3 if late else 0.0,
    }, outcomes


class Over(NamedTuple):
    """How requests come."""

    name: str
    streams: int

    @property
    def is_secure(self) -> bool:
        return self.name == "tls"

    @property
    def is_http2(self) -> bool:
        return self.name == "http2"

    @property
    def plan(self) -> dict[str, Any]:
        return {"secure": self.is_secure, "http2": Http2(self.streams) if self.is_http2 else None}


def baseline(server: Server, path: str, over: Over) -> float:
    """What an idle server adds to the service time, network and wake-ups of both sides included; the median."""
    service = BASELINE_SERVICE / 1e6
    dues = [(number * 2 * service, f"{path}?us={BASELINE_SERVICE}") for number in range(BASELINE_REQUESTS)]
    outcomes, _ = singly(server.port, dues[:GROUP], dues, **over.plan)
    return statistics.median(outcome.latency - service for outcome in outcomes)


def planned(trace: theory.Trace, path: str) -> list[Due]:
    pairs = zip(trace.arrivals, trace.services, strict=True)
    return [(arrival, f"{path}?us={round(service * 1e6)}") for arrival, service in pairs]


def opening_of(connections: int, mean_service: float, seed: int) -> theory.Trace:
    """A request per connection, at half the capacity: a server under ordinary load, to which clients come."""
    endless = theory.poisson(0.5, GROUP, mean_service, 4 * connections * mean_service, seed)
    return theory.Trace(*(column[:connections] for column in endless))
