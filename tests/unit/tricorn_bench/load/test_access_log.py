"""Access logs as plans."""

from __future__ import annotations

import pytest
from tricorn_bench.load import LoadError, Replay
from tricorn_bench.load.access_log import read

COMBINED = '127.0.0.1 - bob [21/Nov/2026:01:02:{second} +0000] "{line}" 200 12 "-" "curl \\"x\\""'


def line(second: str, request: str) -> str:
    return COMBINED.format(second=second, line=request)


def test_requests_of_a_second_are_spread_over_it_in_the_order_of_time() -> None:
    log = read(
        [
            line("33", "GET /late?x=1 HTTP/1.1"),
            line("32", "GET /a HTTP/1.1"),
            line("32", "POST /b HTTP/1.1"),
            line("32.750", "HEAD /c HTTP/1.0"),
        ]
    )
    assert log.requests == (
        Replay(0.0, "GET", "/a"),
        Replay(0.5, "POST", "/b"),
        Replay(0.75, "HEAD", "/c"),
        Replay(1.0, "GET", "/late?x=1"),
    )


def test_access_log_replayed_faster() -> None:
    log = read([line("30", "GET / HTTP/1.1"), line("40", "GET / HTTP/1.1")], speed=4)
    assert [request.offset for request in log.requests] == [0.0, 2.5]


def test_access_log_replayed_from_json() -> None:
    entry = '{"time": "2026-11-21T01:02:3%d+01:00", "method": "GET", "path": "%s", "query": "%s", "status": 200}'
    log = read([entry % (2, "/a%20b", ""), entry % (3, "/c", "d=e")])
    assert log.requests == (Replay(0.0, "GET", "/a%20b"), Replay(1.0, "GET", "/c?d=e"))


def test_what_is_no_request_is_skipped_and_counted() -> None:
    lines = [
        line("30", "GET / HTTP/1.1"),
        line("30", "-"),
        line("30", "CONNECT a:1 HTTP/1.1"),
        line("61", "GET / HTTP/1.1"),
        "Starting",
        '{"time": null}',
        '{"time": "2026-11-21T01:02:30+00:00", "method": null, "path": null}',
        "",
    ]
    log = read(lines)
    assert (len(log.requests), log.skipped) == (1, 6)


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(LoadError, match="got 2 lines of something else"):
        read(["a", "b"])
