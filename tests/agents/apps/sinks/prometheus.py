"""Prometheus: the exporter for Flask under several processes, whose metrics are asked for at the end."""

from __future__ import annotations

from typing import Any


def prepare() -> None: ...


def instrument_flask(app: Any) -> None:
    from prometheus_flask_exporter.multiprocess import GunicornInternalPrometheusMetrics

    GunicornInternalPrometheusMetrics(app)
