"""Stacks of suspended greenlets and tasks. Only Python can read them: they are on no thread.

Written in a signal handler on the main thread, into the file of the worker's reports (`Reports`).
Nothing of the application's is called: frames, and locals of frames whose code is known, are looked at.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import AsyncGeneratorType, CoroutineType
from typing import TYPE_CHECKING, Any

from tricorn.errors import is_own
from tricorn.metrics.scoreboard import Reports
from tricorn.unpatched import os

if TYPE_CHECKING:
    from types import FrameType

    from tricorn.metrics.scoreboard import RunningRequest

Json = dict[str, object]

MOST = 200
"""Stacks."""
MOST_FRAMES = 40
MOST_BYTES = 256 << 10
MOST_TASKS = 2000
"""That are looked through for those of requests, in a sample."""
OUTER = 5
"""Number of outermost frames, plus one, among which the application's is. Frames further in belong to libraries."""

_LOOP = os.path.join(os.path.dirname(__file__), "event_loop.py")
"""Its frames run the loop, and those below it are the server's."""
_STEPS = ("async_generator_asend", "async_generator_athrow", "coroutine_wrapper")
"""Types of objects between a coroutine and the asynchronous generator or coroutine that it awaits."""
_LIBRARIES = ("/gevent/", "/eventlet/", "/greenlet/")


def write(descriptor: int, calls: Sequence[tuple[int, object]], running: Sequence[RunningRequest], now: Any) -> None:
    """`calls`: what requests are known by, with their places. `now`: the frame that was interrupted."""
    found = [*_greenlets(calls, running, now), *_tasks(calls, running, now)]
    left = max(0, len(found) - MOST)
    # Requests first: an application may have any number of others.
    found.sort(key=lambda each: each["place"] is None)
    del found[MOST:]
    while len(data := json.dumps({"stacks": found, "left": left}).encode()) > MOST_BYTES:
        left += len(found) - len(found) // 2
        del found[len(found) // 2 :]
    Reports(descriptor).write_waiting(data)


def samples(places: Sequence[int], calls: Sequence[tuple[int, object]]) -> list[tuple[int, list[tuple[str, int, str]]]]:
    """Returns the stacks of the requests in these slots, innermost frame first. Called by the hub."""
    return [(place, _plain(frames)) for place, frames in frames_of(set(places), calls)]


def frames_of(wanted: set[int], calls: Sequence[tuple[int, object]]) -> Iterator[tuple[int, Sequence[FrameType]]]:
    """The frames of the requests at these places, the innermost first, of as many as are known."""
    left: set[int] = set()
    for place, each in calls:
        if place not in wanted:
            continue
        if hasattr(each, "gr_frame"):
            yield place, list(_frames(each.gr_frame))
        elif hasattr(each, "get_coro"):
            yield place, list(_awaits(each.get_coro()))[::-1]
        else:
            left.add(place)
    if left:
        yield from _frames_by_task(left, calls)


def _frames_by_task(wanted: set[int], calls: Sequence[tuple[int, object]]) -> Iterator[tuple[int, Sequence[FrameType]]]:
    """Returns frames by task, for libraries whose requests are identified by another object than their task."""
    import asyncio

    places = {id(each): place for place, each in calls if place in wanted}
    found: dict[int, list[FrameType]] = {}
    for task in list(asyncio.all_tasks())[:MOST_TASKS]:
        place = _place_by_objects(task, places)
        if place is not None:
            frames = list(_awaits(task.get_coro()))[::-1]
            # aiohttp has two tasks for a request: one that waits for the other.
            found[place] = max(found.get(place, []), frames, key=len)
    yield from found.items()


def _plain(frames: Sequence[FrameType]) -> list[tuple[str, int, str]]:
    return [(each.f_code.co_filename, each.f_lineno or 0, each.f_code.co_name) for each in frames[:MOST_FRAMES]]


def _greenlets(calls: Sequence[tuple[int, object]], running: Sequence[RunningRequest], now: Any) -> Iterator[Json]:
    library: Any = sys.modules.get("greenlet")
    kind = getattr(library, "greenlet", None)
    if kind is None:
        return
    places = {id(each): place for place, each in calls}
    current = library.getcurrent()
    for each in gc.get_objects():
        if not issubclass(type(each), kind):
            continue
        frame = now if each is current and current.parent is not None else each.gr_frame
        frames = list(_frames(frame))
        if all(any(part in frame.f_code.co_filename for part in _LIBRARIES) for frame in frames):
            continue  # a hub, or one that waits for a request
        place = places.get(id(each), _place_by_environ(frames, running))
        yield _told("greenlet", type(each).__name__, place, running, map(_line, frames), is_running=frame is now)


def _tasks(calls: Sequence[tuple[int, object]], running: Sequence[RunningRequest], now: Any) -> Iterator[Json]:
    asyncio: Any = sys.modules.get("asyncio")
    loop = None if asyncio is None else asyncio._get_running_loop()
    if loop is None:
        return
    places = {id(each): place for place, each in calls}
    current = asyncio.current_task(loop)
    for task in asyncio.all_tasks(loop):
        if task is current:
            lines = [_line(frame) for frame in _frames(now)]
        else:
            lines = [_line(frame) for frame in reversed(list(_awaits(task.get_coro())))]
        if lines:
            place = places.get(id(task), _place_by_objects(task, places))
            yield _told("task", task.get_name(), place, running, lines, is_running=task is current)


def _told(
    of: str, name: str, place: int | None, running: Sequence[RunningRequest], lines: Any, *, is_running: bool
) -> Json:
    start = next((request.started for request in running if request.slot == place), None)
    stack = [line for _, line in zip(range(MOST_FRAMES), lines, strict=False)]
    known = place if start is not None else None
    return {"of": of, "name": name[:100], "place": known, "start": start, "running": is_running, "stack": stack}


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The innermost first, without the server's: in them a call waits, or they run the loop that has called it."""
    while frame is not None:
        if not is_own(frame.f_code.co_filename):
            yield frame
        elif frame.f_code.co_filename == _LOOP:
            return
        frame = frame.f_back


def _awaits(coroutine: Any) -> Iterator[FrameType]:
    """The frames of a coroutine that waits, and of those that it waits for: the outermost first."""
    for _ in range(10 * MOST_FRAMES):
        if type(coroutine).__name__ in _STEPS:  # these do not tell whose step they are
            kinds = (AsyncGeneratorType, CoroutineType)
            coroutine = next((each for each in gc.get_referents(coroutine) if isinstance(each, kinds)), None)
        for prefix, what in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            frame = getattr(coroutine, f"{prefix}_frame", None)
            if frame is not None:
                if not is_own(frame.f_code.co_filename):
                    yield frame
                    if frame.f_code.co_name == "greenlet_spawn":
                        yield from _inside_greenlet(frame)
                coroutine = getattr(coroutine, f"{prefix}_{what}", None)
                break
        else:
            return


def _inside_greenlet(frame: FrameType) -> Iterator[FrameType]:
    """SQLAlchemy calls functions without async in a greenlet of the task, in which they wait: those frames."""
    if "/sqlalchemy/util/" in frame.f_code.co_filename:
        inner = getattr(frame.f_locals.get("context"), "gr_frame", None)
        yield from reversed(list(_frames(inner)))


def _line(frame: FrameType) -> str:
    """Formats a frame as faulthandler does."""
    return f'File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}'


def _place_by_environ(frames: Sequence[FrameType], running: Sequence[RunningRequest]) -> int | None:
    """Finds the request by the environ that the frames of its WSGI application hold, if exactly one matches."""
    for frame in frames[:-OUTER:-1]:
        code, values = frame.f_code, frame.f_locals
        for name in code.co_varnames[: code.co_argcount]:
            environ = values.get(name)
            if type(environ) is dict and "wsgi.input" in environ:
                line = f"{environ.get('REQUEST_METHOD')} {environ.get('RAW_URI')}".encode("latin-1", "replace")[:104]
                places = [request.slot for request in running if request.text == line.decode("utf-8", "replace")]
                return places[0] if len(places) == 1 else None
    return None


def _place_by_objects(task: Any, places: Mapping[int, int]) -> int | None:
    """Finds the request of a task by the object that its context or the library's frames hold."""
    context = getattr(task, "get_context", None)  # from Python 3.12 on
    for value in context().values() if context is not None else ():
        if id(value) in places:
            return places[id(value)]
    frame = next(_awaits(task.get_coro()), None)
    if frame is None:
        return None
    path, name = frame.f_code.co_filename, frame.f_code.co_name
    found: object = None
    with suppress(Exception):  # another version of the library
        if path.endswith("/tornado/web.py") and name == "_execute":
            found = frame.f_locals["self"].request.connection.call
        elif path.endswith("/aiohttp/web_protocol.py") and name in ("start", "_handle_request"):
            found = frame.f_locals["self"].transport
    return None if found is None else places.get(id(found))
