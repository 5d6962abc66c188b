"""Servers that the effects of many settings are seen on, one after another.

An effect takes such a server by the name of a parameter. A setting has a server of its own only where its effect would
hide another one's, or ends the server.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.harness import Site

MAKERS: dict[str, Callable[[], Site]] = {}
HERE = "import os\nhere = os.path.dirname(__file__)\n"
"""The first lines of a configuration that has files beside it."""


def shared(make: Callable[[], Site]) -> Callable[[], Site]:
    """Effects with a parameter of this name get the server that the function makes."""
    assert make.__name__ not in MAKERS, f"two servers have the name {make.__name__}"
    MAKERS[make.__name__] = make
    return make


class Servers:
    """The shared servers that run."""

    def __init__(self) -> None:
        self._running: dict[str, Site] = {}

    def get(self, name: str) -> Site:
        if name not in self._running:
            site = MAKERS[name]()
            site.start()
            self._running[name] = site
        return self._running[name]

    def drop(self, name: str) -> None:
        """Ends a server on which an effect was not seen. The next effect gets a new one."""
        if site := self._running.pop(name, None):
            site.stop(check=False)

    def stop(self) -> None:
        """Stops all at once. An AssertionError has the complaints of `Server.stop`."""
        with ThreadPoolExecutor(max(1, len(self._running))) as threads:
            complaints = list(threads.map(_complaint, self._running, self._running.values()))
        self._running.clear()
        assert not any(complaints), "\n".join(filter(None, complaints))


def _complaint(name: str, site: Site) -> str:
    try:
        site.stop()
    except (AssertionError, OSError) as error:  # the others are to be stopped all the same
        return f"{name}: {error}"
    return ""
