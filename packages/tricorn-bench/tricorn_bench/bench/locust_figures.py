"""locust's statistics as the figures of any other load generator, and each of its names apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from tricorn.record import Record
from tricorn_bench.bench.result import Load, Round
from tricorn_bench.load import Histogram

ROUNDED = (
    "Latencies are locust's: rounded to a millisecond, to two digits above 100 ms. They hold the client's own time in "
    "Python, and failed requests."
)
SHARES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
LONGEST_ERROR = 160
"""Characters of an error that are kept."""


class Name(TypedDict):
    """One line of locust's statistics."""

    name: str
    method: str
    requests: int
    failures: int
    mean: float
    histogram: str


class Used(Record):
    """Resources that locust itself used."""

    cpu_seconds: float
    bottleneck: bool


def load_of(told: Mapping[str, Any], used: Used) -> Load:
    """`told` is what `locust_listener.py` writes. `answered` are requests that locust calls no failures."""
    entries: Sequence[Mapping[str, Any]] = [one for one in told["entries"] if one["requests"]]
    names = [_name(one) for one in entries]
    whole = Histogram()
    for name in names:
        whole = whole.merge(Histogram.decode(name["histogram"]))
    sent, failures = (sum(one[key] for one in entries) for key in ("requests", "failures"))
    errors: dict[str, int] = {}
    for one in told["failures"]:
        text = f"{one['method']} {one['name']}: {one['error']}".strip()[:LONGEST_ERROR]
        errors[text] = errors.get(text, 0) + one["occurrences"]
    return {
        "seconds": max(told["ended"] - told["begun"], 1e-3),
        "sent": sent,
        "answered": sent - failures,
        "latency": _latency(entries, whole, sent),
        "histogram": whole.encode(),
        "statuses": {},
        "errors": errors,
        "late": 0,
        "unsent": 0,
        "generator": {
            "program": f"locust {told['version']}",
            "cpu_seconds": used.cpu_seconds,
            "bottleneck": used.bottleneck,
            "names": names,
            "exceptions": [{"message": one["message"], "count": one["count"]} for one in told["exceptions"]],
        },
    }


def _name(entry: Mapping[str, Any]) -> Name:
    times = Histogram.of((float(time) / 1e3, count) for time, count in entry["response_times"])
    return {
        "name": entry["name"],
        "method": entry["method"],
        "requests": entry["requests"],
        "failures": entry["failures"],
        "mean": entry["total_response_time"] / entry["requests"] / 1e3,
        "histogram": times.encode(),
    }


def _latency(entries: Sequence[Mapping[str, Any]], whole: Histogram, sent: int) -> dict[str, float]:
    """Seconds. The extremes and the mean are exact, percentiles rounded as locust rounds them."""
    if not sent:
        return {}
    least = min(one["min_response_time"] for one in entries) / 1e3
    most = max(one["max_response_time"] for one in entries) / 1e3
    return {
        "min": least,
        "mean": sum(one["total_response_time"] for one in entries) / sent / 1e3,
        **{key: min(max(milliseconds(whole, share) / 1e3, least), most) for key, share in SHARES.items()},
        "max": most,
    }


def milliseconds(times: Histogram, share: float) -> int:
    """A percentile; a bucket's end lies above the whole millisecond that locust has."""
    return int(times.percentile(share) * 1e3)


class NameSum(Record):
    """A name in several rounds."""

    method: str
    name: str
    requests: int
    failures: int
    mean: float
    times: Histogram


def names_of(rounds: Sequence[Round]) -> list[NameSum]:
    """Empty where the load was not locust's."""
    found: dict[tuple[str, str], list[Name]] = {}
    for one in rounds:
        for name in one["load"]["generator"].get("names", ()):
            found.setdefault((name["method"], name["name"]), []).append(name)
    return [_sum(method, name, several) for (method, name), several in found.items()]


def _sum(method: str, name: str, several: Sequence[Name]) -> NameSum:
    requests = sum(one["requests"] for one in several)
    times = Histogram()
    for one in several:
        times = times.merge(Histogram.decode(one["histogram"]))
    mean = sum(one["mean"] * one["requests"] for one in several) / requests
    return NameSum(method, name, requests, sum(one["failures"] for one in several), mean, times)


def remarks(rounds: Sequence[Round]) -> list[str]:
    """Returns a sentence for each exception that the locustfile raised."""
    messages: dict[str, int] = {}
    for one in rounds:
        for raised in one["load"]["generator"].get("exceptions", ()):
            messages[raised["message"]] = messages.get(raised["message"], 0) + raised["count"]
    return [f"The locustfile raised {count:,} × {message}." for message, count in messages.items()]
