"""tricorn's load generator, pinned to a core of its own."""

from __future__ import annotations

from typing import Any

from tricorn.load import LoadError, Plan, Result, Target, run

from benches.harness.process import LOAD_CORE, DidNotServe

CONNECTIONS = 64


def send(port: int, path: str = "/", **plan: Any) -> Result:
    """For a second over 64 connections, unless `plan` (fields of `tricorn.load.Plan`) says otherwise."""
    usual = {"connections": CONNECTIONS, "seconds": 1.0, "timeout": 60.0, "cpus": (LOAD_CORE,)}
    try:
        return run(Plan(targets=(Target(f"http://127.0.0.1:{port}{path}"),), **{**usual, **plan}))
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
