"""HDR histograms, as HdrHistogram has them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tricorn_bench.load import Histogram
from tricorn_bench.load.histogram import _highest, _lowest

# Encoded by the crate hdrhistogram: 200 latencies, of which it says p50 3163, p90 9583, p99 9751 and maximum 9759 µs.
FOREIGN = (
    "HISTFAAAAJl4nE2IPQ4BURSF73zvd4xE8WYiEpEosACF0grUSpuZHcwCFDRKK1Aq9CxCQWID4r0Jzrn5zrlnWDdBRE6SpNrMPrg2e1k+07C1GAIVgcAg"
    "MvWKCRvmvDQrZoxZs+BQ4MhxCAYcLePlGKsVBkc/vlVaFbfMjzwXA13PHT8Veh0t7BSqLM/WChwLJPqhaPUtgP7L/LfoN+TjEl8="
)


def of(*values: int) -> Histogram:
    """What the generator would have counted: values in microseconds."""
    counts: list[int] = []
    for value in values:
        index = next(index for index in range(100_000) if _highest(index) >= value)
        counts += [0] * (index + 1 - len(counts))
        counts[index] += 1
    return Histogram(counts)


def test_buckets_are_a_thousandth_wide_and_leave_no_gap() -> None:
    """The layout: microseconds up to 2047, then twice as wide with each doubling."""
    edges = [(_lowest(index), _highest(index)) for index in range(6000)]
    assert edges[:2] == [(0, 0), (1, 1)]
    assert edges[2047:2050] == [(2047, 2047), (2048, 2049), (2050, 2051)]
    assert edges[3072] == (4096, 4099)
    assert all(high + 1 == following for (_, high), (following, _) in pairwise(edges))


def test_durations_are_counted_in_their_buckets() -> None:
    values = [0, 1, 2047, 2048, 2051, 4096, 5000, 170_000, 3_599_000_000]
    counted = Histogram.of((value * 1e-6, 3) for value in values)
    assert counted == of(*values).merge(of(*values)).merge(of(*values))


def test_what_another_library_wrote_is_read() -> None:
    histogram = Histogram.decode(FOREIGN)
    assert histogram.count == 200
    assert [round(histogram.percentile(percent) * 1e6) for percent in (50, 90, 99, 100)] == [3163, 9583, 9751, 9759]


def test_what_is_written_is_read_again() -> None:
    for values in ((), (1,), (7, 7, 900_000), tuple(range(1, 3000, 7))):
        histogram = of(*values)
        assert Histogram.decode(histogram.encode()) == histogram


def test_percentiles_are_ends_of_buckets_that_are_in_use() -> None:
    histogram = of(*range(1, 101))
    assert [round(histogram.percentile(percent) * 1e6) for percent in (0, 1, 50, 50.5, 99, 100)] == [
        1,
        1,
        50,
        51,
        99,
        100,
    ]
    assert Histogram().percentile(99) == 0.0


def test_rounds_can_be_merged() -> None:
    merged = of(1, 2).merge(of(2, 50_000))
    assert merged == of(1, 2, 2, 50_000)
    assert merged.count_above(0.04) == 1


@pytest.mark.parametrize("text", ["", "HISTFAAAABR4", "AAAA", "aGVsbG8gd29ybGQ=", "*"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Histogram.decode(text)
