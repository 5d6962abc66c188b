"""A browser's EventSource goes from worker to worker, and its page has every event exactly once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.harness import APPS, Server, Site, until
from tests.harness.chromium import Chromium, Page

pytestmark = pytest.mark.beyond_reference("gunicorn cuts streams off when graceful_timeout is over")


def hup(server: Server, page: Page) -> None:
    server.signal(signal.SIGHUP)


def term_of_its_worker(server: Server, page: Page) -> None:
    pids = page.run("window.pids")
    assert isinstance(pids, list)
    os.kill(int(pids[-1]), signal.SIGTERM)


@pytest.mark.parametrize("leave", [hup, term_of_its_worker])
def test_a_worker_that_leaves(leave: Callable[[Server, Page], None]) -> None:
    options = {"workers": 2, "graceful_timeout": 3600, "sse_retry": "10-100"}
    with Server("event_source:application", worker_class="asgi", **options) as server:  # type: ignore[arg-type]
        misses_nothing(server, leave)


def test_reload_of_changed_code() -> None:
    config = "worker_class = 'asgi'\nworkers = 2\nreload = True\ngraceful_timeout = 3600\nsse_retry = '10-100'\n"
    source = Path(APPS, "asgi", "event_source.py").read_text()

    def change(server: Server, page: Page) -> None:
        server.write("mine.py", f"{source}\n# {page.run('window.opened')}\n")

    with Site(config, app="mine:application", workers=2, files={"mine.py": source}) as server:
        server.log.wait("Ready: ")
        misses_nothing(server, change)


def misses_nothing(server: Server, leave: Callable[[Server, Page], None]) -> None:
    with Chromium() as browser:
        page = browser.open(f"http://127.0.0.1:{server.port}/")
        until(lambda: page.run("window.ids.length > 20"), "events come")
        for again in range(2, 5):
            leave(server, page)
            until(partial(page.run, f"window.opened >= {again}"), "the browser has come back")
            seen = page.run("window.ids.length")
            until(partial(page.run, f"window.ids.length > {seen} + 20"), "events come again")
        assert page.run("window.ids.every((id, place) => id === place + 1)"), page.run("window.ids.join()")
        assert not server.log.matching(r"Traceback|\[ERROR\]"), server.log.text
