"""The percentile text of HdrHistogram (.hgrm), which its plotter and wrk2's readers read. Values are milliseconds."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tricorn_bench.load.result import Result

_TICKS = 5
"""Lines for each halving of the distance to 100 %."""


def text(result: Result) -> str:
    histogram, latency = result.histogram, result.latency
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>16}", ""]
    total = histogram.count
    for percent in _percents(total):
        share = percent / 100
        value = histogram.percentile(percent) * 1e3
        inverse = "inf" if percent == 100 else f"{1 / (1 - share):.2f}"
        lines.append(f"{value:12.3f} {share:14.12f} {math.ceil(total * share):10d} {inverse:>16}")
    mean, spread = latency.get("mean", 0.0) * 1e3, latency.get("standard_deviation", 0.0) * 1e3
    lines += [
        f"#[Mean    = {mean:12.3f}, StdDeviation   = {spread:12.3f}]",
        f"#[Max     = {latency.get('max', 0.0) * 1e3:12.3f}, Total count    = {total:12d}]",
        f"#[Buckets = {22:12d}, SubBuckets     = {2048:12d}]",
    ]
    return "\n".join(lines) + "\n"


def _percents(total: int) -> Iterator[float]:
    """Yields percentages from 0 to 100, ever closer, as long as there is a value for each."""
    percent = 0.0
    while total and total * (1 - percent / 100) >= 1:
        yield percent
        halvings = math.floor(math.log2(100 / (100 - percent))) + 1
        percent += 100 / (_TICKS * 2**halvings)
    if total:
        yield 100.0
