"""Reads the stacks that workers have written, and makes JSON of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from tricorn.arbiter.worker_handle import WorkerHandle
from tricorn.unpatched import _thread
from tricorn.workers import __path__ as workers_path

Json = dict[str, object]

MOST_TEXT = 64 << 10
"""Bytes of one worker's stacks."""
MOST_TOTAL = 512 << 10
MOST_REQUESTS = 100

ON_THREADS = ("sync", "gthread", "hosted")
"""Classes whose requests are threads' all."""
LATE = "Its Python has not run within 300 ms, so that greenlets and tasks are not told; the main thread holds them up."

SERVER = f'File "{workers_path[0]}'
"""Frames from here on are the server's, and the same for every request."""


def stacks(handles: Sequence[WorkerHandle]) -> Json:
    most = min(MOST_TEXT, MOST_TOTAL // max(1, len(handles)))
    return {"workers": [_of(handle, most) for handle in handles]}


def _of(handle: WorkerHandle, most: int) -> Json:
    requests = handle.requests()
    running = sorted(requests, key=lambda request: -request.age)[:MOST_REQUESTS]
    texts: dict[tuple[object, object], str] = {(each.slot, each.started): each.text for each in requests}
    told = waiting(handle.told_waiting(), most)
    for each in told or ():
        each["text"] = texts.get((each["place"], each["start"]))
    return {
        "slot": handle.worker.slot,
        "pid": handle.pid,
        # A fork keeps the identity of the thread that forks: it is the main one there.
        "threads": threads(handle.told_stacks(most), _thread.get_ident()),
        "requests": [{"age": round(request.age, 3), "text": request.text} for request in running],
        "waiting": told,
        "note": LATE if told is None and handle.kind not in ON_THREADS else None,
    }


def waiting(data: bytes, most: int) -> list[Json] | None:
    """Greenlets and tasks; None if Python has told nothing. A worker may write anything there."""
    try:
        told = json.loads(data)["stacks"]
        found = [_waiting(each) for each in told]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    while len(json.dumps(found)) > most:
        del found[len(found) // 2 :]
    return found


def _waiting(each: Mapping[str, object]) -> Json:
    stack, place, start = each["stack"], each["place"], each["start"]
    if not isinstance(stack, list) or not isinstance(place, int | None) or not isinstance(start, int | None):
        raise TypeError
    return {
        "of": str(each["of"]),
        "name": str(each["name"]),
        "place": place,
        "start": start,
        "running": each["running"] is True,
        "stack": [str(line) for line in stack],
    }


def threads(text: str, main: int) -> list[Json]:
    """Parses the threads that are in code of the application, each with its innermost frame first.

    `main` identifies the main thread. faulthandler's text has a block for each thread, and its current thread is the
    one that the signal came to, which may be any.
    """
    found: list[Json] = []
    for block in re.split(r"^(?=Current thread |Thread )", text, flags=re.MULTILINE):
        head, _, rest = block.partition("\n")
        named = re.match(r"(?:Current thread|Thread) (0x[0-9a-f]+)(?: \[(.*)\])?", head)
        if named is None:
            continue
        lines = (line.strip() for line in rest.splitlines() if line.strip())
        frames = list(takewhile(lambda line: not line.startswith(SERVER), lines))
        if frames:
            found.append({"thread": named[1], "main": int(named[1], 16) == main, "name": named[2], "stack": frames})
    return found
