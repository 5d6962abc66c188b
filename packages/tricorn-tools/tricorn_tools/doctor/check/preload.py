"""Checks for `preload_app`: a fork copies its parent's memory, and only one of its threads."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Sequence

from tricorn_tools.doctor.check.finding import Finding, Severity
from tricorn_tools.doctor.check.scene import Scene

TELEMETRY = ("BatchSpanProcessor", "BatchLogRecordProcessor", "PeriodicExportingMetricReader")
"""Classes of OpenTelemetry's SDK that export from a thread."""
MOST_NAMED = 6


def examine(scene: Scene) -> Iterator[Finding]:
    if not scene.config.preload_app:
        return
    exporters = telemetry(gc.get_objects())
    if exporters:
        yield Finding(
            "threads-and-preload",
            Severity.WARNING,
            f"OpenTelemetry's {' and '.join(exporters)} was made while the application was imported, and preload_app "
            "is on: its thread is in the arbiter, and locks that it holds at a fork stay locked in that worker.",
            "Make the provider in the hook post_fork, or leave preload_app away.",
        )
    if scene.threads:
        yield Finding(
            "threads-and-preload",
            Severity.WARNING,
            f"{_threads(scene.threads)} while the application was imported, and preload_app is on: a fork takes "
            "none of them along. In the workers they are missing: what waits for them waits for ever.",
            "Start them in the hook post_fork or at the first request, or leave preload_app away.",
        )


def telemetry(objects: Sequence[object]) -> list[str]:
    """The names of exporters that are there. Types only are looked at: lazy objects stay asleep."""
    return sorted(
        {
            kind.__name__
            for kind in map(type, objects)
            if kind.__name__ in TELEMETRY and kind.__module__.startswith("opentelemetry.")
        }
    )


def _threads(names: Sequence[str]) -> str:
    counted = Counter(names)
    shown = [name if count == 1 else f"{name} ({count} times)" for name, count in counted.items()]
    more = [f"{len(shown) - MOST_NAMED} more"] if len(shown) > MOST_NAMED else []
    were = "thread was" if len(names) == 1 else "threads were"
    return f"{len(names)} {were} started ({', '.join([*shown[:MOST_NAMED], *more])})"
