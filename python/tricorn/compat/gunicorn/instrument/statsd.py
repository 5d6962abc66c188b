"""The logger that sends to statsd."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.log.statsd import (
    COUNTER_TYPE,
    GAUGE_TYPE,
    HISTOGRAM_TYPE,
    METRIC_VAR,
    MTYPE_VAR,
    TIMER_TYPE,
    VALUE_VAR,
    Statsd,
)

__all__ = [
    "COUNTER_TYPE",
    "GAUGE_TYPE",
    "HISTOGRAM_TYPE",
    "METRIC_VAR",
    "MTYPE_VAR",
    "TIMER_TYPE",
    "VALUE_VAR",
    "Statsd",
]

__getattr__ = refuse(__name__)
