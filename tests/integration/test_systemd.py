"""What systemd hears of a service: that it is ready, reloads, and stops, and never from a worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import REFERENCE, Site, until
from tests.harness.manager import Manager

pytestmark = pytest.mark.skipif(REFERENCE, reason="the reference server only knows socket activation")


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(tmp_path / "notify")
    yield made
    made.close()


def test_a_service_from_its_start_to_its_end(manager: Manager) -> None:
    with Site("workers = 2\n", workers=2, env=manager.environ) as server:
        manager.hears("READY=1")
        assert "2 workers serve gallery:application" in manager.heard[0]
        server.hup(workers=2)
        manager.hears("READY=1", "RELOADING=1", "READY=1")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        manager.hears("READY=1", "RELOADING=1", "READY=1", "STOPPING=1")


def test_a_reload_that_fails_is_over_too(manager: Manager) -> None:
    with Site("workers = 1\n", env=manager.environ) as server:
        manager.hears("READY=1")
        server.configure("workers = (\n")
        server.signal(signal.SIGHUP)
        server.log.wait(r"conf\.py")
        until(lambda: manager.listen()[-1] == "READY=1" and len(manager.heard) in (1, 3), "it is ready again")


def test_a_server_that_cannot_start_is_never_ready(manager: Manager) -> None:
    with Site("", app="no_such_module:application", env=manager.environ, wait=False, expects="Exception") as server:
        assert server.wait_exit() != 0
    assert "READY=1" not in manager.listen()


def test_the_watchdog_is_fed_as_often_as_it_asks(manager: Manager) -> None:
    with Site("", env={**manager.environ, "WATCHDOG_USEC": "200000"}):
        until(lambda: manager.listen().count("WATCHDOG=1") >= 5, "five signs of life")


def test_the_variables_are_not_passed_on(manager: Manager) -> None:
    """A program that the application starts must not speak for the service."""
    source = (
        "import os\n"
        "def application(environ, start_response):\n"
        "    body = ' '.join(name for name in os.environ if name in ('NOTIFY_SOCKET', 'WATCHDOG_USEC')).encode()\n"
        "    start_response('200 OK', [('Content-Length', str(len(body)))])\n"
        "    return [body]\n"
    )
    environ = {**manager.environ, "WATCHDOG_USEC": "60000000"}
    with Site("", app="mine:application", files={"mine.py": source}, env=environ) as server:
        assert server.get("/").body == b""


def test_an_upgrade_names_the_new_master(manager: Manager) -> None:
    with Site("", env=manager.environ) as server:
        manager.hears("READY=1")
        server.signal(signal.SIGUSR2)
        (booted,) = server.log.wait(r"\[(\d+)\] \[INFO\] Listening at.*", count=2)[1:]
        until(lambda: len(server.log.matching("Booting worker")) == 2, "the successor's worker boots")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        until(lambda: f"MAINPID={booted[1]}" in manager.listen(), f"the successor is named, in {manager.heard}")
        assert "STOPPING=1" not in manager.heard, "the service goes on"
        os.kill(int(booted[1]), signal.SIGTERM)
        until(lambda: manager.listen()[-1] == "STOPPING=1", "now it stops")
        until(lambda: not server.leftovers(), "the successor has left")
