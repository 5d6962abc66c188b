"""A server of the forkserver is what `python -m tricorn` would be: else the tests would test something else."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, proc
from tests.harness.classes import GREEN, THREADED, each
from tests.harness.deadline import PATIENCE
from tests.harness.forkserver import Forkserver
from tests.harness.interpreter import python

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


FACTS_OF_CODE = """
import os, sys

def facts():
    return sys.argv, os.getcwd(), sys.path[0], __name__, sys.modules["__main__"].facts is facts, sys.stdin.read()

print(facts(), os.environ["ANOTHER"])
sys.exit(int(sys.argv[1]))
"""


def test_code_finds_what_it_finds_in_a_fresh_interpreter(tmp_path: Path) -> None:
    told = [python(FACTS_OF_CODE, "0", cwd=tmp_path, env={"ANOTHER": "7"}, alias=alias) for alias in ("", "sync")]
    assert told[0].stdout == told[1].stdout
    assert [done.stderr for done in told] == ["", ""]


def test_code_that_fails_or_hangs_does_so_for_its_test() -> None:
    with pytest.raises(AssertionError, match="marker"):
        python("raise RuntimeError('marker')", alias="sync")
    with pytest.raises(AssertionError):
        python(FACTS_OF_CODE, "1", env={"ANOTHER": "7"}, alias="sync")
    with pytest.raises(subprocess.TimeoutExpired):
        python("import time; time.sleep(60)", alias="sync", within=0.5)


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
    assert process.wait(60) == 0


@pytest.mark.parametrize("pid", [1, None], ids=["no child", "a child"])
def test_a_client_that_leaves_before_its_answer_ends_nothing_for_others(pid: int | None, tmp_path: Path) -> None:
    forkserver = Forkserver.of("sync")

    def run(code: str) -> str:
        return forkserver.run(code, cwd=str(tmp_path), environ=os.environ, within=PATIENCE).stdout

    number = pid or int(run("import os; print(os.getpid())"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.connect(forkserver._socket.getpeername())
        other.send(json.dumps({"ended": number}).encode())
    assert run("print('here')") == "here\n"
