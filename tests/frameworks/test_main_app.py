"""`tricorn main:app`, and nothing else on the command line: it serves what each framework's tutorial has.

`make check-frameworks` runs these tests with the wheel, installed into an environment of its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import Server
from tests.harness.needs import needs
from tests.harness.server import command

MAINS = Path(__file__).parent / "mains"
CLASSES = {
    "wsgi": ("sync", "a WSGI"),
    "flask": ("sync", "a WSGI"),
    "django_wsgi": ("sync", "a WSGI"),
    "asgi": ("asgi", "an ASGI"),
    "django_asgi": ("asgi", "an ASGI"),
    "starlette": ("asgi", "an ASGI"),
    "fastapi": ("asgi", "an ASGI"),
    "quart": ("asgi", "an ASGI"),
    "litestar": ("asgi", "an ASGI"),
    "tornado": ("tornado", "a tornado"),
    "aiohttp": ("aiohttp", "an aiohttp"),
}
WITH_WEBSOCKETS = frozenset(("asgi", "starlette", "fastapi", "quart", "litestar", "tornado", "aiohttp"))

pytestmark = pytest.mark.beyond_reference("its class is the operator's to choose")


class Plain(Server):
    """In the directory of `main.py`; the variable PORT says where it listens."""

    def __init__(self, name: str) -> None:
        super().__init__(worker_class="auto")
        shutil.copy(MAINS / name / "main.py", self.directory)
        self.argv = [*command(), "main:app"]
        self._env["PORT"] = str(self.port)


@pytest.fixture(scope="module", params=CLASSES)
def name(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name not in ("wsgi", "asgi"):
        needs(name.partition("_")[0])
    return name


@pytest.fixture(scope="module")
def server(name: str) -> Iterator[Server]:
    with Plain(name) as server:
        yield server


def test_the_log_names_the_class(server: Server, name: str) -> None:
    alias, kind = CLASSES[name]
    server.log.wait(rf"\[INFO\] Using worker: {alias} \(auto: 'main:app' is {kind} application\)$")
    server.log.wait(rf"\[INFO\] Ready: 1 {alias} worker serves main:app at ")


def test_main_app_answers(server: Server, name: str) -> None:
    reply = server.get("/")
    assert (reply.status, reply.body) == (200, f"Hello, {name}!".encode())


def test_main_app_streams(server: Server) -> None:
    reply = server.get("/stream")
    assert (reply.status, reply.framing, reply.body) == (200, "chunked", b"line 0\nline 1\nline 2\n")


def test_main_app_has_websockets(server: Server, name: str) -> None:
    if name not in WITH_WEBSOCKETS:
        pytest.skip(f"{name} has no such thing")
    needs("websockets")
    from websockets.sync.client import connect

    with connect(f"ws://127.0.0.1:{server.port}/ws", proxy=None) as socket:
        socket.send("there and back")
        assert socket.recv(timeout=30) == "there and back"
