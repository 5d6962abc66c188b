"""Stays on while workers come and go, and misses no event."""

from __future__ import annotations

import sys

from source import EventSource

source = EventSource(f"http://127.0.0.1:{sys.argv[1]}/events")
print("begun", flush=True)
for number, seen in enumerate(source.events(), 1):
    assert seen == str(number), f"{seen} in place of {number}"
    if number > 50 and source.streams >= 4:
        break
print("ended", flush=True)
