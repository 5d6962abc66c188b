"""Counters of a worker's threads on its page of the scoreboard. Other processes have no such page.

`page` is asked for at each change, and never kept: a forked child must not write on its parent's.
"""

from __future__ import annotations

from typing import Protocol

from tricorn.unpatched import os


class Page(Protocol):
    """Each of these is an addition to words of shared memory, and may be made by any thread."""

    def offload_waits(self, change: int, /) -> None:
        """So many calls more wait for their turn."""

    def offload_begins(self) -> None: ...
    def offload_ends(self, nanoseconds: int, /) -> None: ...
    def offload_abandoned(self) -> None: ...
    def offload_threads(self, change: int, /) -> None: ...


class NoPage:
    def offload_waits(self, change: int, /) -> None:
        """See `Page`."""

    def offload_begins(self) -> None:
        """See `Page`."""

    def offload_ends(self, nanoseconds: int, /) -> None:
        """See `Page`."""

    def offload_abandoned(self) -> None:
        """See `Page`."""

    def offload_threads(self, change: int, /) -> None:
        """See `Page`."""


_pages: list[Page] = [NoPage()]


def page() -> Page:
    return _pages[-1]


def use(shown: Page, threads: int) -> None:
    """Writes to this page from now on. `threads`: those that exist already."""
    _pages[-1] = shown
    shown.offload_threads(threads)


def _begin_anew() -> None:
    _pages[-1] = NoPage()


os.register_at_fork(after_in_child=_begin_anew)
