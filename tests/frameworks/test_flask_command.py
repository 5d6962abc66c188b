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
        server.log.wait(r"Ready: 2 gthread workers serve shop:create_app at \S+ \([\d.]+ s\)$")
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


@pytest.mark.parametrize(
    ("arguments", "options"), [(("--debug",), ()), ((), ("--debug",)), ((), ("--no-debug", "--debug"))]
)
def test_debug_reloads_and_shows_the_debugger_wherever_it_stands(
    arguments: tuple[str, ...], options: tuple[str, ...]
) -> None:
    with FlaskServer("--app", "shop", *arguments, options=options) as server:
        assert server.text.startswith("one debug=True")
        assert "Werkzeug Debugger" in server.get("/error", ("Host", "localhost")).text
        replaced(server, lambda: server.write("two, longer"))
        until(lambda: server.text.startswith("two"), "the new code")


def test_no_debug_beats_the_variable() -> None:
    with FlaskServer("--app", "shop", options=("--no-debug",), env={"FLASK_DEBUG": "1"}, expects="marker") as server:
        assert server.text.startswith("one debug=False")
        assert "Werkzeug Debugger" not in server.get("/error").text


def test_every_flag_of_run_has_a_meaning() -> None:
    """Each option of `flask run` becomes something of tricorn's that its parser understands."""
    from flask.cli import run_command
    from tricorn.config.command_line import read_arguments
    from tricorn.contrib.flask import _words

    values = {"host": "127.0.0.2", "port": "5001", "cert": "c.pem", "key": "k.pem", "extra_files": "a:b"}
    expected = {
        "--host": ("bind", ["127.0.0.2:5000"]),
        "--port": ("bind", ["127.0.0.1:5001"]),
        "--cert": ("certfile", "c.pem"),
        "--key": ("keyfile", "k.pem"),
        "--reload": ("reload", True),
        "--no-reload": ("reload", False),
        "--debug": ("wsgi_app", "tricorn.contrib.flask:make_with_debugger"),
        "--no-debug": ("wsgi_app", "tricorn.contrib.flask:make"),
        "--debugger": ("wsgi_app", "tricorn.contrib.flask:make_with_debugger"),
        "--no-debugger": ("wsgi_app", "tricorn.contrib.flask:make"),
        "--with-threads": ("threads", "16"),
        "--without-threads": ("threads", "1"),
        "--extra-files": ("reload_extra_files", ["a", "b"]),
        "--exclude-patterns": ("reload_excludes", ["x*"]),
    }
    asked = set()
    for option in run_command.params:
        for flag in (*option.opts, *option.secondary_opts):
            if flag == "--help":
                continue
            words = [flag] if getattr(option, "is_flag", False) else [flag, values.get(str(option.name), "x*")]
            layer = read_arguments(list(_words(words, debug=flag == "--debug")))
            long = next(each for each in (*option.opts, *option.secondary_opts) if each.startswith("--"))
            name, value = expected[flag if flag.startswith("--") else long]
            assert layer.values[name].value == value, flag
            asked.add(flag)
    assert {"-h", "-p", "--debug", "--cert"} <= asked


def test_values_may_be_part_of_the_word() -> None:
    from tricorn.contrib.flask import _translated

    words = ("-p5001", "--port=5002", "-h=::1", "-kgthread", "-w", "2", "--threads=3")
    assert list(_translated(words)) == [
        *("--port", "5001", "--port=5002", "--host", "::1"),
        *("-kgthread", "-w", "2", "--threads=3"),
    ]


def test_of_a_module_without_an_application_flask_says_what_is_missing() -> None:
    with FlaskServer("--app", "shop:missing", wait=False) as server:
        assert server.wait_exit() == 4
        assert "Failed to find attribute 'missing' in 'shop'." in server.log.text


def test_its_help_names_the_flags_of_run() -> None:
    with FlaskServer("--app", "shop", options=("--help",), wait=False) as server:
        assert server.wait_exit() == 0
        assert "`tricorn --help`" in " ".join(server.out.text.split())
