"""Connects a worker with the native threads that make blocking calls (`tricorn.offload`), which tricorn-green has.

An application may import them before there is a worker (`preload_app`) or in the midst of a request, so that either
side comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tricorn.unpatched import os


class Threads(NamedTuple):
    """The package's side."""

    configure: Callable[[int, Any], None]
    """Takes the largest number of threads, and the page of the scoreboard that counts their calls."""
    is_busy: Callable[[], bool]
    """Returns whether a thread is inside a call."""


_threads: list[Threads] = []
_settings: list[tuple[int, Any]] = []


def configure(most: int, page: Any) -> None:
    """Sets the largest number of threads in this worker, and the page that counts their calls."""
    _settings[:] = [(most, page)]
    for threads in _threads:
        threads.configure(most, page)


def provide(threads: Threads) -> None:
    """Registers the package that has the threads."""
    _threads[:] = [threads]
    for most, page in _settings:
        threads.configure(most, page)


def is_busy() -> bool:
    """Returns whether a thread is inside a call."""
    return any(threads.is_busy() for threads in _threads)


# A child of the application's must not count on its parent's page.
os.register_at_fork(after_in_child=_settings.clear)
