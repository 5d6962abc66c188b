"""`flask tricorn`."""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest

from tests.harness import Server, until
from tests.harness.needs import needs
from tests.harness.site import replaced

needs("flask")
pytestmark = pytest.mark.beyond_reference("it has no such command")

SHOP = """\
import os
from flask import Flask

print("imported by", os.getpid(), flush=True)

def create_app():
    app = Flask(__name__)

    @app.get("/")
    def hello():
        return f"{TEXT} debug={app.debug} ppid={os.getppid()}"

    @app.get("/error")
    def error():
        raise RuntimeError("marker")

    return app
"""


class FlaskServer(Server):
    """`flask ARGUMENTS tricorn OPTIONS` in a directory with the module `shop`."""

    def __init__(self, *arguments: str, options: tuple[str, ...] = (), **more: Any) -> None:
        super().__init__("", chdir=None, fresh=True, **more)
        self.write("one")
        self.argv = [sys.executable, "-m", "flask", *arguments, "tricorn", "-p", str(self.port), *options]

    def write(self, text: str) -> None:
        (self.directory / "shop.py").write_text(SHOP.replace("{TEXT}", text))

    @property
    def text(self) -> str:
        return self.get("/").text


def test_it_serves_the_application_that_flask_knows() -> None:
    with FlaskServer("--app", "shop:create_app", options=("-w", "2", "--graceful-timeout", "5"), workers=2) as server:
        assert server.text == f"one debug=False ppid={server.pid}"
        server.log.wait("Using worker: gthread")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert f"imported by {server.pid}" not in server.out.text, "it is loaded after the fork"
        assert "imported by" in server.out.text


def test_variables_name_the_application_and_debug_reloads_it() -> None:
    with FlaskServer(env={"FLASK_APP": "shop", "FLASK_DEBUG": "1"}) as server:
        assert server.text.startswith("one debug=True")
        replaced(server, lambda: server.write("two, longer"))
        until(lambda: server.text.startswith("two"), "the new code")


def test_with_debug_an_exception_is_shown_by_the_debugger() -> None:
    with FlaskServer("--app", "shop", "--debug", options=("--no-reload",)) as server:
        reply = server.get("/error", ("Host", "localhost"))
        assert reply.status == 500
        assert "Werkzeug Debugger" in reply.text
    with FlaskServer("--app", "shop", "--debug", options=("--no-debugger", "--no-reload"), expects="marker") as server:
        assert "Werkzeug Debugger" not in server.get("/error").text


def test_of_a_module_without_an_application_flask_says_what_is_missing() -> None:
    with FlaskServer("--app", "shop:missing", wait=False) as server:
        assert server.wait_exit() == 4
        assert "Failed to find attribute 'missing' in 'shop'." in server.log.text


def test_its_help_names_the_flags_of_run() -> None:
    with FlaskServer("--app", "shop", options=("--help",), wait=False) as server:
        assert server.wait_exit() == 0
        assert "`tricorn --help`" in " ".join(server.out.text.split())
