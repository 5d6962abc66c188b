"""A process that changes all the time: threads, generators, exceptions, greenlets, garbage, code that is freed.

python changing.py             until it is killed
python changing.py --inside    and one of its threads walks the frames of all, itself among them: a line for each second
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator

try:
    import greenlet
except ImportError:
    greenlet = None  # type: ignore[assignment]


def generator(depth: int) -> Iterator[int]:
    if depth:
        yield from generator(depth - 1)
    yield depth


def raises(depth: int) -> None:
    if depth == 0:
        raise ValueError(depth)
    try:
        raises(depth - 1)
    finally:
        pass


def switches() -> None:
    own = greenlet.getcurrent().parent
    assert own is not None
    for _ in range(5):
        own.switch()


def work(end: float) -> None:
    while time.monotonic() < end:
        for _ in generator(random.randrange(30)):
            pass
        try:
            raises(random.randrange(60))
        except ValueError:
            pass
        exec(compile("def made(a):\n    return [a for _ in range(10)]\nmade(1)", "made", "exec"), {})
        if greenlet:
            several = [greenlet.greenlet(switches) for _ in range(5)]
            for _ in range(4):
                for each in several:
                    each.switch()
    gc.collect()


def starts() -> None:
    while True:
        threads = [threading.Thread(target=work, args=(time.monotonic() + random.random() * 0.05,)) for _ in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


def walks() -> None:
    from tricorn import _core

    while True:
        made, discarded, _, frames = _core.doctor_walk(os.getpid(), 1.0)
        looked = len(json.loads(_core.doctor_look(os.getpid(), 0.01))["threads"])
        print(json.dumps({"made": made, "discarded": discarded, "frames": frames, "looked": looked}), flush=True)


if __name__ == "__main__":
    threading.Thread(target=starts, daemon=True).start()
    if "--inside" in sys.argv:
        threading.Thread(target=walks, daemon=True).start()
    work(time.monotonic() + 24 * 3600)
