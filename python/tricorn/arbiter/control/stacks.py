"""What workers have written of their threads, as JSON has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from tricorn.arbiter.worker_handle import WorkerHandle
from tricorn.workers import __path__ as workers_path

Json = dict[str, object]

MOST_TEXT = 64 << 10
"""Bytes of one worker's stacks."""
MOST_TOTAL = 512 << 10
MOST_REQUESTS = 100

SERVER = f'File "{workers_path[0]}'
"""Frames from here on are the server's, and the same for every request."""


def stacks(handles: Sequence[WorkerHandle]) -> Json:
    most = min(MOST_TEXT, MOST_TOTAL // max(1, len(handles)))
    return {"workers": [_of(handle, most) for handle in handles]}


def _of(handle: WorkerHandle, most: int) -> Json:
    running = sorted(handle.requests(), key=lambda request: -request.age)[:MOST_REQUESTS]
    return {
        "slot": handle.worker.slot,
        "pid": handle.pid,
        "threads": threads(handle.told_stacks(most)),
        "requests": [{"age": round(request.age, 3), "text": request.text} for request in running],
    }


def threads(text: str) -> list[Json]:
    """Those that are in code of the application, each with its innermost frame first.

    faulthandler's text has a block for each thread.
    """
    found: list[Json] = []
    for block in re.split(r"^(?=Current thread |Thread )", text, flags=re.MULTILINE):
        head, _, rest = block.partition("\n")
        named = re.match(r"(Current thread|Thread) (0x[0-9a-f]+)(?: \[(.*)\])?", head)
        if named is None:
            continue
        lines = (line.strip() for line in rest.splitlines() if line.strip())
        frames = list(takewhile(lambda line: not line.startswith(SERVER), lines))
        if frames:
            found.append({"thread": named[2], "main": named[1] == "Current thread", "name": named[3], "stack": frames})
    return found
