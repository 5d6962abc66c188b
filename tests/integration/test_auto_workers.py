"""`workers = auto`: the number that this machine allows, and what is said of it."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn.config.sizing import Sizing
from tricorn.control.client import Control

from tests.harness import Server, Site, until
from tests.harness.server import free_port, run

pytestmark = pytest.mark.beyond_reference("workers is a number there")

ASGI = "asgi.gallery:application"
WSGI = "gallery:application"


def expected(kind: str) -> Sizing:
    return Sizing.here().of(kind)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One processor of the machine, for what is started here: every count is small and differs between classes."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def test_the_application_tells_the_class_and_the_class_the_number(two: None) -> None:
    sizing = expected("sync")
    with Server(WSGI, worker_class="auto", twins=False, fresh=True, extra=["-w", "auto"]) as server:
        server.log.wait(rf"Ready: {sizing.count} sync workers? serves? ")
        assert server.log.matching(re.escape(Sizing.here().sentence)), "what was known at the start"
        assert server.log.matching(re.escape(sizing.sentence)), "and what the first worker has told"
        assert server.get("/hello").status == 200


def test_an_operator_may_go_back_to_it(tmp_path: Path) -> None:
    """`scale auto` is the number of the class, as `status` says it, and not that of before the class was known."""
    count = expected("sync").count
    socket = str(tmp_path / "ctl")
    words = ["-w", "auto", "--control-socket", socket]
    with Server(WSGI, worker_class="auto", twins=False, extra=words) as server, Control(socket) as client:
        server.log.wait(rf"Ready: {count} sync worker")
        assert client.ask("scale", workers=count + 1) == {"previous": count, "workers": count + 1}
        assert client.ask("status")["workers"]["configured"] == count
        assert client.ask("scale", workers="auto") == {"previous": count + 1, "workers": count}


def test_a_class_that_is_named_needs_no_second_look(two: None) -> None:
    sizing = expected("asgi")
    with Server(ASGI, worker_class="asgi", twins=False, fresh=True, extra=["-w", "auto"]) as server:
        server.log.wait(rf"Ready: {sizing.count} asgi worker")
        assert len(server.log.matching(r"\(auto: asgi, ")) == 1


def test_signals_change_it_and_a_reload_sets_it_again() -> None:
    sizing = expected("sync")
    with Site("workers = 'auto'\nworker_class = 'sync'\n", app=WSGI) as server:
        server.log.wait(rf"Ready: {sizing.count} sync worker")
        server.signal(signal.SIGTTIN)
        until(lambda: len(server.worker_pids()) == sizing.count + 1, "one more")
        server.signal(signal.SIGTTOU)
        until(lambda: len(server.worker_pids()) == sizing.count, "one less")
        server.signal(signal.SIGTTIN)
        until(lambda: len(server.worker_pids()) == sizing.count + 1, "one more")
        server.hup(workers=sizing.count)
        assert len(server.log.matching(re.escape(sizing.sentence))) == 2, "a reload looks anew, and says so"


def test_hooks_see_a_number() -> None:
    hooks = """
workers = "auto"
worker_class = "asgi"
def when_ready(server): server.log.info("hook: %d %d", server.num_workers, server.cfg.workers)
"""
    count = expected("asgi").count
    with Site(hooks, app=ASGI) as server:
        server.log.wait(f"hook: {count} {count}$")


def test_the_platforms_variable_and_the_page_of_the_configuration() -> None:
    words = ("--print-config", "-k", "sync", "-b", f"127.0.0.1:{free_port()}", "--chdir", os.path.abspath("tests/apps"))
    done = run(*words, WSGI, env={"WEB_CONCURRENCY": "auto"})
    assert done.returncode == 0, done.stderr
    sizing = expected("sync")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("workers ")]
    assert line.split() == f"workers = {sizing.count} (WEB_CONCURRENCY, {sizing.reasons})".split()


def test_what_is_neither_a_number_nor_auto() -> None:
    done = run("-w", "automatic", WSGI)
    assert done.returncode == 2
    assert "argument -w/--workers: expected a whole number or auto, got 'automatic'" in done.stderr
