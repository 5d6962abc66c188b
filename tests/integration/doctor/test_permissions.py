"""Another user, a container's seccomp profile: the evidence is whole, or it is said what is missing."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tricorn import _core
from tricorn.control.client import Control

from tests.harness import Site, seccomp, until
from tests.harness.child import in_child
from tests.integration.doctor.patient import Patient

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
confined = pytest.mark.skipif(not seccomp.is_known(), reason="the numbers of this machine's system calls are not known")
OTHER = 65534
ROOT = Path(__file__).parents[3]

APPLICATION = """
import ctypes
C = ctypes.CDLL(None)
def holds():
    C.usleep(400_000)  # here
def holds_too():
    C.usleep(400_000)
def application(environ, start_response):
    {"/holds": holds, "/holds_too": holds_too}.get(environ["PATH_INFO"], int)()
    start_response("204 No Content", [])
    return []
"""

BLOCKED = r"The event loop of worker .* was blocked .*"
NEWS = "Not available: "

# Another user may not be permitted to pass the folder in which this interpreter lies: in the server's own view of the
# file system (CLONE_NEWNS) an empty one that all may pass stands in its place, with the interpreter in it.
BEGIN = f"""
import ctypes, os, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
C, private_and_below, bind_and_below = ctypes.CDLL(None), 1 << 18 | 1 << 14, 1 << 12 | 1 << 14
def mount(source, target, kind, flags, data=None):
    assert C.mount(os.fsencode(source), os.fsencode(target), kind, flags, data) == 0, target
assert C.unshare(0x20000) == 0
mount("none", "/", None, private_and_below)
for needed in (Path(sys.base_prefix), Path(sys.prefix), Path({str(ROOT)!r})):
    closed = [each for each in reversed(needed.parents) if not each.stat().st_mode & 1]
    if closed:
        inside = os.open(needed, os.O_PATH)
        if closed[0].stat().st_dev == needed.stat().st_dev:
            mount("none", closed[0], b"tmpfs", 0, b"mode=755")
        needed.mkdir(parents=True)
        mount(f"/proc/self/fd/{{inside}}", needed, None, bind_and_below)
        os.close(inside)
worker_class = "gevent"
"""
CONFINED = "from tests.harness import seccomp\nseccomp.forbid()\n"
USER = f"user = group = {OTHER}\n"
OWN_CHANGE = f"def post_fork(server, worker):\n    import os\n    os.setgid({OTHER})\n    os.setuid({OTHER})\n"
NO_PROC = """
def post_fork(server, worker):
    assert C.unshare(0x20000) == 0
    mount("none", "/proc", b"tmpfs", 0)
"""


def told(directory: Path, config: str) -> tuple[Mapping[str, Any], list[str]]:
    """The first record of a stall of a worker with this configuration, and the lines of the log about two of them."""
    control = directory / "ctl"
    config = f"{BEGIN}control_socket = {str(control)!r}\ntimeout = 0\n{config}"
    site = Site(config, app="work:application", files={"work.py": APPLICATION}, fresh=True)
    site.directory.chmod(0o755)  # the worker's user loads the application from there
    with site as server:
        server.get("/")
        for path in ("/holds", "/holds_too"):
            before = len(server.log.matching(BLOCKED))
            until(
                lambda path=path, before=before: (
                    server.get(path) and server.get("/") and len(server.log.matching(BLOCKED)) > before
                ),
                "it is told",
                every=0.1,
            )
        with Control.connect(str(control)) as connection:
            record = connection.ask("stalls", records=True)["records"][0]
        return record, [line[0] for line in server.log.matching(BLOCKED)]


def is_whole(record: Mapping[str, Any]) -> bool:
    line = APPLICATION.splitlines().index("    C.usleep(400_000)  # here") + 1
    assert record["missing"] is None
    assert (record["verdict"], record["line"]) == ("BLOCKED_SYSCALL", line)
    assert record["call"] in ("nanosleep", "clock_nanosleep")
    assert record["blocked"] > 0.5
    return True


@as_root
@confined
@pytest.mark.parametrize("config", [USER, CONFINED, USER + CONFINED], ids=["user", "container", "user-in-container"])
def test_the_evidence_is_whole(tmp_path: Path, config: str) -> None:
    record, lines = told(tmp_path, config)
    assert is_whole(record)
    assert not [line for line in lines if NEWS in line]


@as_root
def test_a_hook_that_changes_the_user_leaves_no_system_calls_and_that_is_said_once(tmp_path: Path) -> None:
    """The server does not know of it, and has kept no file open."""
    record, lines = told(tmp_path, OWN_CHANGE)
    assert "/proc/PID/task/TID/syscall cannot be read: this process is not dumpable" in record["missing"]
    assert (record["function"], record["call"]) == ("holds", None), "its frames are told all the same"
    assert record["blocked"] > 0.5
    assert [NEWS in line for line in lines[:2]] == [True, False]


@as_root
def test_a_stall_that_cannot_be_looked_at_is_told_with_its_length_and_why(tmp_path: Path) -> None:
    record, lines = told(tmp_path, NO_PROC)
    assert record["verdict"] == "UNDECIDED"
    assert record["duration"] >= 0.3
    assert record["sentence"].startswith("Unknown: Cannot read /proc/self/maps")
    assert record["request"] == "GET /holds"
    assert NEWS in lines[0]


@as_root
def test_a_process_of_another_user_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with Patient(tmp_path, "import time\ntime.sleep(600)  # here\n") as patient:
        patient.here()

        def as_nobody() -> str:
            os.setgid(OTHER)
            os.setuid(OTHER)
            return refusal(lambda: _core.doctor_look(patient.pid, 0.01))

        said = in_child(as_nobody)
    assert f"the process belongs to user 0, this command runs as user {OTHER}" in said


@as_root
def test_a_process_that_has_changed_its_user_is_refused_with_a_sentence(tmp_path: Path) -> None:
    code = f"""
    import os, time
    os.setgid({OTHER})
    os.setuid({OTHER})
    time.sleep(600)  # here
    """
    with Patient(tmp_path, code) as patient:
        assert patient.verdict("BLOCKED_SYSCALL"), "root may look"

        def as_nobody() -> str:
            os.setgid(OTHER)
            os.setuid(OTHER)
            return refusal(lambda: _core.doctor_look(patient.pid, 0.01))

        assert "is not dumpable: only root may inspect it" in in_child(as_nobody)


@confined
def test_another_process_is_looked_at_by_its_file_where_the_call_is_forbidden(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        code = f"""
        import socket
        sock = socket.create_connection(("127.0.0.1", {silent.getsockname()[1]}))
        sock.recv(10)  # here
        """
        with Patient(tmp_path, code) as patient:
            patient.here(lambda thread: thread["call"] and thread["call"]["name"] == "recvfrom")

            def in_container() -> Any:
                seccomp.forbid()
                return json.loads(_core.doctor_look(patient.pid, 0.05))

            look = in_child(in_container)
            (thread,) = (thread for thread in look["threads"] if patient.is_here(thread))
    assert thread["verdict"] == "BLOCKED_SYSCALL"
    assert thread["call"]["descriptors"][0]["what"].startswith("socket:["), "the peer is not told"
    assert [note.partition(":")[0] for note in look["missing"]] == ["Peers of sockets are missing"]
    assert "Reading memory through /proc/PID/mem, because process_vm_readv is not permitted here." in look["notes"]


def refusal(look: Callable[[], object]) -> str:
    try:
        look()
    except PermissionError as error:
        return str(error)
    return "not refused"
