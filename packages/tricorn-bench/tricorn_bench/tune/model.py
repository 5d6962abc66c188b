"""Predicts what a configuration serves, from measurements of one worker.

With N workers on P processors, c CPU seconds for a request, and x requests a second from one worker:

    rate ≤ min(N x, P / c)

    sync      x as measured: one request at a time
    gthread   x = T / s for T threads and s seconds for a request alone (Little's law), up to x as measured with many
    a loop    x = n / (w + n h) for n requests at once, w seconds of waiting and h seconds in which one holds the loop

A loop runs all callbacks that are ready before it reads the next requests (libuv, "Design overview"), so requests
gather in batches: n of them wait together, then hold the loop one after another. Its limit 1 / h is reached with many
more requests at once than one queue would need.

Whatever makes the requests of a process wait for one another is in the measured x: the GIL, a call that blocks an event
loop, a pool of connections. Where the two limits are close, requests queue for the processors, and the threads of a
worker for its GIL: a closed network of one station, known as the machine repairman (Kleinrock, "Queueing Systems",
volume 1, 1975, section 3.8), which loses a sixth where ten requests at once would reach both limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum

from tricorn.record import Record
from tricorn_bench.bench.configuration import Configuration

NEARLY = 0.95
"""Fraction of the highest rate that is as good as all of it."""
THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
MOST_WORKERS = 128
ROOM = 0.8
"""Fraction of the memory limit that is planned with: 24 workers grew by a fifth beyond one worker's first seconds."""
ROOM_MEASURED = 0.95
"""The same, once several workers were measured under load: they have grown by then."""
IN_ALL = 10_000
"""Requests at once in all workers of an event loop when a configuration is measured."""
DEEP = 4.0
"""Multiple of the customers that saturate a station from which on it is never idle."""
GIL_BOUND = 0.8
"""Fraction of a processor from which on one worker's limit is taken for the GIL."""


class Kind(Enum):
    """Concurrency model of a worker class."""

    ONE = "one at a time"
    THREADS = "in threads"
    LOOP = "in a loop"


KINDS = {
    "sync": Kind.ONE,
    "gthread": Kind.THREADS,
    "gevent": Kind.LOOP,
    "eventlet": Kind.LOOP,
    "asgi": Kind.LOOP,
    "tornado": Kind.LOOP,
    "aiohttp": Kind.LOOP,
}


class Limits(Record):
    """Resources that the server may use."""

    processors: float
    memory: int | None = None
    """Bytes."""
    connections: int | None = None
    """Connections to the database."""


class Costs(Record):
    """Measurements of one worker of a class."""

    worker_class: str
    alone: float
    """Seconds of a request while there is no other one."""
    cpu: float
    """CPU seconds of a request under load, in all processes of the server."""
    rate: float
    """Requests a second that the worker reached."""
    at_once: int
    """Threads, or requests in the loop, that it had for that."""
    base: int
    """PSS in bytes of the server with one worker, without what the worker has for itself."""
    worker: int
    """USS in bytes of the worker after the load."""
    connections: int | None = None
    """Connections to the database under load. None: not counted."""
    resting: int = 0
    """Connections to the database that one request at a time needs: a pool opens some at once."""
    room: float = ROOM
    """Fraction of the memory limit to plan with."""

    @property
    def kind(self) -> Kind:
        return KINDS[self.worker_class]

    @property
    def holding(self) -> float:
        """Seconds in which a request holds the event loop (h)."""
        return holding(self.alone, self.rate, self.at_once)


class Prediction(Record):
    configuration: Configuration
    rate: float
    """Requests a second."""
    memory: int
    """PSS in bytes, of all processes."""
    connections: int | None
    limit: str
    """The reason why it is not more."""
    threads: int = 1


def worker_rate(costs: Costs, threads: int, requests: int | None = None) -> float:
    """Returns the requests a second of one worker, however many processors there are.

    `requests`: at once in a loop, if there are fewer than it had when it was measured.
    """
    if costs.kind is Kind.LOOP and requests is not None and requests < costs.at_once:
        return min(costs.rate, requests / (costs.alone + (requests - 1) * costs.holding))
    if costs.kind is not Kind.THREADS:
        return costs.rate
    asymptote = min(threads / costs.alone, costs.rate)
    if costs.rate * costs.cpu < GIL_BOUND:
        return asymptote
    return min(asymptote, closed_rate(threads, 1 / costs.rate, max(costs.alone, 1 / costs.rate)))


def holding(alone: float, rate: float, requests: int) -> float:
    """Returns for how many seconds a request holds a loop that serves `rate` a second with so many at once."""
    return max(0.0, requests / rate - alone) / max(1, requests - 1)


def closed_rate(customers: int, service: float, alone: float, servers: float = 1.0) -> float:
    """Returns the throughput of a closed network: customers at one station, who are elsewhere in between.

    `alone` is the time of a cycle without waiting, `servers` how many customers the station serves at once.
    """
    elsewhere = alone - service
    highest = min(customers / alone, servers / service)
    if elsewhere <= 0 or customers * service > DEEP * servers * alone:
        return highest
    weight = whole = 1.0
    present = 0.0
    for number in range(1, customers + 1):
        weight *= (customers - number + 1) * service / (elsewhere * min(number, servers))
        whole += weight
        present += number * weight
        if whole > 1e100:
            weight, whole, present = weight / whole, 1.0, present / whole
    return (customers - present / whole) / elsewhere


def predict(costs: Costs, limits: Limits, workers: int, threads: int = 1) -> Prediction:
    each = min(costs.at_once, max(1, IN_ALL // workers))
    of_workers, of_processors = workers * worker_rate(costs, threads, each), limits.processors / costs.cpu
    slots = workers * {Kind.ONE: 1, Kind.THREADS: threads, Kind.LOOP: each}[costs.kind]
    words = f"{costs.worker_class} -w {workers}"
    if costs.kind is Kind.THREADS:
        words += f" --threads {threads}"
    return Prediction(
        configuration=Configuration.parse(words),
        rate=closed_rate(slots, costs.cpu, max(slots / of_workers, costs.cpu), limits.processors),
        memory=costs.base + workers * costs.worker,
        connections=_connections(costs, workers, threads),
        limit=PROCESSORS if of_processors <= of_workers else _limit_of_workers(costs, threads),
        threads=threads,
    )


PROCESSORS = "the processors are busy"


def _limit_of_workers(costs: Costs, threads: int) -> str:
    match costs.kind:
        case Kind.ONE:
            return "each worker serves one request at a time"
        case Kind.THREADS if worker_rate(costs, threads) < NEARLY * costs.rate:
            return "all threads wait"
        case _ if costs.rate * costs.cpu >= GIL_BOUND:
            return "each worker computes on one processor"
        case _:
            return "requests of a worker wait for one another"


def _connections(costs: Costs, workers: int, threads: int) -> int | None:
    if costs.connections is None:
        return None
    if costs.kind is Kind.THREADS:
        return workers * max(costs.resting, min(costs.connections, threads))
    return workers * costs.connections


def most_workers(costs: Costs, limits: Limits, threads: int = 1) -> int:
    """Returns how many workers the limits of memory and database connections allow; 0 if not even one."""
    most = MOST_WORKERS
    if limits.memory is not None:
        most = min(most, math.floor((costs.room * limits.memory - costs.base) / costs.worker))
    one = _connections(costs, 1, threads)
    if limits.connections is not None and one:
        most = min(most, limits.connections // one)
    return max(0, most)


def candidates(costs: Costs, limits: Limits) -> Iterator[Prediction]:
    """Yields the smallest configurations that nearly reach the highest rate, one for each number of threads."""
    for threads in THREADS if costs.kind is Kind.THREADS else (1,):
        if threads > costs.at_once and threads > 1:
            break
        most = most_workers(costs, limits, threads)
        if not most:
            continue
        highest = predict(costs, limits, most, threads).rate
        workers = next(n for n in range(1, most + 1) if predict(costs, limits, n, threads).rate >= NEARLY * highest)
        yield predict(costs, limits, workers, threads)


def best(predictions: Iterator[Prediction]) -> Prediction | None:
    """Returns the one of the highest rate. Of those that nearly reach it, the one with the least memory."""
    found = list(predictions)
    if not found:
        return None
    highest = max(one.rate for one in found)
    return min((one for one in found if one.rate >= NEARLY * highest), key=lambda one: (one.memory, one.threads))


def saturating(alone: float, cpu: float, room: int) -> int:
    """Returns how many threads keep a processor busy, and half as many again; at least 16, at most `room`."""
    return max(16, min(room, math.ceil(1.5 * alone / cpu)))


def filling(alone: float, hold: float, room: int) -> int:
    """Returns how many requests at once bring a loop within 10 % of its limit; at least 32, at most `room`."""
    return max(32, min(room, math.ceil(10 * alone / hold)))
