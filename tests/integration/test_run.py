"""`tricorn.run` in programs of one's own."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading

import pytest
import tricorn

from tests.harness import Server
from tests.harness.site import replaced

pytestmark = pytest.mark.beyond_reference("it has no such function")

PROGRAM = """\
import os, signal, sys, tricorn
import own

def wsgi(environ, start_response):
    start_response("200 OK", [])
    return [b"wsgi %d" % os.getppid()]

async def asgi(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"asgi"})

def make():
    return asgi

class Maker:
    def make(self, config=None):
        return asgi

    http_app = make

class Failing:
    async def __call__(self, scope, receive, send):
        assert scope["type"] == "lifespan"
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

server, failing = Maker(), Failing()

def hello(server):
    server.log.info("a hook of the program's")

def main():
    before = signal.getsignal(signal.SIGTERM)
    local = Failing()
    status = tricorn.run(APP, host="127.0.0.1", port=PORT, OPTIONS)
    assert signal.getsignal(signal.SIGTERM) is before
    print("returned", status, flush=True)
    return status

if __name__ == "__main__":
    sys.exit(main() + 40)
"""


class Program(Server):
    def __init__(self, app: str, options: str = "", **more: object) -> None:
        super().__init__("", chdir=None, fresh=True, **more)  # type: ignore[arg-type]
        text = PROGRAM.replace("APP", app).replace("PORT", str(self.port)).replace("OPTIONS", options)
        (self.directory / "program.py").write_text(text)
        (self.directory / "own.py").write_text("async def found(scope, receive, send): ...\n")
        self.argv = [sys.executable, "program.py", "an argument", "--of=the program's"]


@pytest.mark.parametrize(
    ("app", "options", "body"),
    [
        ("make", "", b"asgi"),
        ("Maker().make", "", b"asgi"),
        ("server", "", b"asgi"),
        ("wsgi", "workers=2", b"wsgi"),
        ("asgi", "log_level='info', timeout_keep_alive=5", b"asgi"),
        ("'program:asgi'", "workers=2", b"asgi"),
        ("'program:make'", "factory=True", b"asgi"),
        ("make", "factory=True", b"asgi"),
    ],
)
def test_it_serves_until_it_is_told_to_stop(app: str, options: str, body: bytes) -> None:
    with Program(app, options, workers=2 if "workers" in options else 1) as server:
        assert server.get("/").body.startswith(body)
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 40
        assert [line for line in server.out.lines if line.startswith("returned")] == ["returned 0"], "in no worker"


def test_a_reload_goes_on_with_the_same_object() -> None:
    with Program("wsgi", "on_reload=hello") as server:
        replaced(server, lambda: server.signal(signal.SIGHUP))
        assert server.get("/").body == b"wsgi %d" % server.pid
        server.log.wait("a hook of the program's")


def test_what_cannot_be_used_is_said_and_exits() -> None:
    with Program("wsgi", "workers=0", wait=False) as server:
        assert server.wait_exit() == 1
        assert "Error: Invalid value for workers: 0 (from tricorn.run()): expected at least 1." in server.log.text


@pytest.mark.parametrize(
    ("app", "options", "status", "words"),
    [
        ("failing", "", 3, "The application failed to start: no database"),
        ("wsgi", "reload=True", 1, "reload requires the application as"),
        ("'program:nothing'", "", 4, "Failed to find attribute 'nothing' in 'program'"),
        ("len('no application')", "", 4, "Application object must be callable."),
    ],
)
def test_a_start_that_fails_ends_the_program_with_the_status(app: str, options: str, status: int, words: str) -> None:
    with Program(app, options, wait=False) as server:
        assert server.wait_exit() == status
        assert words in server.log.text
        assert "returned" not in server.out.text


def test_a_port_that_is_taken_ends_the_program() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Program("wsgi", bind=f"127.0.0.1:{port}", wait=False) as server:
            assert server.wait_exit() == 1
            assert f"Cannot listen on 127.0.0.1:{port}: address already in use" in server.log.text
            assert "returned" not in server.out.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_it_returns_when_it_is_told_to_stop(number: signal.Signals) -> None:
    with Program("asgi") as server:
        server.signal(number)
        assert server.wait_exit() == 40
        assert server.out.text.split() == ["returned", "0"]


@pytest.mark.parametrize(
    ("app", "name"),
    [
        ("failing", "__main__:failing"),
        ("wsgi", "__main__:wsgi"),
        ("server", "__main__:server"),
        ("own.found", "own:found"),
        ("local", "__main__:main.<locals>.local"),
        ("Failing()", "__main__:Failing"),
    ],
)
def test_the_log_names_an_object_as_the_program_does(app: str, name: str) -> None:
    with Program(app, "asgi_lifespan='off'") as server:
        server.log.wait(f"Ready: 1 .*worker serves {re.escape(name)} at ")


def test_a_name_that_is_none_is_an_exception() -> None:
    with Program("wsgi", "wrokers=2", wait=False) as server:
        assert server.wait_exit() == 1
        assert "TypeError: tricorn.run() has no setting 'wrokers'; did you mean 'workers'?" in server.log.text


def test_run_is_refused_in_another_thread() -> None:
    raised: list[BaseException] = []

    def call() -> None:
        try:
            tricorn.run("main:app")
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert "main thread" in str(raised[0])


def test_the_server_is_not_imported_by_the_package() -> None:
    code = "import sys, tricorn; print([name for name in sys.modules if name.startswith('tricorn.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
