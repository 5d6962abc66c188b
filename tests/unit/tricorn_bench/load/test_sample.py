"""Single requests, as they come from the generator and go into hey's CSV."""

from __future__ import annotations

from tricorn_bench.load.sample import Sample, csv

COLUMNS = {
    "due": [0.0, 0.5],
    "begun": [0.0, 0.75],
    "connected": [0.001, 0.75],
    "written": [0.0015, 0.75],
    "first": [0.0215, 1.0],
    "done": [0.022, 1.0],
    "ended": [200, "closed"],
    "held": [False, True],
    "body": ["hello", ""],
    "left_out": 0,
}


def test_rows_have_what_the_columns_say() -> None:
    answered, failed = Sample.rows(COLUMNS)
    assert (answered.latency, answered.late, answered.ended, answered.body) == (0.022, 0.0, 200, "hello")
    assert (failed.latency, failed.late, failed.ended, failed.held) == (0.5, 0.25, "closed", True)


def test_without_samples_there_are_none() -> None:
    assert Sample.rows(None) == ()


def test_csv_has_a_line_for_each_answer_with_the_columns_of_hey() -> None:
    assert csv(Sample.rows(COLUMNS)).splitlines() == [
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
        "0.0220,0.0010,0.0000,0.0005,0.0200,0.0005,200,0.0000",
    ]
