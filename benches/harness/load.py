"""tricorn's load generator, pinned to a core of its own, and what it saw as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tricorn.load import LoadError, Plan, Result, Target, WebSocket
from tricorn.load import run as generate
from tricorn.record import replace

from benches.harness.process import LOAD_CORE, DidNotServe


class Load(NamedTuple):
    """What is sent: one request, again and again."""

    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    body_bytes: int = 0
    body: str = ""

    def content(self) -> bytes:
        return self.body.encode() or b"x" * self.body_bytes

    @property
    def closes(self) -> bool:
        return ("Connection", "close") in self.headers


class Seen(NamedTuple):
    """`requests` were answered; `errors` had no answer, or one with another status than 2xx and 3xx."""

    requests: int
    good: int
    seconds: float
    errors: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    cpu: float

    @property
    def per_second(self) -> float:
        """Good answers."""
        return self.good / self.seconds


def command(connections: int, seconds: float, path: str, port: int | str) -> str:
    return f"tricorn load -c {connections} -z {seconds:g}s http://127.0.0.1:{port}{path}"


def run(load: Load, port: int, connections: int, seconds: float) -> Seen:
    return _sent(_plan(load, port, connections, seconds=seconds))


def burst(requests: int, clients: int, path: str, port: int) -> Seen:
    """So many clients at once, until so many requests have been sent. Pinned to no core."""
    return _sent(replace(_plan(Load(path=path), port, clients, requests=requests), cpus=()))


def echo(port: int, connections: int, seconds: float, size: int, *, deflate: bool = False) -> Seen:
    """Messages over WebSockets, each sent when the one before has come back."""
    plan = _plan(Load(), port, connections, seconds=seconds)
    return _sent(replace(plan, websocket=WebSocket(size=size, deflate=deflate)))


def burst_command(requests: int, clients: int, path: str) -> str:
    return f"tricorn load -n {requests} -c {clients} http://127.0.0.1:PORT{path}"


def _plan(
    load: Load, port: int, connections: int, *, seconds: float | None = None, requests: int | None = None
) -> Plan:
    return Plan(
        targets=(Target(f"http://127.0.0.1:{port}{load.path}"),),
        method=load.method,
        headers=tuple(field for field in load.headers if field != ("Connection", "close")),
        body=load.content(),
        connections=connections,
        seconds=seconds,
        requests=requests,
        keep_alive=not load.closes,
        timeout=60.0,
        cpus=(LOAD_CORE,),
    )


def _sent(plan: Plan, generator: Callable[[Plan], Result] = generate) -> Seen:
    try:
        return seen(generator(plan))
    except LoadError as error:
        raise DidNotServe(str(error)) from error


def seen(result: Result) -> Seen:
    bad = sum(count for status, count in result.statuses.items() if status >= 400)
    latency = {name: result.latency.get(name, 0.0) * 1e3 for name in ("p50", "p90", "p99", "max")}
    return Seen(
        requests=result.answered,
        good=result.answered - bad,
        seconds=result.seconds,
        errors=result.failed + bad,
        p50_ms=latency["p50"],
        p90_ms=latency["p90"],
        p99_ms=latency["p99"],
        max_ms=latency["max"],
        cpu=float(result.generator["cpu_seconds"]),
    )
