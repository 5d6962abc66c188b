"""Numbers fit their columns, whatever they are."""

from __future__ import annotations

from tricorn_tools.top import figures


def test_counts_sizes_times_and_spans_as_people_read_them() -> None:
    assert [figures.count(value) for value in (None, 0, 0.4, 231, 9_999, 10_000, 123_456, 4_500_000)] == [
        *("?", "0", "0", "231", "9,999", "10k", "123k", "4.5M")
    ]
    assert [figures.size(value) for value in (None, 0, 900 << 10, 182 << 20, 1_288_490_189)] == [
        *("-", "0", "900K", "182M", "1.2G")
    ]
    assert [figures.milliseconds(value) for value in (None, 0.0, 0.000_41, 0.0031, 0.0412, 1.2, 38.4, 720)] == [
        *("-", "0.00", "0.41", "3.1", "41", "1200", "38s", "12m")
    ]
    assert [figures.span(value) for value in (0, 38.2, 5_400, 14_400, 273_600)] == ["0s", "38s", "90m", "4h", "3d"]
    assert [figures.long_span(value) for value in (38.9, 725, 7_300, 273_600)] == [
        "38 s",
        "12 m 5 s",
        "2 h 1 m",
        "3 d 4 h",
    ]
    assert [figures.percent(value) for value in (None, 0.0, 0.974, 1.0)] == ["-", "0 %", "97 %", "100 %"]
    assert figures.percent(0.0042, 1) == "0.4 %"


def test_a_number_that_cannot_be_is_a_question_mark_and_no_text_is_wide() -> None:
    for value in (-1, 2**64, 10**30, float("inf")):
        assert figures.count(value) == figures.size(value) == figures.span(value) == figures.long_span(value) == "?"
    for exponent in range(63):
        value = (1 << exponent) * 1.999
        for text in (figures.count(value), figures.size(value), figures.milliseconds(value / 1e9), figures.span(value)):
            assert len(text) <= 5, (value, text)
    assert len(figures.percent(1e300)) <= 5
