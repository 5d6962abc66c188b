"""Which requests of a hub wait for room in a pool. Called by the hub, which then lets no other run: a look is short.

Frames of greenlets and tasks that wait are looked at, and of a pool that was found its own attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import CodeType
from typing import TYPE_CHECKING, Any

from tricorn.workers.pools import ASKED, POOLS, Pool, Site
from tricorn.workers.waiting import frames_of, samples

if TYPE_CHECKING:
    from types import FrameType

Frame = tuple[str, int, str]
Wait = tuple[str, str, Frame, "Frame | None"]
"""The pool's name and size, the frame of the library, and the innermost one of the application."""

Sample = tuple[int, list[Frame], "Wait | None"]
"""A slot, and where its request waits."""

Call = tuple[int, Any]
"""A call in a thread: its index among the found ones, and its executor."""

MOST_CODES = 4096
_INSTALLED = ("/lib/python3.", "/lib64/python3.", "-packages/")


def sample(slots: Sequence[int], calls: Sequence[tuple[int, object]], pools: bool) -> list[Sample]:
    """Returns where the requests in these slots wait: their frames, or the pools that have no room for them."""
    if pools:
        return [(slot, [], wait) for slot, wait in roll(slots, calls)]
    return [(slot, frames, None) for slot, frames in samples(slots, calls)]


def roll(places: Sequence[int], calls: Sequence[tuple[int, object]]) -> list[tuple[int, Wait | None]]:
    """The requests at these places, the oldest first: which pool each waits for. None: it is elsewhere."""
    stacks = dict(frames_of(set(places), calls))
    found: list[tuple[int, Wait | None]] = []
    in_threads: list[Call] = []
    sizes: dict[int, str] = {}
    for place in places:
        if place not in stacks:
            continue
        frames = stacks[place]
        at = _pool_of(frames)
        if at is None:
            found.append((place, None))
            continue
        pool, index = at
        if pool.name in ASKED:
            in_threads.append((len(found), _executor_of(pool, frames[index])))
        line = next((_plain(each) for each in frames[index:] if _is_application(each)), None)
        found.append((place, (pool.name, _size(pool, frames[index], sizes), _plain(frames[index]), line)))
    _forget_those_that_run(found, in_threads)
    return found


def _pool_of(frames: Sequence[FrameType]) -> tuple[Pool, int] | None:
    """The pool, and which of these frames, the innermost first, is its first function."""
    for index, frame in enumerate(frames):
        for pool, site in _sites_of(frame.f_code):
            # Where there is no frame further in, what it has called is in C, as gevent's queues are.
            if (
                not site.inner_file
                or index == 0
                or _is_at(frames[index - 1].f_code, site.inner_file, site.inner_function)
            ):
                return pool, index
    return None


def _sites_of(code: CodeType) -> Sequence[tuple[Pool, Site]]:
    found = _known.get(code)
    if found is None:
        if len(_known) >= MOST_CODES:
            _known.clear()
        found = _known[code] = [
            (pool, site) for pool in POOLS for site in pool.sites if _is_at(code, site.file, site.function)
        ]
    return found


_known: dict[CodeType, list[tuple[Pool, Site]]] = {}


def _is_at(code: CodeType, file: str, function: str) -> bool:
    return code.co_name == function and f"/{code.co_filename}".endswith(f"/{file}")


def _size(pool: Pool, frame: FrameType, sizes: dict[int, str]) -> str:
    """Returns the size as the pool describes it, asked once per pool. Empty for an unknown version of the library."""
    it: Any = None
    if pool.size is not None:
        with suppress(Exception):
            it = frame.f_locals["self"]
            if id(it) not in sizes:
                sizes[id(it)] = pool.size(it)
    return sizes.get(id(it), "")


def _executor_of(pool: Pool, frame: FrameType) -> Any:
    """The executor that a call of this frame is in; None: it is not told, as by uvloop."""
    with suppress(Exception):
        if pool.name == "asgiref":
            return frame.f_locals["executor"]
        import asyncio

        return asyncio.get_running_loop()._default_executor  # type: ignore[attr-defined]
    return None


def _forget_those_that_run(found: list[tuple[int, Wait | None]], calls: Sequence[Call]) -> None:
    """Calls in an executor are at the same place whether they run or wait for a thread: the last ones wait."""
    for executor in {id(executor): executor for _, executor in calls}.values():
        indices = [index for index, own in calls if own is executor]
        waiting, size = 0, ""
        with suppress(Exception):
            waiting, size = executor._work_queue.qsize(), f"{executor._max_workers} threads"
        for index in indices[: len(indices) - min(waiting, len(indices))]:
            found[index] = found[index][0], None
        for index in indices[len(indices) - min(waiting, len(indices)) :]:
            place, wait = found[index]
            if wait is not None:
                found[index] = place, (wait[0], size, *wait[2:])


def _plain(frame: FrameType) -> Frame:
    return frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name


def _is_application(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return not path.startswith("<") and not any(part in path for part in _INSTALLED)
