"""A server of the forkserver is what `python -m tricorn` would be: else the tests would test something else."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, proc
from tests.harness.classes import GREEN, THREADED, each
from tests.harness.forkserver import Forkserver

pytestmark = pytest.mark.beyond_reference("only our own server is forked")

PROGRAM = {"__mp_main__", "array", "json", "json.decoder", "json.encoder", "json.scanner", "runpy"}
"""What the program of the forkserver needs, and a server may do without."""


def facts(worker_class: str, *, fresh: bool) -> dict[str, Any]:
    with Server("start:application", worker_class=worker_class, bind="127.0.0.1:0", fresh=fresh, wait=False) as server:
        port = server.log.wait(r"Listening at: http://127.0.0.1:(\d+)")[0][1]
        server.address = ("127.0.0.1", int(port))
        server.wait_ready()
        found: dict[str, Any] = server.get("/").json()
        directory, mark = str(server.directory), found["env"].pop("TEST_MARK_OF_TRICORN")
    assert mark
    found["signals"] = {key: re.sub(r" at 0x\w+", "", value) for key, value in found["signals"].items()}
    return {key: str(value).replace(directory, "D") if key != "modules" else value for key, value in found.items()}


@pytest.mark.parametrize("worker_class", each(*THREADED, *GREEN, "tornado"))
def test_a_forked_server_is_like_a_fresh_one(worker_class: str) -> None:
    forked, fresh = (facts(worker_class, fresh=kind) for kind in (False, True))
    more = set(forked.pop("modules")) - set(fresh.pop("modules"))
    assert more <= PROGRAM
    assert forked == fresh


def test_an_environment_that_an_interpreter_reads_gets_one() -> None:
    with Server("start:application", env={"PYTHONHASHSEED": "7"}) as server:
        assert server.pid in proc.children(os.getpid())
    with Server("start:application", env={"ANOTHER": "7"}) as server:
        assert server.pid not in proc.children(os.getpid())
        assert server.get("/").json()["env"]["ANOTHER"] == "7"


def test_the_processes_of_a_run_share_one_that_ends_with_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    first, second = Forkserver("sync"), Forkserver("sync")
    process = first._process
    assert process is not None
    assert second._process is None
    first._socket.close()
    for _ in range(2):
        forked = second.start(["--version"], str(tmp_path), os.environ)
        assert forked.stdout.read().startswith(b"tricorn (version ")
        assert forked.wait(10) == 0
        assert process.poll() is None
        forked.stdout.close()
        forked.stderr.close()
    second.stop()
    assert process.wait(10) == 0
