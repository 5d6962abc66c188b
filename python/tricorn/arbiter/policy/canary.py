"""Judges a few workers of a new generation by how the old one serves the same traffic (`canary`). Pure arithmetic.

Both samples are of the same seconds, and the kernel and the queue give each worker requests of the same mix. So no
number has to be known of the application: the question is whether the difference is larger than chance explains, and
large enough to matter.

    errors   two-proportion z-test; and a percentage point more; and some of them
    times    Mann-Whitney over the buckets of the histogram; and a median that is longer by a third
             share of the requests beyond the old 95th percentile; and a 95th percentile that is longer by half

The rates of wrong verdicts are in tests/unit/arbiter/policy/test_canary.py, a simulation.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from tricorn.record import Record


class Plan(Record):
    """A canary as it was asked for: by the configuration, or with the reload."""

    size: int | str
    """Workers, or a share of those wanted: `10%`."""
    seconds: float
    """The time for which they are watched."""
    requests: int
    """Requests that make a verdict; with fewer the log says so."""

    def of(self, workers: int) -> int:
        """Returns how many of so many workers are canaries."""
        if isinstance(self.size, int):
            return min(self.size, workers)
        return math.ceil(workers * int(self.size.removesuffix("%")) / 100)


class Sample(Record):
    """Work of the workers of a generation since the watch began."""

    workers: int = 0
    requests: int = 0
    """Requests that the application has completed."""
    failed: int = 0
    """Responses with status 5xx, and requests in which the application failed; not those refused by the queue."""
    late: int = 0
    """Calls that lasted longer than `request_timeout`."""
    bytes_out: int = 0
    lent: int = 0
    """Requests that another worker answers over this one's connections: their bytes are not where they are counted."""
    times: tuple[int, ...] = ()
    """Requests by how long the application took, since the warm-up: for each bucket of `edges`."""
    edges: tuple[int, ...] = ()
    """Nanoseconds. A bucket lies between its edge and the next."""

    def percentile(self, share: float) -> float:
        """Returns the seconds below which this share of the times lies; 0 without any."""
        below = list(accumulate(self.times))
        if not below or not below[-1]:
            return 0.0
        wanted = share * below[-1]
        index = bisect_left(below, wanted)
        while not self.times[index]:
            index += 1  # a share of 0 lies in the first bucket in use
        low, high, count = self.edges[index], self.edges[index + 1], self.times[index]
        return (low + (high - low) * (wanted - below[index] + count) / count) / 1e9

    @property
    def failing(self) -> float:
        """The share of the requests that failed."""
        return self.failed / self.requests if self.requests else 0.0


class Look(Record):
    """Both generations at one moment of the watch."""

    old: Sample
    new: Sample
    timed: float = 0.0
    """Seconds for which times have been counted."""


class Watch(Record):
    """The part of a trial in which only canaries of the new generation serve."""

    plan: Plan
    workers: int
    """The number of canaries."""
    since: float | None = None
    """The time when all of them served, and the watch began."""
    look: Look | None = None
    """The last one."""
    warned: bool = False
    """The warning about responses that are shorter than before was logged."""

    def is_over(self, now: float) -> bool:
        return self.since is not None and now - self.since >= self.plan.seconds


def judge(look: Look, plan: Plan) -> str | None:
    """Returns why the new generation is worse than the old one; None: nothing is known against it."""
    return _fails_more(look) or _is_slower(look, plan)


def is_shorter(look: Look) -> bool:
    """Whether the responses are half as long as before: pages may be empty."""
    old, new = look.old, look.new
    if old.lent or new.lent or min(old.requests, new.requests) < LEAST_TIMED:
        return False
    return new.bytes_out / new.requests < old.bytes_out / old.requests / 2


def described(look: Look) -> str:
    """Describes the new generation beside the old one."""
    failed = f"{look.new.failing:.1%} of {look.new.requests} requests failed (old: {look.old.failing:.1%})"
    if not any(look.new.times):
        return failed
    return f"{failed}, median {told(look.new.percentile(0.5))} (old: {told(look.old.percentile(0.5))})"


def _fails_more(look: Look) -> str | None:
    old, new = look.old, look.new
    if new.failed < LEAST_FAILED:
        return None
    if old.requests < LEAST_COMPARED:
        is_worse = new.failing >= MOSTLY  # there is nothing to compare with
    else:
        z = two_proportions(new.failed, new.requests, old.failed, old.requests)
        is_worse = new.failing > old.failing + MORE_FAILED and z > Z_ERRORS
    if not is_worse:
        return None
    failed = f"{new.failed} of {new.requests} requests of the new workers failed"
    return f"{failed} ({new.failing:.1%}), and {old.failed} of {old.requests} of the old ones ({old.failing:.1%})"


def _is_slower(look: Look, plan: Plan) -> str | None:
    old, new = look.old, look.new
    least = max(LEAST_EVER, min(LEAST_TIMED, plan.requests // 2))
    if look.timed < plan.seconds * TIMED_PART or min(sum(old.times), sum(new.times)) < least:
        return None
    for name, share, longer, test, z in COMPARISONS:
        before, after = old.percentile(share), new.percentile(share)
        is_longer = after > before * longer and after > before + NOTICEABLE
        if is_longer and test(new.times, old.times) > z:
            return f"the new workers are slower: {name} {told(after)}, of the old ones {told(before)}"
    return None


def two_proportions(hits: int, of: int, other_hits: int, of_others: int) -> float:
    """Returns by how many standard errors the first share is larger, were both equal."""
    pooled = (hits + other_hits) / (of + of_others)
    error = math.sqrt(pooled * (1 - pooled) * (1 / of + 1 / of_others))
    return (hits / of - other_hits / of_others) / error if error else 0.0


def mann_whitney(counts: Sequence[int], others: Sequence[int]) -> float:
    """Returns by how many standard errors the values of the first histogram are larger, were both equal."""
    size, size_of_others = sum(counts), sum(others)
    total = size + size_of_others
    larger, below, tied = 0.0, 0, 0
    for count, other in zip(counts, others, strict=True):
        larger += count * (below + other / 2)
        below += other
        tied += (count + other) ** 3 - (count + other)
    variance = size * size_of_others / 12 * (total + 1 - tied / (total * (total - 1)))
    return (larger - size * size_of_others / 2) / math.sqrt(variance) if variance > 0 else 0.0


def beyond(counts: Sequence[int], others: Sequence[int]) -> float:
    """Compares the shares that lie beyond the bucket in which the others' 95th percentile lies."""
    first = bisect_left(list(accumulate(others)), 0.95 * sum(others)) + 1
    return two_proportions(sum(counts[first:]), sum(counts), sum(others[first:]), sum(others))


def told(seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"


LEAST_FAILED = 5
"""Requests that have to fail before errors mean anything."""
LEAST_COMPARED = 20
"""Requests of the old generation without which there is nothing to compare errors with."""
MOSTLY = 0.5
"""The share of failures that is bad whatever the old generation does."""
MORE_FAILED = 0.01
Z_ERRORS = 4.5
"""There is a look each second: by z > 3 in one of them 1.5 % of the reloads of equal code would be rolled back."""

LEAST_TIMED = 200
LEAST_EVER = 30
"""Requests of each generation without which times are not compared, and the least of them whatever is configured."""
TIMED_PART = 0.25
"""The part of `canary_time` without which they are not, either: on a busy machine all workers have slow seconds."""
NOTICEABLE = 0.0005
"""Seconds. Some microseconds more are a thread that was asleep, or a cache that was cold."""
COMPARISONS = (("median", 0.5, 1.3, mann_whitney, 4.0), ("95th percentile", 0.95, 1.5, beyond, 5.0))
"""The figures compared, the factor by which one has to be longer, and the test that has to agree, with its least z.

Buckets are up to a third wide, so that a time that crosses an edge by little seems 1.296 times as long at most.
"""
