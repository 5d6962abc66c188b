"""Reads some events, comes back for more, and leaves in the middle: also streams that send in each turn of the loop."""

from __future__ import annotations

import time

from browser import PATIENCE, Browser, visit
from source import EventSource


def steps(browser: Browser) -> dict[str, object]:
    source = EventSource(f"{browser.base}/events")
    first = [source.take(5) for _ in range(3)]
    browser.leave("/events", b"event 1", Accept="text/event-stream")
    return {"first": first, "left": {pause: left(browser, f"/stream/{pause}") for pause in ("0.02", "0")}}


def left(browser: Browser, path: str) -> list[list[str]]:
    """What became of a stream, each time that its reader has left."""
    return [notes_after(browser, path) for _ in range(5)]


def notes_after(browser: Browser, path: str) -> list[str]:
    browser.leave(path, b"data: again", Accept="text/event-stream")
    deadline = time.monotonic() + PATIENCE
    while len(notes := browser.get("/notes").json()) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    return [str(note) for note in notes]


visit(steps)
