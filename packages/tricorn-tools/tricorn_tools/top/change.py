"""Change between two looks: differences of counters and histograms, as rates and percentiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from tricorn.metrics.scoreboard import histogram_edges, percentile
from tricorn.record import Record
from tricorn_tools.top.look import Counted, Look, Route

IMPOSSIBLE = 10**12
"""So many events in a second are none: what stands in the page is rubbish."""
_NANOSECONDS = 10**9
_EDGES, _GIL_EDGES = histogram_edges()


class Times(Record):
    """Percentiles of what ended in the interval, in seconds."""

    count: int
    p50: float
    p95: float
    p99: float


class Change(Record):
    """Rates of a worker. None means unknown: nothing to compare with, nothing happened, or the page is invalid."""

    seconds: float
    requests: float | None
    """A second, as the other rates."""
    client_errors: float | None
    """Responses 4xx among all."""
    server_errors: float | None
    shed: float | None
    """Requests answered 503 by the server, a second."""
    cpu: float | None
    """Processors in use."""
    blocked: float | None
    """Share of the interval; None where no figure of the page tells."""
    total: Times | None
    queue: Times | None
    gil: Times | None
    """Its buckets are few, so that each percentile is the upper edge of one."""


class RouteChange(Record):
    """Rates of a route. None means unknown, as in `Change`."""

    requests: float | None = None
    """A second."""
    server_errors: float | None = None
    """Responses 5xx among all."""
    load: float | None = None
    """Seconds of its requests in a second: how many of them ran at a time, on average."""
    total: Times | None = None
    cpu: float | None = None
    """Share of the time that is accounted for; so are the next three."""
    blocked: float | None = None
    yielded: float | None = None
    delayed: float | None = None


class Changes(Record):
    seconds: float
    all: Change
    workers: Mapping[int, Change]
    """Changes by worker number."""
    happened: tuple[str, ...] = ()
    """Events the arbiter has counted meanwhile: reloads and workers that ended."""
    routes: Mapping[str, RouteChange] = {}
    """Changes by route name."""


def between(before: Look | None, now: Look) -> Changes:
    seconds = now.at - before.at if before else 0.0
    earlier = {worker.entry.number: worker for worker in before.workers} if before else {}
    workers = {}
    for worker in now.workers:
        then = earlier.get(worker.entry.number)
        workers[worker.entry.number] = of(
            then.page.counted if then and then.page else None,
            worker.page.counted if worker.page else None,
            seconds,
        )
    happened = _happened(before, now) if before else ()
    totals = of(before.totals if before else None, now.totals, seconds)
    return Changes(seconds, totals, workers, happened, _routes(before, now, seconds))


def _routes(before: Look | None, now: Look, seconds: float) -> dict[str, RouteChange]:
    """One that is new since the last look began with nothing, if routes were looked at then."""
    if before is None or before.routes is None or now.routes is None or seconds <= 0:
        return {}
    earlier = {route.name: route for route in before.routes}
    nothing = Route("", 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ())
    return {route.name: _of_route(earlier.get(route.name, nothing), route, seconds) for route in now.routes}


def _of_route(before: Route, now: Route, seconds: float) -> RouteChange:
    requests, errors = _grown(before.requests, now.requests, seconds), _grown(before.errors, now.errors, seconds)
    spent, told = now.seconds - before.seconds, now.told - before.told

    def part(old: float, new: float) -> float | None:
        return (new - old) / told if told > 0 and 0 <= new - old <= told * 1.01 else None

    return RouteChange(
        requests=None if requests is None else requests / seconds,
        server_errors=errors / requests if requests and errors is not None else None,
        load=spent / seconds if 0 <= spent <= IMPOSSIBLE else None,
        total=_spread(before.buckets or [0] * len(now.buckets), now.buckets, _GIL_EDGES),
        cpu=part(before.cpu, now.cpu),
        blocked=part(before.blocked, now.blocked),
        yielded=part(before.yielded, now.yielded),
        delayed=part(before.delayed, now.delayed),
    )


def of(before: Counted | None, now: Counted | None, seconds: float) -> Change:
    if before is None or now is None or seconds <= 0:
        return Change(seconds, *[None] * 9)

    def rate(*names: str) -> float | None:
        grown = [_grown(before.figures.get(name, 0), now.figures.get(name, 0), seconds) for name in names]
        return None if None in grown else sum(count for count in grown if count is not None) / seconds

    requests = rate("requests")
    cpu = _grown(before.figures.get("cpu_nanoseconds", 0), now.figures.get("cpu_nanoseconds", 0), seconds * 1e6)
    classes = [_grown(old, new, seconds) for old, new in zip(before.statuses, now.statuses, strict=True)]
    return Change(
        seconds=seconds,
        requests=requests,
        client_errors=_share(classes, 3),
        server_errors=_share(classes, 4),
        shed=rate("queue_full", "queue_late", "leaving"),
        cpu=None if cpu is None else cpu / _NANOSECONDS / seconds,
        blocked=_blocked(before, now, seconds),
        total=_times(before, now, "total", _EDGES),
        queue=_times(before, now, "queue", _EDGES),
        gil=_times(before, now, "gil", _GIL_EDGES, bound),
    )


def bound(counts: Sequence[int], edges: Sequence[int], share: float) -> float:
    """Seconds that this share of what is counted did not exceed: the upper edge of a bucket."""
    below = list(accumulate(counts))
    index = next((index for index, count in enumerate(below) if counts[index] and count >= share * below[-1]), -2)
    return edges[index + 1] / _NANOSECONDS


def _happened(before: Look, now: Look) -> tuple[str, ...]:
    reloads = [result for result, count in now.reloads.items() if count > before.reloads.get(result, 0)]
    ended = {reason: count - before.exits.get(reason, 0) for reason, count in now.exits.items()}
    return (
        *(_RELOADS.get(result, f"reload {result}") for result in reloads),
        *(f"{count} worker{'s' * (count > 1)} exited: {reason}" for reason, count in ended.items() if count > 0),
    )


_RELOADS = {
    "committed": "reload committed",
    "refused": "reload rejected, nothing changed; see the log",
    "rolled_back": "reload rolled back, nothing changed; see the log",
}


def _grown(old: int, new: int, seconds: float) -> int | None:
    return new - old if 0 <= new - old <= IMPOSSIBLE * max(seconds, 1.0) else None


def _share(classes: Sequence[int | None], index: int) -> float | None:
    known = [count for count in classes if count is not None]
    one, responses = classes[index], sum(known)
    return one / responses if one is not None and len(known) == len(classes) and responses else None


def _times(
    before: Counted,
    now: Counted,
    name: str,
    edges: Sequence[int],
    value: Callable[[Sequence[int], Sequence[int], float], float] = percentile,
) -> Times | None:
    old, new = before.histograms.get(name), now.histograms.get(name)
    return None if old is None or new is None else _spread(old, new, edges, value)


def _spread(
    old: Sequence[int],
    new: Sequence[int],
    edges: Sequence[int],
    value: Callable[[Sequence[int], Sequence[int], float], float] = percentile,
) -> Times | None:
    grown = [later - earlier for earlier, later in zip(old, new, strict=True)]
    if any(not 0 <= count <= IMPOSSIBLE for count in grown) or not any(grown):
        return None
    p50, p95, p99 = (value(grown, edges, share) for share in (0.5, 0.95, 0.99))
    return Times(sum(grown), p50, p95, p99)


def _blocked(before: Counted, now: Counted, seconds: float) -> float | None:
    if not now.figures.get(LOOP_WORK):
        return None
    nanos = _grown(before.figures.get(BLOCKED, 0), now.figures.get(BLOCKED, 0), seconds)
    return None if nanos is None else min(nanos / _NANOSECONDS / seconds, 1.0)


LOOP_WORK = "loop_work_nanoseconds"
"""Time an event loop or a hub did not wait for events; zero where it is not measured."""
BLOCKED = "loop_blocked_nanoseconds"
"""Part of it in which it neither computed nor waited for a processor."""


UNKNOWN = of(None, None, 0.0)
"""Change of a process that has no page."""
