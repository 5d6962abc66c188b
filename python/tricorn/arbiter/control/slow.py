"""What workers have written of their slow requests, as JSON has it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tricorn.arbiter.worker_handle import WorkerHandle

Json = dict[str, object]

MOST_TOTAL = 512 << 10
"""Bytes of all workers' reports: those that have no room are named, and left out."""


def slow(handles: Sequence[WorkerHandle]) -> Json:
    workers: list[Json] = []
    left: list[int] = []
    room = MOST_TOTAL
    for handle in handles:
        text = handle.told_slow()
        if len(text) > room:
            left.append(handle.worker.slot)  # not read: the arbiter has others to look after
            continue
        room -= len(text)
        told = read(text)
        if told is not None:
            workers.append({"slot": handle.worker.slot, "pid": handle.pid, "profile": told})
    return {"workers": workers, "left": left}


def read(text: bytes) -> object | None:
    """None if there is nothing. A worker may write anything there: who reads it checks what it needs."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None
