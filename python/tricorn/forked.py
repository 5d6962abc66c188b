"""Processes that the application forks: where they come back to the server, they end.

A worker is not made to be forked: a child has its connections, its epoll and its stack, and the stack leads back into
the server. The core makes itself useless in such a child (`crates/tricorn-io/src/engine/fork.rs`). This module ends it,
with the status that the application meant, as the main module of a program would:

    the application returned                     0
    sys.exit(code), raise SystemExit(code)       the code; a text is written to stderr, status 1
    any other exception                          its traceback on stderr, status 1

Standard streams are flushed. Functions registered with `atexit` do not run: they are the parent's.
A child that ends otherwise (`os._exit`, `exec`, `multiprocessing`, `subprocess`) never comes here.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from tricorn.unpatched import _thread, os, select, signal

if TYPE_CHECKING:
    import asyncio

_is_child = False
_on_fork: Callable[[], object] | None = None
"""Set while forks are guarded."""
_held_back: Collection[int] = ()
_is_registered = False
_before_leaving: list[Callable[[], object]] = []


def guard(on_fork: Callable[[], object], signals: Collection[int]) -> None:
    """Calls `on_fork` in each child that this process forks from now on.

    Until it has, these signals wait: a handler of the parent's would take one that is meant for the child.
    """
    global _on_fork, _held_back, _is_registered  # there is no way to take these functions off again
    _on_fork, _held_back = on_fork, signals
    if _is_registered:
        return
    _is_registered = True
    masks: dict[int, set[int]] = {}

    def hold_back() -> None:
        masks[_thread.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, _held_back)

    def let_through() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop(_thread.get_ident(), ()))

    def note() -> None:
        global _is_child  # it is the process that is one
        try:
            if _on_fork is not None:
                _is_child = True
                _on_fork()
        finally:
            let_through()

    os.register_at_fork(before=hold_back, after_in_parent=let_through, after_in_child=note)


def release() -> None:
    """Undoes `guard`: what this process forks from now on is none of the application's."""
    global _on_fork, _held_back
    _on_fork, _held_back = None, ()


def is_child() -> bool:
    """Whether this process was forked by the application of a worker."""
    return _is_child


def epolls() -> set[int]:
    """The descriptors of this process that are epolls: event loops do not tell theirs."""
    found = set()
    with suppress(FileNotFoundError):  # a system without them
        for name in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):
                if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[eventpoll]":
                    found.add(int(name))
    return found


def own_epoll(shared: int) -> None:
    """Replaces an epoll shared with the parent by a new, empty one. Called in a child."""
    with select.epoll() as own:
        os.dup2(own.fileno(), shared, inheritable=False)


def before_leaving(function: Callable[[], object]) -> None:
    """Calls `function` where a child would end. It does not return if the child is to live on."""
    _before_leaving.append(function)


@contextmanager
def fence() -> Iterator[None]:
    """Around code of the application: a child that it forks does not get out."""
    try:
        yield
    except BaseException as error:
        leave_if_child(error)
        raise
    leave_if_child(None)


def leave_if_child(error: BaseException | None) -> None:
    """Does nothing in a process that is none."""
    if _is_child:
        leave(error)


def leave(error: BaseException | None) -> NoReturn:
    """Ends the child; `error` is what the application let out."""
    for function in _before_leaving:
        function()
    status = 1
    with suppress(Exception):
        status = _status(error)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)


def leave_task(task: asyncio.Future[object]) -> NoReturn:
    """Ends the child after a step of the task that forked: whatever else the loop has to do is the parent's."""
    if not task.done():
        leave(SystemExit(WAITS))
    error: BaseException | None = None
    try:
        task.result()
    except BaseException as raised:
        error = raised
    leave(error)


WAITS = (
    "tricorn: a process that was forked in a coroutine ended where it awaited something: its event loop is the "
    "parent's. It may run a loop of its own (asyncio.run), or be a program of its own (subprocess)."
)


def _status(error: BaseException | None) -> int:
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        traceback.print_exception(type(error), error, error.__traceback__)
        return 1
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1
