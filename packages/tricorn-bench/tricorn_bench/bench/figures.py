"""The figures of a report, one record each: what is read from rounds, its unit, and which way is better."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Literal

from tricorn.record import Record
from tricorn_bench.bench.result import Round, answers
from tricorn_bench.load import Histogram

Better = Literal["more", "less"]
MIB = 2**20


class Figure(Record):
    key: str
    """Name for `--fail-if`."""
    label: str
    unit: str
    read: Callable[[Sequence[Round]], float | None]
    """Reads the value of several rounds together; None if they do not have it."""
    better: Better = "less"
    digits: int = 1
    note: str = ""
    """Explanation for the page."""

    @property
    def header(self) -> str:
        return f"{self.label} {self.unit}".rstrip()

    def per_round(self, rounds: Sequence[Round]) -> list[float]:
        values = (self.read([one]) for one in rounds)
        return [value for value in values if value is not None]

    def shown(self, value: float | None) -> str:
        if value is None:
            return "–"
        digits = self.digits if abs(value) < 1000 else 0
        return f"{value:,.{digits}f}"


def failed(one: Round) -> int:
    """Requests without an answer, and answers that tell of a failure."""
    return bad_answers(one) + sum(one["load"]["errors"].values())


def bad_answers(one: Round) -> int:
    return sum(count for status, count in one["load"]["statuses"].items() if status[:1] not in ("1", "2", "3"))


def rate(rounds: Sequence[Round]) -> float | None:
    """Good answers only: a server that refuses quickly is not fast."""
    seconds = sum(one["load"]["seconds"] for one in rounds)
    return (answers(rounds) - sum(map(bad_answers, rounds))) / seconds if seconds else None


def cpu_of(part: Literal["total", "user", "system"]) -> Callable[[Sequence[Round]], float | None]:
    def read(rounds: Sequence[Round]) -> float | None:
        count = answers(rounds)
        return sum(one["cpu"][part] for one in rounds) / count * 1e6 if count else None

    return read


def cores(rounds: Sequence[Round]) -> float | None:
    seconds = sum(one["load"]["seconds"] for one in rounds)
    return sum(one["cpu"]["total"] for one in rounds) / seconds if seconds else None


def merged(rounds: Sequence[Round]) -> Histogram:
    """All latencies of some rounds."""
    whole = Histogram()
    for one in rounds:
        whole = whole.merge(Histogram.decode(one["load"]["histogram"]))
    return whole


def percentile(share: float, key: str) -> Callable[[Sequence[Round]], float | None]:
    """Returns a reader of a percentile in milliseconds, for several rounds from all of their requests."""

    def read(rounds: Sequence[Round]) -> float | None:
        if not answers(rounds):
            return None
        if len(rounds) == 1:
            return rounds[0]["load"]["latency"][key] * 1e3
        return merged(rounds).percentile(share) * 1e3

    return read


def slowest(rounds: Sequence[Round]) -> float | None:
    return max((one["load"]["latency"]["max"] * 1e3 for one in rounds if one["load"]["answered"]), default=None)


def memory_of(kind: Literal["pss", "uss", "rss"]) -> Callable[[Sequence[Round]], float | None]:
    def read(rounds: Sequence[Round]) -> float | None:
        sums = [sum(process[kind] for process in one["processes"]) for one in rounds]
        return statistics.median(sums) / MIB if sums else None

    return read


def pss_per_worker(rounds: Sequence[Round]) -> float | None:
    """Every process but the first counts as a worker, where there are several."""
    means = []
    for one in rounds:
        several = one["processes"][1:] or one["processes"]
        if several:
            means.append(statistics.fmean(process["pss"] for process in several))
    return statistics.median(means) / MIB if means else None


def threads(rounds: Sequence[Round]) -> float | None:
    return max((sum(process["threads"] for process in one["processes"]) for one in rounds), default=None)


def most(key: Literal["connections", "database"]) -> Callable[[Sequence[Round]], float | None]:
    def read(rounds: Sequence[Round]) -> float | None:
        return max((value for one in rounds if (value := one[key]) is not None), default=None)

    return read


FIGURES = (
    Figure("rate", "requests/s", "", rate, "more", 0, "good answers in a second"),
    Figure("cpu", "CPU", "µs/request", cpu_of("total"), note="user and system time of all processes of the server"),
    Figure("user", "user", "µs/request", cpu_of("user"), note="the part of it outside the kernel"),
    Figure("system", "system", "µs/request", cpu_of("system"), note="the part of it inside the kernel"),
    Figure("cores", "busy", "cores", cores, digits=2, note="CPU time in a second"),
    Figure("p50", "p50", "ms", percentile(50, "p50"), digits=2, note="half of the requests take no longer"),
    Figure("p90", "p90", "ms", percentile(90, "p90"), digits=2),
    Figure("p95", "p95", "ms", percentile(95, "p95"), digits=2),
    Figure("p99", "p99", "ms", percentile(99, "p99"), digits=2),
    Figure("p99.9", "p99.9", "ms", percentile(99.9, "p99.9"), digits=2),
    Figure("max", "slowest", "ms", slowest, digits=2),
    Figure(
        "errors",
        "errors",
        "",
        lambda rounds: float(sum(map(failed, rounds))),
        digits=0,
        note="requests without an answer, and answers with status 400 and above",
    ),
    Figure("pss", "PSS", "MiB", memory_of("pss"), note="pages that n processes share count 1/n each"),
    Figure("uss", "USS", "MiB", memory_of("uss"), note="pages of one process alone"),
    Figure("rss", "RSS", "MiB", memory_of("rss"), note="shared pages count in every process"),
    Figure("worker", "PSS per worker", "MiB", pss_per_worker),
    Figure("threads", "threads", "", threads, digits=0),
    Figure("connections", "connections", "", most("connections"), digits=0, note="the most at once"),
    Figure("database", "database connections", "", most("database"), digits=0, note="the most at once"),
)

BY_KEY = {figure.key: figure for figure in FIGURES}

SHORT = ("rate", "cpu", "p50", "p90", "p99", "max", "errors", "pss", "threads", "database")
"""Figures that fit into a terminal; the last one exists with `--db` only."""
