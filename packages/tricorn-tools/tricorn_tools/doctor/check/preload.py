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
            f"OpenTelemetry's {' and '.join(exporters)} was created at import, and preload_app is on: its thread runs "
            "in the process that loads the application, and locks that it holds in a fork stay locked in that worker.",
            "Create the provider in the hook post_fork, or turn preload_app off.",
        )
    if scene.threads:
        yield Finding(
            "threads-and-preload",
            Severity.WARNING,
            f"{_threads(scene.threads)} at import, and preload_app is on: threads do not survive a fork, so workers "
            "do not have them, and code that waits for them hangs.",
            "Start them in the hook post_fork or at the first request, or turn preload_app off.",
        )


def telemetry(objects: Sequence[object]) -> list[str]:
    """Returns the names of exporters. Only types are inspected, so that lazy objects are not evaluated."""
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
