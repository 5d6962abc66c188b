"""Formats the report: hey's sections, and those that hey does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tricorn_bench.load.histogram import Histogram
from tricorn_bench.load.result import Result

PERCENTAGES = (10, 25, 50, 75, 90, 95, 99)
BUSY = 0.9
_BARS, _WIDTH = 10, 40
_ERRORS = {
    "connect": "could not connect",
    "timeout": "no complete response in time",
    "closed": "the server closed the connection before the response was complete",
    "malformed": "not an HTTP response",
    "reset": "the server reset the stream of the request",
    "refused": "the server refused the stream of the request twice",
    "redirects": "stopped after 10 redirects",
    "ports": "no local port available: wait a minute, or use keep-alive",
    "echo": "the WebSocket failed, or echoed another message",
    "certificate": "the certificate of the server was rejected",
    "alert": "the server sent a TLS alert",
    "handshake": "the TLS handshake timed out",
    "tls": "not TLS",
    "alpn": "the server did not agree to HTTP/2",
}


def text(result: Result) -> str:
    """Returns the whole report, as `tricorn load` prints it."""
    sections = [_summary(result)]
    if result.answered:
        sections += [_bars(result), _distribution(result), _statuses(result)]
    if result.errors:
        sections.append(_errors(result))
    if result.http2_errors:
        sections.append(_http2(result.http2_errors))
    if result.tls is not None:
        sections.append(_tls(result.tls))
    sections.append(_generator(result))
    return "\n".join(sections)


def warnings(result: Result) -> Iterator[str]:
    """Yields a sentence for each reason to doubt the results."""
    generator = result.generator
    if generator["bottleneck"] and generator["busy_share"] > BUSY:
        yield (
            f"the load generator was the bottleneck: it ran, or waited for a CPU, {generator['busy_share']:.0%} of the "
            "time. The server may be faster. Use more threads (--cpus 2) and a free CPU."
        )
    elif generator["bottleneck"]:
        yield (
            f"the load generator was late: 1 % of events waited {generator['send_lag_p99'] * 1e3:.1f} ms for it, "
            "which is included in the latencies above. Other processes used its CPU."
        )
    if result["unsent"]:
        yield f"{result['unsent']} requests were not sent, because all connections were busy. Raise -c."
    if result["unanswered"]:
        yield f"{result['unanswered']} requests were still running at the end and are not included."


def _summary(result: Result) -> str:
    latency = result.latency
    lines = ["", "Summary:", f"  Total:\t{result.seconds:.4f} secs"]
    if latency:
        lines += [
            f"  Slowest:\t{latency['max']:.4f} secs",
            f"  Fastest:\t{latency['min']:.4f} secs",
            f"  Average:\t{latency['mean']:.4f} secs",
        ]
    lines += [f"  Requests/sec:\t{result.rate:.4f}", "  "]
    body = result["bytes"]["body"]
    if body and result.answered:
        lines += [f"  Total data:\t{body} bytes", f"  Size/request:\t{body // result.answered} bytes"]
    for name, what in (
        ("late", "sent more than 1 ms after their scheduled time"),
        ("unsent", "scheduled and not sent"),
        ("unanswered", "without a response at the end"),
        ("redirected", "redirects followed"),
        ("retried", "sent again on another connection"),
    ):
        if result[name]:
            lines.append(f"  {name.capitalize()}:\t{result[name]} {what}")
    return "\n".join([*lines, ""])


def _bars(result: Result) -> str:
    fastest, slowest = result.latency["min"], result.latency["max"]
    marks = [fastest + (slowest - fastest) * step / _BARS for step in range(_BARS + 1)]
    counts = bars(result.histogram, marks)
    most = max(counts)
    rows = (
        f"  {mark:.3f} [{count}]\t|{'■' * ((count * _WIDTH + most // 2) // most)}"
        for mark, count in zip(marks, counts, strict=True)
    )
    return "\n".join(["Response time histogram:", *rows, "", ""])


def bars(histogram: Histogram, marks: list[float]) -> list[int]:
    """Counts the latencies up to each mark and above the one before; the last mark also has all that are above it."""
    counts = [0] * len(marks)
    place = 0
    for bucket in histogram.buckets():
        while place < len(marks) - 1 and bucket.end > marks[place] * ROUNDED:
            place += 1
        counts[place] += bucket.number
    return counts


ROUNDED = 1.0005
"""Half a bucket: the end of the bucket of a latency lies above the latency itself."""


def _distribution(result: Result) -> str:
    highest = result.latency["max"]
    rows = (
        f"  {percentage}% in {min(result.histogram.percentile(percentage), highest):.4f} secs"
        for percentage in PERCENTAGES
    )
    return "\n".join(["Latency distribution:", *rows, ""])


def _statuses(result: Result) -> str:
    rows = (f"  [{status}]\t{count} responses" for status, count in sorted(result.statuses.items()))
    return "\n".join(["Status code distribution:", *rows, ""])


def _errors(result: Result) -> str:
    rows = (f"  [{count}]\t{_ERRORS.get(kind, kind)}" for kind, count in result.errors.items())
    return "\n".join(["Error distribution:", *rows, ""])


def _http2(errors: Mapping[str, int]) -> str:
    rows = (f"  [{count}]\t{error}" for error, count in errors.items())
    return "\n".join(["HTTP/2 errors:", *rows, ""])


def _tls(tls: Mapping[str, Any]) -> str:
    lines = ["TLS:"]
    for name in ("full", "resumed"):
        count, latency = tls[name]["count"], tls[name]["latency"]
        took = f", p50 {latency['p50'] * 1e3:.2f} ms, p99 {latency['p99'] * 1e3:.2f} ms" if latency else ""
        lines.append(f"  {name.capitalize()}:\t{count} handshakes{took}")
    for title, name in (("Version", "versions"), ("Suite", "suites"), ("Group", "groups")):
        agreed = ", ".join(f"{what} ({count})" if len(tls[name]) > 1 else what for what, count in tls[name].items())
        if agreed:
            lines.append(f"  {title}:\t{agreed}")
    lines += [f"  [{count}]\t{reason}" for reason, count in tls["reasons"].items()]
    return "\n".join([*lines, ""])


def _generator(result: Result) -> str:
    generator = result.generator
    cpu, done = generator["cpu_seconds"], result.answered + result.failed
    each = f", {cpu / done * 1e6:.1f} µs each" if done else ""
    share = f"{generator['cpu_share']:.0%} of {'a' if generator['threads'] == 1 else 'the busiest'} CPU"
    return f"Generator:\n  CPU:\t{cpu:.4f} secs{each}, {share}\n"
