"""`tricorn.testing.serve` in the tests of a user's."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import tricorn.testing
from tricorn.testing import ServerError, serve

from tests.harness import proc
from tests.harness.deadline import until

pytestmark = pytest.mark.beyond_reference("it has no such function")


def wsgi(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    print("called", environ["PATH_INFO"], flush=True)
    start_response("200 OK", [])
    return [b"%d" % os.getppid()]


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"asgi"})


def ready(server: Any) -> None:
    server.log.info("the hook of the settings")


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as response:
        body: bytes = response.read()
    return body


def is_gone(pid: int) -> bool:
    return not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("app", [wsgi, f"{__name__}:wsgi"], ids=["callable", "name"])
def test_a_server_answers_in_the_block_and_is_gone_after_it(app: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with serve(app, workers=2, worker_class="gthread", when_ready=ready) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert get(f"{server.url}/path") == b"%d" % server.pid
        until(lambda: "called /path" in server.log, "what the application prints")
        family = [server.pid, *proc.children(server.pid)]
        assert len(family) == 3
    assert all(map(is_gone, family))
    assert server.stop() == 0
    assert "the hook of the settings" in server.log
    assert "Using worker: gthread" in server.log
    assert capfd.readouterr() == ("", ""), "what the server writes is in its log"


def test_it_serves_objects_that_no_name_leads_to() -> None:
    mark = object()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert mark is not None
        await asgi(scope, receive, send)

    with serve(app) as one, serve(wsgi) as other:
        assert get(one.url) == b"asgi"
        assert get(other.url) == b"%d" % other.pid


def test_it_listens_where_the_settings_say(tmp_path: Path) -> None:
    with serve(wsgi, uds=str(tmp_path / "socket")) as server:
        assert server.url == f"unix:{tmp_path}/socket"
    with serve(wsgi, bind=["0.0.0.0:0", "127.0.0.1:0"]) as server:
        assert [listener.rpartition(":")[0] for listener in server.listeners] == ["http://0.0.0.0", "http://127.0.0.1"]
        assert get(server.url) == b"%d" % server.pid


def test_the_environment_sets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRICORN_WORKERS", "3")
    monkeypatch.setenv("PORT", "1")
    with serve(wsgi) as server:
        assert len(proc.children(server.pid)) == 1
        assert get(server.url)


@pytest.mark.parametrize(
    ("app", "settings", "reason"),
    [
        (f"{__name__}:missing", {}, "missing"),
        (wsgi, {"workers": 0}, "Invalid value for workers: 0"),
        (wsgi, {"wrokers": 2}, "did you mean 'workers'?"),
    ],
)
def test_why_it_did_not_start_is_in_the_exception(app: Any, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ServerError, match="ended with status") as caught, serve(app, **settings):
        pass
    assert reason in str(caught.value)
    assert not tricorn.testing.server.running


def test_a_start_that_takes_too_long_is_given_up() -> None:
    def stuck(server: Any, worker: Any) -> None:
        select.select([], [], [])

    with pytest.raises(ServerError, match="not ready in time") as caught, serve(wsgi, start_timeout=1, post_fork=stuck):
        pass
    assert "Listening at" in str(caught.value)


def test_a_block_that_fails_shows_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), serve(wsgi) as server:
        raise KeyError
    assert f"Listening at: {server.url}" in capsys.readouterr().err


def test_a_server_that_has_died_is_told_by_its_status() -> None:
    with serve(wsgi) as server:
        os.kill(server.pid, signal.SIGKILL)
    assert server.stop() == -signal.SIGKILL


def test_settings_that_no_other_process_can_have() -> None:
    with pytest.raises(TypeError, match="picklable"), serve(f"{__name__}:wsgi", when_ready=lambda server: None):
        pass
    with pytest.raises(ValueError, match="daemon"), serve(wsgi, daemon=True):
        pass


DYING = """\
import os, signal, sys
from tests.integration.test_testing import wsgi
from tricorn.testing import Server
one, other = Server(wsgi), Server("tests.integration.test_testing:wsgi")
for server in one, other:
    print(server.pid, server.log_file, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_servers_end_with_the_test_process() -> None:
    done = subprocess.run([sys.executable, "-c", DYING], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    servers = [line.split() for line in done.stdout.splitlines()]
    assert len(servers) == 2
    until(lambda: all(is_gone(int(pid)) for pid, _ in servers), "the end of both servers")
    for _, log in servers:
        assert "Handling signal: term" in Path(log).read_text()
        shutil.rmtree(Path(log).parent)


def test_what_a_test_process_does_at_its_exit_is_not_done_in_servers(tmp_path: Path) -> None:
    program = """\
import atexit, sys
from tests.integration.test_testing import wsgi
from tricorn.testing import serve
atexit.register(print, "done at exit")
with serve(wsgi) as server:
    print("served")
assert "Worker exiting" in server.log
assert "done at exit" not in server.log, server.log
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["served", "done", "at", "exit"]


def test_the_package_costs_next_to_nothing_until_it_is_used() -> None:
    code = "import sys, tricorn.testing; print([name for name in sys.modules if name.startswith('tricorn.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['tricorn.testing']"
