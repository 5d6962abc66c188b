"""Blocking calls on native threads of their own, while greenlets and coroutines go on: `tricorn.offload`.

    pool     threads, and lines of calls
    board    where a worker says what they do
    call     one call, and what passes between caller and thread
    hubs     how a greenlet or a coroutine waits

In a greenlet worker a call waits cooperatively; where an event loop runs it is to be awaited; elsewhere it is made as
it stands. Nothing here starts a thread before a call needs one, so that the arbiter has none.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from functools import partial, wraps
from types import ModuleType
from typing import Any, Literal, TypeVar, overload

from tricorn import blocking_calls
from tricorn.record import Record
from tricorn.unpatched import os, time
from tricorn_green.offload import board
from tricorn_green.offload import call as calls
from tricorn_green.offload.call import bring, counts
from tricorn_green.offload.hubs import Hub, hub_of
from tricorn_green.offload.pool import Lane, Line, Pin, Pool, pools
from tricorn_green.offload.pool import begin_anew as begin_pools_anew

__all__ = [
    "Affinity",
    "Figures",
    "How",
    "bring",
    "brought",
    "count_on",
    "figures",
    "leave_pin",
    "offload",
    "pin",
    "run",
    "run_if_visited",
    "set_threads",
    "settle",
]

Affinity = Literal["any", "object", "process"]
"""Which thread makes a call: any one of the pool; always the same for an object; one for all calls of this kind."""

AFFINITIES: tuple[Affinity, ...] = ("any", "object", "process")

THREADS = 20
"""Threads of the pool without a server."""

LATE_SECONDS = 1.0
"""A wait for a thread that is worth a line in the log."""
PAUSE = 10.0
"""Seconds between two such lines."""

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class How(Record):
    """The policy of a call."""

    affinity: Affinity = "any"
    serial: bool = False
    """Calls of one object are made one after another."""
    owner: Callable[[Sequence[Any]], Any] | None = None
    """The object of a call, from its arguments."""
    name: str = ""
    """Name in the log."""


class Figures(Record):
    """Figures of this process."""

    threads: int
    busy: int
    waiting: int
    """Calls that wait for a thread of the pool."""
    pinned: int
    """Threads that belong to one object."""
    calls: int
    abandoned: int
    """Calls that are under way, and whose callers have gone."""
    abandoned_ever: int


class _Process:
    """State of this process. Only greenlet workers have a hub."""

    def __init__(self) -> None:
        self.hub: Hub | None = None
        self.tell: Callable[..., object] = lambda *_: None
        self.shared = Pool(THREADS)
        self.single: dict[str, Pin] = {}
        """The one thread of all calls of a kind, by name."""
        self.pins: dict[int, Pin | None] = {}
        """Threads by the identity of their object. None: it has none, and never gets one."""
        self.said = -PAUSE


_process = _Process()


def settle(alias: str, threads: int, tell: Callable[..., object]) -> None:
    """Prepares a greenlet worker of this class, on its hub's thread. Up to so many threads make calls.

    `tell` is a logger's `warning`.
    """
    # eventlet's `monkey_patch` replaces each RLock that it finds, so that threads of a pool would switch greenlets.
    begin_pools_anew()
    calls.begin_anew()
    _process.hub = hub_of(alias)
    _process.tell = tell
    set_threads(threads)


def set_threads(most: int) -> None:
    _process.shared.size = most


def count_on(page: board.Page) -> None:
    """Counts what threads do from now on in this page."""
    board.use(page, sum(pool.figures().threads for pool in pools()))


def configure(threads: int, page: board.Page) -> None:
    """Prepares a worker whose calls are awaited."""
    set_threads(threads)
    count_on(page)


def is_busy() -> bool:
    """Whether a thread is inside a call."""
    pools = (_process.shared, *_process.single.values(), *_pins())
    return any(pool.figures().busy for pool in pools)


def _pins() -> list[Pin]:
    return [each for each in tuple(_process.pins.values()) if each is not None]


def figures() -> Figures:
    now = _process.shared.figures()
    return Figures(
        now.threads, now.busy, now.waiting, len(_pins()), counts.calls, counts.abandoned, counts.abandoned_ever
    )


@overload
def offload(function: Callable[..., Any], /, *, affinity: Affinity = ..., serial: bool | None = ...) -> Any: ...
@overload
def offload(*, affinity: Affinity = ..., serial: bool | None = ...) -> Callable[[Callable[..., Any]], Any]: ...
def offload(
    function: Callable[..., Any] | None = None, /, *, affinity: Affinity = "any", serial: bool | None = None
) -> Any:
    """Wraps a blocking function so that a native thread calls it while the caller waits. Also a decorator.

        rows = tricorn.offload(handle.query)("...")          # greenlets: others run meanwhile; sync: a plain call
        rows = await tricorn.offload(handle.query)("...")    # event loops

    `affinity` selects the thread: `any` of the pool (default); the same one for each `object` (the `self` of a method,
    the first argument of a function); the same one for all calls of this function in the `process`.
    `serial` makes calls of one object one after another; this is the default for bound methods.

    Raises what the function raises, ValueError for an unknown affinity, TypeError if `function` is not callable.
    """
    if affinity not in AFFINITIES:
        raise ValueError(f"affinity: expected one of {', '.join(AFFINITIES)}, got {affinity!r}")
    if function is None:
        return partial(offload, affinity=affinity, serial=serial)
    if not callable(function):
        raise TypeError(f"offload: expected a function, got {type(function).__name__}")
    return _offloaded(function, affinity, serial)


def _offloaded(function: Callable[..., Any], affinity: Affinity, serial: bool | None) -> Callable[..., Any]:
    bound_to = getattr(function, "__self__", None)
    is_bound = bound_to is not None and not isinstance(bound_to, type | ModuleType)  # functions in C have their module
    how = How(
        affinity,
        is_bound if serial is None else serial,
        (lambda _: bound_to) if is_bound else _first,
        _name(function),
    )

    @wraps(function)
    def offloaded(*args: Any, **kwargs: Any) -> Any:
        return run(how, function, args, kwargs)

    return offloaded


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or type(function).__module__}.{name}"


def _first(args: Sequence[Any]) -> Any:
    return args[0] if args else None


def run(how: How, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls `function` as `how` says and as the caller can wait; returns an awaitable where an event loop runs."""
    hub = _process.hub
    if hub is not None:
        if not hub.may_wait():
            if how.affinity == "object" and how.owner is not None:
                _keep(how.owner(args), None)  # what begins on this thread stays there
            return function(*args, **kwargs)
        line = _line(how, args)
        if line is None:
            return function(*args, **kwargs)
        return calls.by_greenlet(partial(function, *args, **kwargs), line, hub, partial(_look_at, how))
    if _runs_loop():
        line = _line(how, args) or _process.shared
        return calls.by_coroutine(partial(function, *args, **kwargs), line)
    return function(*args, **kwargs)


def run_if_visited(how: How, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Like `run` in a callback of a call of the same object: by the waiting thread. Elsewhere just calls it.

    Serves functions that do not wait, and yet have to be called by the thread that calls back.
    """
    hub = _process.hub
    if hub is not None and hub.may_wait():
        line = _line(how, args)
        if line is not None and calls.is_visiting(hub.me(), line):
            return run(how, function, args, kwargs)
    return function(*args, **kwargs)


def _runs_loop() -> bool:
    events: Any = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None


def _line(how: How, args: Sequence[Any]) -> Line | None:
    """Returns the queue of a call. None: no thread is left for its object."""
    if how.affinity == "process":
        return _process.single.setdefault(how.name, _process.single.get(how.name) or Pin())
    owner = None if how.owner is None else how.owner(args)
    if owner is None:
        return _process.shared
    if how.affinity == "object":
        return pin(owner)
    return Lane.of(owner, _process.shared) if how.serial else _process.shared


def pin(owner: Any) -> Pin | None:
    """The thread that belongs to an object, for as long as that lives; None if there are as many as there may be."""
    if id(owner) in _process.pins:
        return _process.pins[id(owner)]
    made: Pin | None = None
    if len(_pins()) < _process.shared.size:
        made = Pin()
    else:
        _say(
            "All %d offload threads belong to open objects, so calls of %s block the whole worker. Keep fewer of them "
            "open, or raise offload_threads.",
            len(_pins()),
            type(owner).__qualname__,
        )
    _keep(owner, made)
    return made


def _keep(owner: Any, made: Pin | None) -> None:
    """The object has this thread from now on, or none, unless it has one."""
    key = id(owner)
    if key in _process.pins or owner is None:
        return
    try:
        weakref.finalize(owner, _unpin, key).atexit = False
    except TypeError:
        raise TypeError(
            f"offload: {type(owner).__qualname__} does not support weak references, so it cannot have its own thread: "
            "use affinity='process'."
        ) from None
    _process.pins[key] = made


def leave_pin(owner: Any) -> None:
    """The object is closed, and makes no more calls: its thread ends."""
    made = _process.pins.get(id(owner))
    if made is not None:
        _process.pins[id(owner)] = None
        made.close()


def _unpin(key: int) -> None:
    made = _process.pins.pop(key, None)
    if made is not None:
        made.close()


def brought(function: AnyFunction) -> AnyFunction:
    """Wraps a callback that a library calls on the thread it was called on: the caller calls it, the thread waits."""
    if getattr(function, "__tricorn_brought__", False):
        return function

    @wraps(function)
    def visit(*args: Any, **kwargs: Any) -> Any:
        return bring(function, *args, **kwargs)

    visit.__tricorn_brought__ = True  # type: ignore[attr-defined]
    return visit  # type: ignore[return-value]


def _look_at(how: How, call: calls.Call) -> None:
    """After a call: what an operator should know."""
    if call.is_abandoned:
        _say(
            "%s is still running in its thread after its request has ended (%d such calls in this worker): calls in C "
            "cannot be interrupted. Set a timeout in the library.",
            how.name or "An offloaded call",
            counts.abandoned,
        )
    elif call.waited > LATE_SECONDS and call.line is _process.shared:  # and not for its own object
        now = _process.shared.figures()
        _say(
            "%s waited %.1f s for a thread: all %d are busy, and %d more calls are waiting. Raise offload_threads.",
            how.name or "An offloaded call",
            call.waited,
            now.size,
            now.waiting,
        )


def _say(text: str, *arguments: object) -> None:
    now = time.monotonic()
    if now >= _process.said + PAUSE:
        _process.said = now
        _process.tell(text, *arguments)


def _begin_anew() -> None:
    """Resets the state in a forked child: its threads are made when it calls. Pools begin anew by themselves."""
    calls.begin_anew()
    _process.pins.clear()


os.register_at_fork(after_in_child=_begin_anew)
blocking_calls.provide(blocking_calls.Threads(configure, is_busy))
