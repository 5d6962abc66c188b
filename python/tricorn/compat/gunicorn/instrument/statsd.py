"""The logger that sends to statsd: its name."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.log.logger import Logger

GAUGE_TYPE = "gauge"
COUNTER_TYPE = "counter"
HISTOGRAM_TYPE = "histogram"


class Statsd(Logger):
    """A logger like any other: nothing is sent to statsd in this version."""


__getattr__ = refuse(__name__)
