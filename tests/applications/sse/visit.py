"""Reads some events, comes back for more, and leaves in the middle."""

from __future__ import annotations

from browser import Browser, visit
from source import EventSource


def steps(browser: Browser) -> dict[str, object]:
    source = EventSource(f"{browser.base}/events")
    first = [source.take(5) for _ in range(3)]
    browser.leave("/events", b"event 1", Accept="text/event-stream")
    return {"first": first}


visit(steps)
