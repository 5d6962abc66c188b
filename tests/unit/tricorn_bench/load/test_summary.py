"""The report: hey's sections, and what makes figures doubtful."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn_bench.load import Histogram, Result, hgrm, summary


def result(**changes: Any) -> Result:
    """Ten requests of 1, 2, … 10 ms."""
    counts = [0] * 8000
    for millisecond in range(1, 11):
        value = millisecond * 1000
        doubling = max(0, value.bit_length() - 11)
        counts[(doubling << 10) + (value >> doubling)] += 1
    figures: dict[str, Any] = {
        "schema": "tricorn-load/1",
        "seconds": 0.5,
        "sent": 11,
        "answered": 10,
        "rate": 20.0,
        "bytes": {"sent": 400, "received": 900, "body": 125},
        "latency": {"min": 0.001, "mean": 0.0055, "p50": 0.005, "p99": 0.01, "max": 0.01, "standard_deviation": 0.003},
        "histogram": Histogram(counts).encode(),
        "statuses": {"200": 9, "404": 1},
        "errors": {"timeout": 1},
        **dict.fromkeys(("late", "unsent", "unanswered", "redirected", "retried"), 0),
        "stopped": False,
        "generator": {
            "cpu_seconds": 0.011,
            "cpu_share": 0.02,
            "busy_share": 0.05,
            "threads": 1,
            "send_lag_p99": 0.0001,
            "bottleneck": False,
        },
    }
    return Result({**figures, **changes})


def test_the_sections_are_heys() -> None:
    said = summary.text(result())
    for part in (
        "\nSummary:\n  Total:\t0.5000 secs\n  Slowest:\t0.0100 secs\n  Fastest:\t0.0010 secs\n",
        "  Average:\t0.0055 secs\n  Requests/sec:\t20.0000\n",
        "  Requests/sec:\t20.0000\n  \n  Total data:\t125 bytes\n  Size/request:\t12 bytes\n\n",
        f"Response time histogram:\n  0.001 [1]\t|{'■' * 40}\n  0.002 [0]\t|\n  0.003 [1]\t|■",
        "  0.010 [1]\t|",
        "Latency distribution:\n  10% in 0.0010 secs\n",
        "  99% in 0.0100 secs\n\nStatus code distribution:\n  [200]\t9 responses\n  [404]\t1 responses\n\n",
        "Error distribution:\n  [1]\tno complete response in time\n",
        "Generator:\n  CPU:\t0.0110 secs, 1000.0 µs each, 2% of a CPU\n",
    ):
        assert part in said
    assert list(summary.warnings(result())) == []


def test_handshakes_have_a_section() -> None:
    latency = {"p50": 0.002, "p99": 0.0041}
    tls = {
        "full": {"count": 3, "latency": latency},
        "resumed": {"count": 0, "latency": {}},
        "versions": {"TLSv1.3": 3},
        "suites": {"TLS_AES_128_GCM_SHA256": 1, "TLS_AES_256_GCM_SHA384": 2},
        "groups": {},
        "reasons": {"the alert CertificateRequired": 2},
    }
    said = summary.text(result(tls=tls, errors={"alert": 2}))
    assert "  [2]\tthe server sent a TLS alert\n" in said
    assert (
        "TLS:\n  Full:\t3 handshakes, p50 2.00 ms, p99 4.10 ms\n  Resumed:\t0 handshakes\n  Version:\tTLSv1.3\n"
        "  Suite:\tTLS_AES_128_GCM_SHA256 (1), TLS_AES_256_GCM_SHA384 (2)\n  [2]\tthe alert CertificateRequired\n"
    ) in said
    assert "TLS:" not in summary.text(result())


def test_errors_of_http2_have_a_section() -> None:
    assert "HTTP/2 errors:" not in summary.text(result())
    said = summary.text(result(http2_errors={"GOAWAY: ENHANCE_YOUR_CALM": 2}, errors={"refused": 3}))
    assert "HTTP/2 errors:\n  [2]\tGOAWAY: ENHANCE_YOUR_CALM\n" in said
    assert "  [3]\tthe server refused the stream of the request twice\n" in said


def test_every_latency_stands_in_a_bar() -> None:
    marks = [0.001 + 0.0009 * step for step in range(11)]
    counts = summary.bars(result().histogram, marks)
    assert (sum(counts), counts[0], counts[-1]) == (10, 1, 1)


def test_nothing_was_answered() -> None:
    said = summary.text(result(answered=0, rate=0.0, latency={}, histogram=Histogram().encode(), statuses={}))
    assert "Latency" not in said
    assert "Error distribution:\n  [1]\t" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unsent": 3}, "3 requests were not sent"),
        ({"unanswered": 2}, "2 requests were still running at the end"),
        (
            {"generator": {**result().generator, "bottleneck": True, "busy_share": 0.97}},
            "the load generator was the bottleneck",
        ),
        (
            {"generator": {**result().generator, "bottleneck": True, "send_lag_p99": 0.02}},
            "1 % of events waited 20.0 ms for it",
        ),
    ],
)
def test_what_makes_figures_doubtful(changes: dict[str, Any], words: str) -> None:
    (warning,) = summary.warnings(result(**changes))
    assert words in warning


def test_percentiles_for_the_plotter() -> None:
    lines = hgrm.text(result()).splitlines()
    assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    assert lines[2].split() == ["1.000", "0.000000000000", "0", "1.00"]
    rows = [row.split() for row in lines[2:-3]]
    assert [float(row[0]) for row in rows] == sorted(float(row[0]) for row in rows)
    assert rows[-1] == ["10.007", "1.000000000000", "10", "inf"]
    assert lines[-2].split() == ["#[Max", "=", "10.000,", "Total", "count", "=", "10]"]


def test_a_result_of_another_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a result of the schema tricorn-load/1, got 'x'"):
        Result({"schema": "x"})
