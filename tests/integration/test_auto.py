"""Without a worker class the application decides."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, Site, module, until
from tests.harness.classes import each
from tests.harness.server import free_port, run

pytestmark = pytest.mark.beyond_reference("its class is the operator's to choose")

STAMP = r"\[INFO\] Using worker: "

ASYNC = """\
async def {name}(scope, receive, send):
    if scope["type"] != "http":
        raise AssertionError(scope["type"])
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": b"asgi"}})
"""

WSGI = """\
def {name}(environ, start_response):
    start_response("200 OK", [])
    return [b"wsgi"]
"""
FACTORY = f"def create_app():\n    return made\n\n{WSGI.format(name='made')}"

LOOP = """\
import asyncio, warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    loop = asyncio.get_event_loop()

async def application(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    same = asyncio.get_running_loop() is loop
    await send({"type": "http.response.body", "body": b"%r" % same})
"""


def auto(app: str, **options: Any) -> Server:
    return Server(app, worker_class="auto", twins=False, **options)


APPLICATIONS = {
    "sync": ("gallery:application", "a WSGI"),
    "asgi": ("asgi.gallery:application", "an ASGI"),
    "tornado": ("tornado_twins.gallery:application", "a tornado"),
    "aiohttp": ("aiohttp_twins.gallery:application", "an aiohttp"),
}


@pytest.mark.parametrize("chosen", each(*APPLICATIONS))
@pytest.mark.parametrize("extra", [(), ("--preload",)])
def test_the_class_follows_the_application(chosen: str, extra: tuple[str, ...]) -> None:
    uri, kind = APPLICATIONS[chosen]
    with auto(uri, workers=2, extra=extra) as server:
        assert server.get("/hello").status == 200
        server.log.wait(rf"{STAMP}{chosen} \(auto: '{uri}' is {kind} application\)$")
        assert len(server.log.matching(STAMP)) == 1, "said once, however many workers there are"


def test_it_is_what_the_server_does_without_being_asked() -> None:
    with Site(app="asgi.gallery:application") as server:
        assert server.get("/hello").status == 200
        server.log.wait(f"{STAMP}asgi")


def test_threads_make_it_gthread() -> None:
    with auto("gallery:application", threads=3) as server:
        server.log.wait(rf"{STAMP}gthread \(auto: ")
        assert server.get("/environ").status == 200


def test_a_reload_may_change_it() -> None:
    with Site(app="mine:application", files={"mine.py": module("wsgi")}, workers=2, extra=["-w", "2"]) as server:
        assert server.get("/").body == b"wsgi"
        server.log.wait(f"{STAMP}sync")
        server.write("mine.py", module("asgi", "asgi"))
        server.hup()
        assert server.get("/").body == b"asgi"
        server.log.wait(f"{STAMP}asgi")


def test_an_application_that_cannot_be_loaded_yet() -> None:
    """What stands in is WSGI; the one that comes in its place need not be."""
    with Site(
        app="mine:application", files={"mine.py": "1 / 0\n"}, extra=["--reload", "--reload-engine", "poll"]
    ) as server:
        assert b"ZeroDivisionError" in server.get("/").body
        server.write("mine.py", ASYNC.format(name="application"))
        until(lambda: server.get("/").body == b"asgi", "the application is served")


def test_hooks_see_one_worker_from_fork_to_exit() -> None:
    hooks = """
def pre_fork(server, worker): worker.marks = ["pre_fork"]
def post_fork(server, worker): worker.marks.append("post_fork")
def post_worker_init(worker): worker.marks.append(type(worker).__name__)
def worker_exit(server, worker): worker.log.info("marks: %s", worker.marks)
"""
    with Site(hooks, app="asgi.gallery:application") as server:
        assert server.get("/hello").status == 200
        server.stop()
        assert server.log.matching(r"marks: \['pre_fork', 'post_fork', 'AsgiWorker'\]")


def test_a_loop_that_modules_got_while_they_were_imported_is_the_one_that_runs() -> None:
    with Site(app="mine:application", files={"mine.py": LOOP}) as server:
        assert server.get("/").body == b"True"


def test_what_is_asked_for_is_not_changed() -> None:
    done = run("-b", f"127.0.0.1:{free_port()}", "-k", "sync", "asgi.gallery:application")
    assert done.returncode == 4
    assert "which the worker class 'sync' cannot run. Use --worker-class asgi, or remove the setting." in done.stderr


class TestWithoutTheName:
    @pytest.mark.parametrize("uri", ["mine", "mine.py", "folder/mine.py"])
    @pytest.mark.parametrize(
        ("text", "body"),
        [
            (WSGI.format(name="application") + ASYNC.format(name="app"), b"wsgi"),
            (ASYNC.format(name="app") + FACTORY, b"asgi"),
            (FACTORY, b"wsgi"),
        ],
        ids=["application", "app", "create_app"],
    )
    def test_the_usual_ones_are_looked_for(self, uri: str, text: str, body: bytes, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / uri).with_suffix(".py").write_text(text)
        with auto(uri, chdir=tmp_path) as server:
            assert server.get("/").body == body

    def test_a_file_elsewhere(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere.py").write_text(ASYNC.format(name="app"))
        with auto(os.fspath(tmp_path / "elsewhere.py"), chdir=None) as server:
            assert server.get("/").body == b"asgi"
