"""tricorn's load generator, pinned to a core of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tricorn_bench.load import LoadError, Plan, Replay, Result, Sample, Target, Tls, run

from benches.harness.process import LOAD_CORE, DidNotServe

CONNECTIONS = 64
Due = tuple[float, str]
"""Seconds from the beginning, and a path."""
SETTLED = 2.0
"""Seconds after which the requests that open connections are answered."""


def send(port: int, path: str = "/", *, secure: bool = False, **plan: Any) -> Result:
    """For a second over 64 connections, unless `plan` (fields of `tricorn_bench.load.Plan`) says otherwise."""
    usual = {"connections": CONNECTIONS, "seconds": 1.0, "timeout": 60.0, "cpus": (LOAD_CORE,)}
    scheme = "https" if secure else "http"
    try:
        return run(
            Plan(targets=(Target(f"{scheme}://127.0.0.1:{port}{path}"),), **{**usual, "tls": Tls(verify=False), **plan})
        )
    except LoadError as error:
        raise DidNotServe(str(error)) from error


def good(result: Result) -> int:
    """How many requests were answered. Raises DidNotServe unless all were, with a status below 400."""
    bad = sum(count for status, count in result.statuses.items() if status >= 400)
    if bad or result.failed:
        raise DidNotServe(f"{bad + result.failed} errors of {result.sent} requests")
    if not result.answered:
        raise DidNotServe("answered nothing")
    return result.answered


def singly(port: int, opening: Sequence[Due], dues: Sequence[Due], **plan: Any) -> tuple[list[Sample], int]:
    """What became of each request that was due, in that order, and how many connections the server had closed.

    Requests are sent when they are due, whatever the server does, each over any connection that is free. Those of
    `opening` open the connections before, one each.
    """
    begin = opening[-1][0] + SETTLED
    requests = [*opening, *((begin + due, path) for due, path in dues)]
    result = send(
        port,
        replay=tuple(Replay(due, "GET", path) for due, path in requests),
        connections=len(opening),
        opens_all=True,
        any_connection=True,
        warmup_seconds=begin,
        samples=len(dues),
        **{"seconds": None, "drain_seconds": 120.0, **plan},
    )
    if len(result.samples) < len(dues):
        raise DidNotServe(f"{len(dues) - len(result.samples)} of {len(dues)} requests had no end")
    return sorted(result.samples, key=lambda sample: sample.due), int(result["opened"])
