"""Command lines of uvicorn's, hypercorn's and granian's, with another first word."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, until

pytestmark = pytest.mark.beyond_reference("they are other servers'")

MAIN = """\
import os

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    told = {"scheme": scope["scheme"], "client": scope["client"], "root_path": scope["root_path"], "A": os.getenv("A")}
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": __import__("json").dumps(told).encode()})

def create_app():
    return app
"""

LOGS_JSON = {
    "version": 1,
    "handlers": {"file": {"class": "logging.FileHandler", "filename": "json.log"}},
    "root": {"handlers": ["file"], "level": "INFO"},
}
LOGS_YAML = """\
version: 1
handlers:
  file: {class: logging.FileHandler, filename: yaml.log}
root: {handlers: [file], level: INFO}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text(MAIN)
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / ".env").write_text("A=from .env\n")
    (tmp_path / "log.json").write_text(json.dumps(LOGS_JSON))
    (tmp_path / "log.yaml").write_text(LOGS_YAML)
    return tmp_path


class Given(Server):
    """A server whose command line is given as a whole; `PORT` in it is its port."""

    def __init__(self, line: str, folder: Path, **options: Any) -> None:
        super().__init__("", chdir=None, **options)
        shutil.copytree(folder, self.directory, dirs_exist_ok=True)
        own = self.argv[: self.argv.index("-b")]
        self.argv = [*own, *line.replace("PORT", str(self.port)).split()]


def told(line: str, folder: Path, *fields: tuple[str, str], workers: int = 1) -> tuple[Server, Any]:
    with Given(line, folder, workers=workers) as server:
        reply = server.get("/", *fields)
        assert reply.status == 200
        return server, reply.json()


FORWARDED = (("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "1.2.3.4"))


@pytest.mark.parametrize(
    "line",
    [
        "main:app --host 127.0.0.1 --port PORT",
        "main:app --port PORT --loop asyncio --http h11 --ws websockets --lifespan on --interface asgi3",
        "--host 127.0.0.1 --port PORT --workers 2 --log-level warning --no-access-log main:app",
        "main:app --port PORT --timeout-keep-alive 65 --timeout-graceful-shutdown 5 --limit-max-requests 1000",
        "main:app --port PORT --ws-max-size 1000 --ws-max-queue 4 --ws-ping-interval 5 --ws-ping-timeout 5.5",
        "main:create_app --factory --port PORT --backlog 100 --limit-concurrency 20 --no-use-colors",
        "main:create_app --factory --port PORT --reload --reload-dir src --reload-include *.html --reload-exclude out",
        "--host 127.0.0.1 --port PORT --interface asgi --loop asyncio --blocking-threads 2 --no-log main:app",
        "main:app -b 127.0.0.1:PORT -k asyncio -w 2 --graceful-timeout 5 --read-timeout 30",
    ],
)
def test_uvicorn_command_serves(line: str, folder: Path) -> None:
    with Given(line, folder, wait=False) as server:
        until(server._accepts, "the server accepts connections")
        assert server.get("/").status == 200


def test_an_app_dir_and_variables_of_a_file(folder: Path) -> None:
    (folder / "main.py").unlink()
    _, found = told("main:app --app-dir src --env-file .env --port PORT --root-path /api", folder)
    assert (found["A"], found["root_path"]) == ("from .env", "/api")


def test_uvicorn_environment_variables(folder: Path) -> None:
    environ = {"UVICORN_APP": "main:app", "UVICORN_ROOT_PATH": "/api", "UVICORN_WORKERS": "2", "UVICORN_HOST": "::1"}
    with Given("--host 127.0.0.1 --port PORT", folder, workers=2, env=environ) as server:
        assert server.get("/").json()["root_path"] == "/api"
        server.log.wait("Settings from environment variables: UVICORN_ROOT_PATH, UVICORN_WORKERS, UVICORN_APP$")


def test_proxy_headers(folder: Path) -> None:
    _, found = told("main:app --port PORT --proxy-headers --forwarded-allow-ips *", folder, *FORWARDED)
    assert found["scheme"] == "https"
    _, found = told("main:app --port PORT --no-proxy-headers", folder, *FORWARDED)
    assert found["scheme"] == "http"


def test_a_unix_socket(folder: Path) -> None:
    with Given("main:app --uds server.sock", folder, wait=False) as server:
        server.address = os.fspath(server.directory / "server.sock")
        until(server._accepts, "the server accepts connections")
        assert server.get("/").status == 200


@pytest.mark.parametrize("name", ["json", "yaml"])
def test_a_log_configuration(name: str, folder: Path) -> None:
    with Given(f"main:app --port PORT --log-config log.{name}", folder, wait=False) as server:
        until(server._accepts, "the server accepts connections")
        until(lambda: "Listening at" in (server.directory / f"{name}.log").read_text(), "the log is where it belongs")


def test_an_access_log(folder: Path) -> None:
    with Given("main:app --port PORT --access-log", folder) as server:
        server.get("/")
        server.out.wait(r'"GET / HTTP/1\.1" 200')


def test_what_is_not_there_is_refused_and_may_be_left_out(folder: Path) -> None:
    line = "main:app --port PORT --quic-bind :4433 --ssl-keyfile-password secret"
    with Given(line, folder, wait=False) as server:
        assert server.wait_exit() == 2
        assert "argument --quic-bind: HTTP/3 is not available" in server.log.text
    with Given(f"{line} --unavailable warn", folder) as server:
        assert server.get("/").status == 200
        assert len(server.log.matching(r"\[WARNING\].*It was ignored")) == 2
