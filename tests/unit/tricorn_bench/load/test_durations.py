"""Durations as Go writes them."""

from __future__ import annotations

import pytest
from tricorn_bench.load import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("1m30s", 90), ("1h0.5m", 3630), ("500ms", 0.5), ("2", 2), (".5s", 0.5), ("7us", 7e-6)],
)
def test_load_durations(text: str, seconds: float) -> None:
    assert durations.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "10x", "-1s", "-1", "nan", "inf", "1s2"])
def test_invalid_load_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 10s"):
        durations.parse(text)


def test_ranges_and_ramps() -> None:
    assert durations.parse_range("5s-15s") == (5, 15)
    assert durations.parse_range("2s") == (2, 2)
    assert durations.parse_ramp("30s:1000,1m:0") == ((30, 1000), (60, 0))
    assert durations.parse_ramp("30s") == ((30, None),)
    for read, text in (
        (durations.parse_range, "3s-2s"),
        (durations.parse_ramp, "30s:many"),
        (durations.parse_ramp, "30s:"),
    ):
        with pytest.raises(ValueError, match="expected"):
            read(text)
