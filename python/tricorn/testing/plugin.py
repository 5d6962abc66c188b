"""The pytest plugin: the fixture `tricorn_server`, and server logs in the reports of failed tests.

pytest imports this file in every project of an environment. The server itself is imported by the first test that
uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tricorn.testing.server import Server

    Factory = Callable[..., Server]


@pytest.fixture
def tricorn_server() -> Generator[Factory, None, None]:
    """Starts servers: `tricorn_server(app, worker_class=..., **settings)`. They are stopped when the test ends."""
    from tricorn.testing.server import Server

    with ExitStack() as stack:

        def start(app: Any, **settings: Any) -> Server:
            server = Server(app, **settings)
            stack.callback(server.stop)
            return server

        yield start


@pytest.hookimpl(hookwrapper=True)  # the old kind of wrapper: pytest before 8 knows no other
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    report = (yield).get_result()
    servers = sys.modules.get("tricorn.testing.server")
    if report.failed and servers is not None:
        for server in servers.running:
            report.sections.append((f"Log of the server at {server.url}", server.log[-servers.TAIL :]))
