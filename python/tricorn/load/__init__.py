"""A load generator: `tricorn load URL`, and what `run` does for programs.

`plan.py` says what is sent, `engine.py` sends it, `result.py` is what comes of it.
"""

from __future__ import annotations

from tricorn.load.engine import Progress, run
from tricorn.load.errors import Interrupted, LoadError
from tricorn.load.histogram import Histogram
from tricorn.load.plan import Plan, Replay, Stage, Tls, WebSocket
from tricorn.load.result import Result
from tricorn.load.sample import Sample
from tricorn.load.target import Target

__all__ = [
    "Histogram",
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
