"""A load generator: `tricorn load URL`, and what `run` does for programs.

`plan.py` says what is sent, `engine.py` sends it, `result.py` is what comes of it.
"""

from __future__ import annotations

from tricorn_bench.load.engine import Progress, run
from tricorn_bench.load.errors import Interrupted, LoadError
from tricorn_bench.load.histogram import Histogram
from tricorn_bench.load.plan import Http2, Plan, Replay, Stage, Tls, WebSocket
from tricorn_bench.load.result import Result
from tricorn_bench.load.sample import Sample
from tricorn_bench.load.target import Target

__all__ = [
    "Histogram",
    "Http2",
    "Interrupted",
    "LoadError",
    "Plan",
    "Progress",
    "Replay",
    "Result",
    "Sample",
    "Stage",
    "Target",
    "Tls",
    "WebSocket",
    "run",
]
