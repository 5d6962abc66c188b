"""The logs of gunicorn: an effect for each setting."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

from tests.compat.effects.common import FACTS, fact_site, facts
from tests.harness import Site, until

LOGGING_INI = """
[loggers]
keys = root, gunicorn.error, gunicorn.access

[handlers]
keys = file

[formatters]
keys = short

[logger_root]
level = WARNING
handlers = file

[logger_gunicorn.error]
level = INFO
handlers = file
propagate = 0
qualname = gunicorn.error

[logger_gunicorn.access]
level = INFO
handlers = file
propagate = 0
qualname = gunicorn.access

[handler_file]
class = FileHandler
formatter = short
args = (%r, "a")

[formatter_short]
format = INI %%(name)s %%(message)s
"""


def dictionary(path: Path, word: str) -> dict[str, object]:
    logger = {"level": "INFO", "handlers": ["file"], "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"short": {"format": f"{word} %(name)s %(message)s"}},
        "handlers": {"file": {"class": "logging.FileHandler", "filename": str(path), "formatter": "short"}},
        "root": {"level": "WARNING", "handlers": ["file"]},
        "loggers": {"gunicorn.error": logger, "gunicorn.access": logger},
    }


def configured(config: str, path: Path, word: str) -> None:
    """The server writes both logs as the logging configuration says."""
    with Site(config, wait=False) as server:
        until(lambda: path.exists() and f"{word} gunicorn.error Booting worker" in path.read_text(), "the boot lines")
        until(server._accepts, "it accepts")
        assert server.get("/hello?marked").status == 200
        until(lambda: re.search(rf'{word} gunicorn\.access .*"GET /hello\?marked', path.read_text()), "the access line")


def sees_accesslog(directory: Path) -> None:
    path = directory / "access"
    with Site(f"accesslog = '{path}'\n") as server:
        server.get("/hello?marked")
        until(lambda: '"GET /hello?marked HTTP/1.1" 200 6' in path.read_text(), "the line")


def sees_access_log_format(directory: Path) -> None:
    with Site("accesslog = '-'\naccess_log_format = 'line=%(m)s %(s)s %({x-a}i)s'\n") as server:
        server.get("/hello", ("X-A", "b"))
        server.out.wait("^line=GET 200 b$")


def sees_errorlog(directory: Path) -> None:
    path = directory / "error"
    with Site(f"errorlog = '{path}'\n", wait=False) as server:
        until(lambda: path.exists() and "Booting worker" in path.read_text(), "the boot lines")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert "Shutting down: Master" in path.read_text()
        assert not server.log.text


def sees_loglevel(directory: Path) -> None:
    with Site("loglevel = 'debug'\n") as server:
        server.get("/hello")
        server.log.wait(r"\[DEBUG\]")
    with Site("loglevel = 'warning'\n", wait=False) as server:
        until(server._accepts, "it accepts")
        assert server.get("/hello").status == 200
        assert "[INFO]" not in server.log.text


def sees_capture_output(directory: Path) -> None:
    path = directory / "error"
    with Site(f"capture_output = True\nerrorlog = '{path}'\n", app=FACTS, wait=False) as server:
        until(server._accepts, "it accepts")
        facts(server)
        until(lambda: "a word on standard output" in path.read_text(), "what was printed")
        until(lambda: "a word of C" in path.read_text(), "what C code wrote")
        assert "a word" not in server.out.text


def sees_logger_class(directory: Path) -> None:
    source = """
from gunicorn.glogging import Logger

class Mine(Logger):
    def setup(self, cfg):
        super().setup(cfg)
        self.info("my logger is set up")
"""
    config = "import sys\nsys.path.insert(0, pythonpath.split(',')[0])\nlogger_class = 'mylog.Mine'\n"
    with Site(config, files={"mylog.py": source}) as server:
        server.log.wait("my logger is set up")
        assert server.get("/hello").status == 200


def sees_logconfig(directory: Path) -> None:
    ini, path = directory / "logging.ini", directory / "log"
    ini.write_text(LOGGING_INI % str(path))
    configured(f"logconfig = '{ini}'\n", path, "INI")


def sees_logconfig_dict(directory: Path) -> None:
    path = directory / "log"
    configured(f"logconfig_dict = {dictionary(path, 'DICT')!r}\n", path, "DICT")


def sees_logconfig_json(directory: Path) -> None:
    file, path = directory / "logging.json", directory / "log"
    file.write_text(json.dumps(dictionary(path, "JSON")))
    configured(f"logconfig_json = '{file}'\n", path, "JSON")


def sees_enable_stdio_inheritance(directory: Path) -> None:
    """A daemon keeps what it was given as standard output."""
    pidfile = directory / "pid"
    config = (
        f"daemon = True\nenable_stdio_inheritance = True\npidfile = '{pidfile}'\nerrorlog = '{directory / 'log'}'\n"
    )
    with fact_site(config, wait=False) as server:
        server.process.wait(60)
        until(lambda: pidfile.exists() and pidfile.read_text().strip(), "the pidfile")
        until(server._accepts, "it accepts")
        try:
            facts(server)
            server.out.wait("a word on standard output")
        finally:
            os.kill(int(pidfile.read_text()), signal.SIGTERM)
            until(lambda: not pidfile.exists(), "the daemon stops")
