"""What hey and wrk print, read."""

from __future__ import annotations

from benches.generators.__main__ import Seen, read_hey, read_wrk, row

HEY = """
Summary:
  Total:\t0.0318 secs
  Slowest:\t0.0209 secs
  Requests/sec:\t6295.9873

Latency distribution:
  10% in 0.0007 secs
  50% in 0.0046 secs
  90% in 0.0161 secs
  99% in 0.0207 secs

Status code distribution:
  [200]\t190 responses
  [503]\t10 responses
"""
WRK = """\
Running 2s test @ http://127.0.0.1:8000/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.25ms    3.01ms  53.71ms   94.65%
    Req/Sec    80.52k     9.28k   99.41k    68.00%
  Latency Distribution
     50%  640.00us
     75%    1.02ms
     90%    1.90ms
     99%    1.02s
  160312 requests in 2.00s, 22.32MB read
Requests/sec:  80118.62
Transfer/sec:     11.15MB
"""


def test_reports_are_read() -> None:
    assert read_hey(HEY, 0.5) == Seen(200, 6295.9873, 4.6, 16.1, 20.7, 0.5)
    assert read_hey(HEY.replace("% in", "%% in"), 0.5) == read_hey(HEY, 0.5)  # hey 0.1 prints two
    assert read_wrk(WRK, 1.0) == Seen(160312, 80118.62, 0.64, 1.9, 1020.0, 1.0)


def test_a_row_has_medians_and_their_spread() -> None:
    rounds = [Seen(1000, rate, 1.0, 2.0, 4.0, 0.01) for rate in (90.0, 120.0, 100.0)]
    name, rate, p50, *_, each, per_second, missing = row("wrk", rounds, [0, 3, -1])
    assert (name, rate, p50) == ("wrk", "100 (90–120)", "1.00 (1.00–1.00)")
    assert (each, per_second, missing) == ("10.0 (10.0–10.0)", "100,000 (100,000–100,000)", "+0 +3 -1")
