"""A logger of the user's that raises: it ends nothing but its line, which goes to stderr."""

from __future__ import annotations

import os
import signal

import pytest

from tests.harness import KINDS, Site, until

pytestmark = pytest.mark.beyond_reference("its arbiter ends")

LOGGER = """
from tricorn.log import Logger


class Failing(Logger):
    def info(self, *args, **kwargs):
        raise RuntimeError("no information")

    def warning(self, *args, **kwargs):
        raise LookupError("no warnings")

    error = exception = warning

    def flush(self):
        raise OSError("no flush")

    def reopen_files(self):
        raise OSError("no file")

    def access(self, *args, **kwargs):
        raise ValueError("no access line")


logger_class = Failing
"""

THIRD = """
from tricorn.log import Logger


class Failing(Logger):
    made = 0

    def __init__(self, cfg):
        Failing.made += 1
        if Failing.made in (3, 4):
            raise RuntimeError("no more of me")
        super().__init__(cfg)
"""

FAILING = """
import logging


class Failing(logging.Handler):
    def emit(self, record):
        raise RuntimeError("no record")
"""

HANDLER = """
logconfig_dict = {
    "version": 1,
    "root": {},
    "handlers": {"failing": {"()": "failing.Failing"}},
    "loggers": {"gunicorn.error": {"handlers": ["failing"], "level": "INFO"}, "gunicorn.access": {}},
}
"""


def lives_on(server: Site) -> None:
    assert server.get("/").status == 200
    (worker,) = server.worker_pids()
    os.kill(worker, signal.SIGKILL)
    until(lambda: server.worker_pids() not in ([], [worker]), "another worker")
    until(lambda: server.get("/").status == 200, "it serves")
    (worker,) = server.worker_pids()
    server.signal(signal.SIGUSR1)
    server.signal(signal.SIGHUP)
    until(lambda: server.worker_pids() not in ([], [worker]) and len(server.worker_pids()) == 1, "others")
    assert server.get("/").status == 200


@KINDS
def test_a_logger_class_that_raises_ends_nothing(worker_class: str) -> None:
    with Site(f"{LOGGER}\nworker_class = {worker_class!r}\n", app="gallery:application") as server:
        lives_on(server)
        server.log.wait(r"The logger .*\.Failing failed in info\(\); the line goes to stderr")
        server.log.wait("RuntimeError: no information")
        server.log.wait(r"\[INFO\] Handling signal: hup")
        assert server.stop() == 0


def test_a_logger_class_that_cannot_be_made_again_ends_no_server() -> None:
    """The third one is that of a reload, and the fourth that of the configuration before."""
    config = "logger_class = 'failing.Failing'"
    with Site(config, app="gallery:application", files={"failing.py": THIRD}) as server:
        (worker,) = server.worker_pids()
        server.signal(signal.SIGHUP)
        until(lambda: server.worker_pids() not in ([], [worker]) and len(server.worker_pids()) == 1, "a generation")
        server.signal(signal.SIGHUP)
        server.log.wait("Could not restore the previous log: .* no more of me")
        assert server.get("/").status == 200
        assert server.stop() == 0


def test_a_handler_that_raises_ends_nothing() -> None:
    with Site(HANDLER, app="gallery:application", files={"failing.py": FAILING}) as server:
        lives_on(server)
        server.log.wait(r"\[INFO\] Handling signal: hup")
        server.log.wait("RuntimeError: no record")
        assert server.stop() == 0
