"""`preload_app = mold`: workers forked of a process that has loaded the application, and that a reload makes anew."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from tricorn.control.client import Control

from tests.harness import ALL_CLASSES, CLASSES, NO_BOOT, THREAD_CLASSES, Load, command, configured, module, proc, until
from tests.harness.load import CLOSE
from tests.harness.molds import FAULTY_FORKS, READY, Molded, kill

WHO = """\
import os

LOADED = os.getpid()


def application(environ, start_response):
    body = f"{LOADED} {os.getpid()} {os.getppid()}".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""


@ALL_CLASSES
def test_workers_of_every_class_are_forked_by_the_mold_and_are_the_arbiters_children(worker_class: str) -> None:
    with Molded(configured(worker_class) + "workers = 2\n", workers=2) as server:
        assert server.get("/hello").status == 200
        server.steady(2)
        assert proc.children(server.mold_pid()) == []
        server.hup_molded(2)
        assert server.get("/hello").status == 200
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0


@THREAD_CLASSES
def test_the_application_is_loaded_once_in_the_mold(worker_class: str) -> None:
    files = {"mine.py": WHO}
    with Molded(
        f"worker_class = {worker_class!r}\nworkers = 3\n", app="mine:application", workers=3, files=files
    ) as it:
        answers = [it.get("/").body.decode().split() for _ in range(20)]
        assert {loaded for loaded, _, _ in answers} == {str(it.mold_pid())}
        assert {int(pid) for _, pid, _ in answers} <= set(it.worker_pids())
        assert {parent for _, _, parent in answers} == {str(it.pid)}


@CLASSES
def test_hup_renews_the_code_under_load_without_a_lost_request(worker_class: str) -> None:
    app = "gallery:application"
    with (
        Molded(configured(worker_class) + "workers = 2\n", app=app, workers=2) as server,
        Load(server.address, "/sleep?s=0.002", clients=4, fields=CLOSE) as load,
    ):
        load.settle(20)
        for _ in range(3):
            server.hup_molded(2)
            load.settle(20)
        tally = load.stop()
    assert tally.failures == []


@pytest.mark.parametrize("worker_class", ["sync", "asgi"])
def test_hup_loads_new_code(worker_class: str) -> None:
    config = f"worker_class = {worker_class!r}\nworkers = 2\n"
    files = {"mine.py": module("old", worker_class)}
    with Molded(config, app="mine:application", workers=2, files=files) as server:
        assert server.get("/").body == b"old"
        server.write("mine.py", module("renewed", worker_class))
        server.hup_molded(2)
        assert {server.get("/").body for _ in range(6)} == {b"renewed"}


BROKEN = {
    "raises": ("raise RuntimeError('import marker')\n", "import marker"),
    "syntax": ("def application(:\n", "SyntaxError"),
    "killed": ("import os\nos.kill(os.getpid(), 9)\n", "the mold was killed by SIGKILL"),
    "no_attribute": ("other = 1\n", "[Ff]ailed to find attribute"),
    "exits": ("import sys\nsys.exit(9)\n", r"sys\.exit\(9\)"),
    "thread": (
        "import threading\nthreading.Thread(target=threading.Event().wait, name='reporter', daemon=True).start()\n"
        + module("x"),
        "it has the thread 'reporter' .*post_worker_init",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_reload_to_code_that_cannot_be_loaded_or_forked_changes_nothing(case: str) -> None:
    text, why = BROKEN[case]
    files = {"mine.py": module("good")}
    with (
        Molded("workers = 2\n", app="mine:application", workers=2, files=files, expects=NO_BOOT) as server,
        Load(server.address, "/", clients=2, fields=CLOSE) as load,
    ):
        load.settle(5)
        before = {server.mold_pid(), *server.worker_pids()}
        server.write("mine.py", text)
        server.signal(signal.SIGHUP)
        server.log.wait("Reload failed; the old workers keep serving")
        assert server.log.matching(why), server.log.text
        until(lambda: set(proc.children(server.pid)) == before, "the processes there were, and no other")
        load.settle(5)
        server.write("mine.py", module("repaired"))
        server.hup_molded(2)
        assert server.get("/").body == b"repaired"
        tally = load.stop()
    assert tally.failures == []


@pytest.mark.parametrize("case", BROKEN)
def test_a_start_with_code_that_cannot_be_loaded_or_forked_fails(case: str) -> None:
    text, why = BROKEN[case]
    with Molded(app="mine:application", files={"mine.py": text}, wait=False, expects=NO_BOOT) as server:
        assert server.wait_exit() == (4 if case == "no_attribute" else 3)
        server.log.join()
        assert re.search(why, server.log.text), server.log.text


def test_a_mold_that_is_killed_is_made_again_and_workers_serve_on() -> None:
    files = {"mine.py": module("good")}
    with (
        Molded("workers = 2\n", app="mine:application", workers=2, files=files, expects="Mold .* SIGKILL") as server,
        Load(server.address, "/", clients=2, fields=CLOSE) as load,
    ):
        workers = server.worker_pids()
        for _ in range(2):
            mold = server.mold_pid()
            kill(mold)
            until(lambda mold=mold: server.mold_pids() not in ([], [mold]), "another mold")
        assert server.worker_pids() == workers
        kill(workers[0])  # its successor is of the new mold
        server.steady(2)
        load.settle(5)
        tally = load.stop()
    assert len(tally.failures) <= 2  # what the worker had that was killed


FAULTS = ("refused", "refused again", "intermediate before", "intermediate after", "worker at once", "mold meanwhile")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fork_that_fails_is_made_again(fault: str, tmp_path: Path) -> None:
    given, done = tmp_path / "fault", tmp_path / "done"
    given.write_text("")
    env = {"FAULT": str(given), "FAULT_DONE": str(done)}
    files = {"mine.py": FAULTY_FORKS + WHO}
    with Molded(
        "workers = 2\n", app="mine:application", workers=2, files=files, env=env, expects="SIGKILL|Could not fork"
    ) as server:
        server.steady(2)
        open_files = proc.descriptors(server.pid)
        given.write_text(fault)
        kill(server.worker_pids()[0])
        until(done.exists, "the fault has happened")
        server.steady(2)
        assert server.get("/").status == 200
        until(lambda: proc.descriptors(server.pid) == open_files, "no descriptor is left")
        assert os.getpgid(server.mold_pid()) == os.getpgid(server.pid)


def test_a_mold_that_cannot_fork_is_made_again(tmp_path: Path) -> None:
    """It fails each time, until another one is made."""
    marker = tmp_path / "broken"
    text = f"""\
import os, pathlib
from tricorn.unpatched import os as server_os

MOLD, fork = os.getpid(), server_os.fork


def faulty():
    if os.getpid() == MOLD and pathlib.Path({str(marker)!r}).exists():
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()


if not pathlib.Path({str(marker)!r}).exists():
    server_os.fork = faulty
"""
    with Molded(
        "workers = 2\n", app="mine:application", workers=2, files={"mine.py": text + WHO}, expects="SIGKILL|fork"
    ) as server:
        mold = server.mold_pid()
        marker.touch()
        for pid in server.worker_pids():
            kill(pid)
        server.log.wait("could not fork 2 workers in succession")
        server.steady(2)
        assert server.mold_pid() != mold
        assert server.get("/").status == 200


def test_an_open_event_loop_and_a_connection_are_refused_by_name() -> None:
    text = (
        "import asyncio, socket\nloop = asyncio.new_event_loop()\nlistener = socket.create_server(('127.0.0.1', 0))\n"
    )
    text += "connection = socket.create_connection(listener.getsockname())\n" + module("x", "asgi")
    with Molded(
        "worker_class = 'asgi'\n", app="mine:application", files={"mine.py": text}, wait=False, expects=NO_BOOT
    ) as server:
        assert server.wait_exit() == 3
        server.log.join()
        for what in ("event loop", r"a socket that listens at 127\.0\.0\.1:\d+", r"a connection to 127\.0\.0\.1:\d+"):
            assert re.search(what, server.log.text), server.log.text


def test_mold_ready_is_the_place_to_close_what_a_fork_would_share() -> None:
    text = """\
import socket

listener = socket.create_server(("127.0.0.1", 0))
connection = socket.create_connection(listener.getsockname())
warm = []
""" + WHO.replace("{LOADED}", "{warm}")
    hook = """\
def mold_ready(server, mold):
    import mine

    mine.connection.close()
    mine.listener.close()
    mine.warm.append(mold.pid)
"""
    with Molded(hook, app="mine:application", files={"mine.py": text}) as server:
        assert server.get("/").body.startswith(f"[{server.mold_pid()}] ".encode())


def test_an_exception_in_mold_ready_is_a_failed_reload() -> None:
    with Molded(expects="hook marker|Reload failed") as server:
        mold = server.mold_pid()
        server.configure("preload_app = 'mold'\ndef mold_ready(server, mold):\n    raise RuntimeError('hook marker')\n")
        server.signal(signal.SIGHUP)
        server.log.wait("keep serving: The hook mold_ready failed: RuntimeError: hook marker")
        assert server.mold_pids() == [mold]
        assert server.get("/hello").status == 200


def test_status_tells_of_the_mold(tmp_path: Path) -> None:
    path = tmp_path / "control"
    with Molded(f"control_socket = {str(path)!r}\n") as server, Control.connect(str(path), timeout=20) as control:
        told = control.ask("status")
        about = {"pid": server.mold_pid(), "state": "serving", "age": told["mold"]["age"], "reforks": 0}
        assert told["mold"] == about
        assert [worker["pid"] for worker in control.ask("workers")["workers"]] == server.worker_pids()
        assert told["workers"]["serving"] == 1
        done = subprocess.run(
            [*command(), "ctl", "-s", str(path), "memory", "--json"], capture_output=True, text=True, check=True
        )
        memory = json.loads(done.stdout)
        processes = {row["process"]: row for row in memory["processes"]}
        pids = {"arbiter": server.pid, "mold": server.mold_pid(), "worker": server.worker_pid()}
        assert {name: row["pid"] for name, row in processes.items()} == pids
        for row in processes.values():
            assert 0 < row["uss"] < row["pss"] < row["rss"]
            assert row["uss"] + row["shared"] == row["rss"]
        assert memory["pss"] == sum(row["pss"] for row in processes.values())
        done = subprocess.run(
            [*command(), "ctl", "-s", str(path), "memory"], capture_output=True, text=True, check=True
        )
        assert [line.split()[0] for line in done.stdout.splitlines()] == ["PROCESS", "arbiter", "mold", "worker", "all"]


def test_a_second_server_takes_over(tmp_path: Path) -> None:
    """USR2: it has a mold of its own, and the old one goes with the old server."""
    pidfile = tmp_path / "pid"
    files = {"mine.py": WHO}
    config = f"pidfile = {str(pidfile)!r}\nworkers = 2\n"
    with (
        Molded(config, app="mine:application", workers=2, files=files) as server,
        Load(server.address, "/", clients=2, fields=CLOSE) as load,
    ):
        load.settle(10)
        old = [server.mold_pid(), *server.worker_pids()]
        server.signal(signal.SIGUSR2)
        successor = int(
            until(lambda: (tmp_path / "pid.2").exists() and (tmp_path / "pid.2").read_text(), "a successor")
        )
        until(lambda: len(proc.children(successor)) == 3, "it has a mold and workers")
        server.log.wait("Ready: 2", count=2)
        server.signal(signal.SIGTERM)
        assert server.wait_exit(outlived=True) == 0
        assert not any(map(proc.is_running, old))
        load.settle(10)
        assert int(server.get("/").body.split()[2]) == successor
        load.leaving()
        os.kill(successor, signal.SIGTERM)
        until(lambda: not proc.is_running(successor), "it has ended")
        assert load.join().failures == []


def test_the_death_of_the_arbiter_ends_the_mold() -> None:
    with Molded("workers = 2\n", workers=2) as server:
        server.mold_pid()
        server.signal(signal.SIGKILL)
        server.process.wait(60)
        until(lambda: not server.leftovers(), "all notice")


def test_what_pre_fork_sets_on_a_worker_is_there_after_the_fork() -> None:
    hooks = """\
def pre_fork(server, worker):
    worker.mark = {"slot": worker.slot}
    worker.unsendable = lambda: None


def post_fork(server, worker):
    worker.log.info("mark %s, ppid %s, %s", worker.mark, worker.ppid, hasattr(worker, "unsendable"))
"""
    with Molded(hooks) as server:
        server.log.wait(rf"mark {{'slot': 1}}, ppid {server.pid}, False")
        server.log.wait(r"pre_fork has set worker\.unsendable, which pickle cannot take")


def test_the_log_files_of_a_mold_are_opened_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Molded("workers = 1\n", extra=["--error-logfile", str(log)], wait=False) as server:
        until(lambda: log.exists() and "Ready:" in log.read_text(), "it serves")
        mold = int(re.findall(READY, log.read_text())[0])
        log.rename(tmp_path / "log.1")
        server.signal(signal.SIGUSR1)
        files = lambda: {os.readlink(f"/proc/{mold}/fd/{each}") for each in os.listdir(f"/proc/{mold}/fd")}  # noqa: E731
        until(lambda: str(log) in files() and str(tmp_path / "log.1") not in files(), "the mold has the new file")


def test_a_reload_to_a_mold_of_what_the_arbiter_has_loaded_is_refused() -> None:
    with Molded("preload_app = True\n", wait=False, expects="Reload failed") as server:
        server.log.wait("Ready:")
        server.configure("preload_app = 'mold'\n")
        server.signal(signal.SIGHUP)
        server.log.wait("nothing has changed: The arbiter has loaded the application")
        assert server.get("/hello").status == 200
