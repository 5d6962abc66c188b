"""The logger that sends metrics to statsd: gunicorn's `gunicorn.instrument.statsd.Statsd`.

Metrics of requests are sent by the native core as long as a subclass leaves them alone (`native_statsd`). All others
are sent from here, each in a datagram of its own, and no call waits for that.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tricorn.config import collectors
from tricorn.log.logger import Logger
from tricorn.log.outlet import Outlet

if TYPE_CHECKING:
    from datetime import timedelta

    from tricorn.config.config import Config
    from tricorn.unpatched import socket

METRIC_VAR = "metric"
VALUE_VAR = "value"
MTYPE_VAR = "mtype"
GAUGE_TYPE = "gauge"
COUNTER_TYPE = "counter"
HISTOGRAM_TYPE = "histogram"
TIMER_TYPE = "timer"


class Statsd(Logger):
    """A logger like any other that counts what it logs, and sends what stands in `extra`."""

    outlet: Outlet | None = None

    def __init__(self, cfg: Config) -> None:
        self.prefix = re.sub(r"^(.+[^.]+)\.*$", "\\g<1>.", cfg.statsd_prefix)
        self.dogstatsd_tags = cfg.dogstatsd_tags
        super().__init__(cfg)
        if cfg.statsd_host is not None:
            self.outlet = Outlet(collectors.statsd(cfg.statsd_host), keeps=False, inet4=True)
            if complaint := self.outlet.complaint("statsd", "statsd_host"):
                self.error_log.warning("%s", complaint)

    def outlets(self) -> list[Outlet]:
        return [*super().outlets(), *([] if self.outlet is None else [self.outlet])]

    @property
    def sock(self) -> socket.socket | None:
        return None if self.outlet is None else self.outlet.socket()

    def critical(self, msg: object, *args: object, **kwargs: Any) -> None:
        super().critical(msg, *args, **kwargs)
        self.increment("gunicorn.log.critical", 1)

    def error(self, msg: object, *args: object, **kwargs: Any) -> None:
        super().error(msg, *args, **kwargs)
        self.increment("gunicorn.log.error", 1)

    def warning(self, msg: object, *args: object, **kwargs: Any) -> None:
        super().warning(msg, *args, **kwargs)
        self.increment("gunicorn.log.warning", 1)

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        super().exception(msg, *args, **kwargs)
        self.increment("gunicorn.log.exception", 1)

    def info(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.log(logging.INFO, msg, *args, **kwargs)

    def debug(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.log(logging.DEBUG, msg, *args, **kwargs)

    def log(self, lvl: int | str, msg: object, *args: object, **kwargs: Any) -> None:
        """Sends the metric of `extra`, if it is a whole one, and logs what there is to say."""
        try:
            self._measure(kwargs.get("extra"))
            if msg:
                super().log(lvl, msg, *args, **kwargs)
        except Exception:
            Logger.warning(self, "Failed to log to statsd", exc_info=True)

    def _measure(self, extra: Any) -> None:
        if extra is None:
            return
        metric, value, kind = (extra.get(name) for name in (METRIC_VAR, VALUE_VAR, MTYPE_VAR))
        if not (metric and value is not None and kind):
            return
        match kind:
            case "gauge":
                self.gauge(metric, value)
            case "counter":
                self.increment(metric, value)
            case "histogram":
                self.histogram(metric, value)
            case "timer":
                self.timer(metric, value)

    def access(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta) -> None:
        """Sends the metrics of a request. Called only if the core does not measure requests."""
        super().access(resp, req, environ, request_time)
        status = resp.status
        if isinstance(status, bytes):
            status = status.decode()
        if isinstance(status, str):
            status = int(status.split(None, 1)[0])
        self.timer("gunicorn.request.duration", request_time.seconds * 1000 + request_time.microseconds / 10**3)
        self.increment("gunicorn.requests", 1)
        self.increment(f"gunicorn.request.status.{status:d}", 1)

    # Programs use these, too

    def gauge(self, name: str, value: object) -> None:
        self._sock_send(f"{self.prefix}{name}:{value}|g")

    def increment(self, name: str, value: object, sampling_rate: float = 1.0) -> None:
        self._sock_send(f"{self.prefix}{name}:{value}|c|@{sampling_rate}")

    def decrement(self, name: str, value: object, sampling_rate: float = 1.0) -> None:
        self._sock_send(f"{self.prefix}{name}:-{value}|c|@{sampling_rate}")

    def timer(self, name: str, value: object) -> None:
        self._sock_send(f"{self.prefix}{name}:{value}|ms")

    def histogram(self, name: str, value: object) -> None:
        self._sock_send(f"{self.prefix}{name}:{value}|h")

    def _sock_send(self, msg: str | bytes) -> None:
        try:
            message = msg.encode("ascii") if isinstance(msg, str) else msg
            if self.dogstatsd_tags:
                message += b"|#" + self.dogstatsd_tags.encode("ascii")
            if self.outlet is not None:
                self.outlet.send(message)
        except Exception:
            Logger.warning(self, "Error sending message to statsd", exc_info=True)
