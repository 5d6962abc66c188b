"""Servers shared by all tests of a configuration: starting one per test would take most of the time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import REFERENCE, Server

TESTS = Path(__file__).parent
LONGEST_FIRST = ("integration", "compat", "frameworks", "examples", "attacks")
"""Suites with files that take long, so that none of these is left when the other processes have nothing to do."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "beyond_reference(why): tricorn promises more here than the server it replaces")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_place)
    for item in items:
        if config.pluginmanager.hasplugin("timeout") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(90))
        promise = item.get_closest_marker("beyond_reference")
        if promise and REFERENCE:
            item.add_marker(pytest.mark.skip(reason=f"the reference server: {promise.args[0]}"))


def _place(item: pytest.Item) -> int:
    suite = item.path.relative_to(TESTS).parts[0]
    return LONGEST_FIRST.index(suite) if suite in LONGEST_FIRST else len(LONGEST_FIRST)


class Pool:
    """One server per configuration, started when first asked for."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}

    def get(self, app: str = "gallery:application", **options: Any) -> Server:
        key = repr((app, sorted(options.items())))
        server = self._servers.get(key)
        if server is not None and server.process.poll() is not None:
            # The test that brought it down has failed already; the others are owed a server of their own.
            server.stop(check=False)
            server = None
        if server is None:
            server = self._servers[key] = Server(app, **options)
            try:
                server.start()
            except BaseException:
                del self._servers[key]
                raise
        return server

    def stop(self) -> list[str]:
        complaints = []
        for key, server in self._servers.items():
            try:
                server.stop()
            except AssertionError as error:
                complaints.append(f"{key}: {error}")
        return complaints


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    complaints = pool.stop()
    assert not complaints, "\n".join(complaints)
