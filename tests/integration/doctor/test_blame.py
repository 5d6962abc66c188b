"""Whom the log blames for a stall: the application, wherever it is installed, and the thread that keeps the GIL."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tricorn.control.client import Control

from tests.harness import Site, until
from tests.harness.classes import each
from tests.harness.server import run
from tests.integration.test_loop_time import NAMES
from tests.integration.test_stalls import HOLDS

INSTALLED = """\
import os
pythonpath = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib/site-packages")
doctor_slow_request = 0.1
"""
WSGI = {"sync": "wsgi", "gthread": "wsgi"}

KEEPS = """\
P = ctypes.PyDLL(None)  # keeps the GIL during its calls

def keeps():
    P.usleep(400_000)

def keeps_in_thread():
    import sys
    if "eventlet" in sys.modules:
        from eventlet import tpool
        tpool.execute(keeps)
    else:
        import gevent
        gevent.get_hub().threadpool.apply(keeps)

DOES["/keeps"] = keeps_in_thread

async def work(path):
    if path == "/keeps":
        await asyncio.get_running_loop().run_in_executor(None, keeps)
    elif path in DOES:
        DOES[path]()
    else:
        await asyncio.sleep(0.02)
"""
LOOPS = [*((worker_class, "asyncio") for worker_class in NAMES), ("asgi", "uvloop")]


STALL = r"BLOCKED_SYSCALL: |SLOW_REQUEST: |GIL_VICTIM: "


def told(server: Site, path: str, at_once: int) -> list[str]:
    """The lines about calls at this path. On a busy machine the doctor comes too late to some of them."""

    def found() -> list[str]:
        with ThreadPoolExecutor(at_once) as pool:
            assert [reply.status for reply in pool.map(server.get, [path] * at_once)] == [200] * at_once
        return [line[0] for line in server.log.matching(rf".*(?:{STALL}).*")]

    return until(found, f"{path} is told", every=0.5)


@pytest.mark.parametrize("worker_class", each(*NAMES, *WSGI))
def test_an_installed_application_is_named_and_never_what_started_the_server(worker_class: str) -> None:
    """As of any application that is a package, or of a view that only runs a framework's code."""
    files = {"lib/site-packages/work.py": HOLDS}
    config = f"worker_class = {worker_class!r}\nasgi_loop = 'asyncio'\n{INSTALLED}"
    with Site(config, app=f"work:{(NAMES | WSGI)[worker_class]}", files=files) as server:
        assert server.get("/waits").status == 200
        for line in told(server, "/blocks", 2):
            assert "lib/site-packages/work.py:6 in blocks" in line
            assert "Code: C.usleep(" in line


@pytest.mark.parametrize(("worker_class", "loop"), LOOPS)
def test_the_thread_that_keeps_the_gil_is_blamed_and_not_its_victim(
    tmp_path: Path, worker_class: str, loop: str
) -> None:
    socket = tmp_path / "ctl"
    # With reload the loop is looked at whether or not another request waits for it.
    config = f"worker_class = {worker_class!r}\nasgi_loop = {loop!r}\ncontrol_socket = {str(socket)!r}\nreload = True\n"
    files = {"work.py": HOLDS + KEEPS}
    with Site(config, app=f"work:{NAMES[worker_class]}", files=files) as server:
        assert server.get("/waits").status == 200

        def named() -> list[str]:
            lines = told(server, "/keeps", 3)
            assert all("GIL_VICTIM" in line for line in lines), "never its victim"
            return [line for line in lines if "is held by thread " in line]

        # On a busy machine the GIL may be free again when the doctor looks for the thread that had it.
        for line in until(named, "the thread is named"):
            assert "work.py:" in line
            assert "Code: P.usleep(400_000)." in line
            assert "move its work to another process" in line
        with Control.connect(socket) as control:
            rows = until(lambda: control.ask("stalls")["stalls"], "it is summed up")
        assert {(row["function"], row["source"]) for row in rows} == {("keeps", "P.usleep(400_000)")}
        for command in (("ctl", "-s", str(socket), "stalls"), ("doctor", "-s", str(socket))):
            text = run(*command).stdout
            assert "is held by thread " in text
            assert "in keeps: P.usleep(400_000)" in text


def test_a_thread_that_waits_for_one_which_cannot_run_is_a_victim_too(tmp_path: Path) -> None:
    """From outside: who starts a thread waits for a lock that the new thread cannot release without the GIL."""
    socket = tmp_path / "ctl"
    config = f"worker_class = 'asgi'\nasgi_loop = 'asyncio'\ncontrol_socket = {str(socket)!r}\n"
    with Site(config, app="work:asgi", files={"work.py": (HOLDS + KEEPS).replace("400_000", "3_000_000")}) as server:
        assert server.get("/waits").status == 200
        (pid,) = server.worker_pids()

        def victims() -> list[dict[str, Any]]:
            looked = json.loads(run("doctor", "--pid", str(pid), "--json").stdout)["threads"]
            return [thread for thread in looked if thread["main"] and thread["verdict"] == "GIL_VICTIM"]

        with ThreadPoolExecutor(2) as pool:
            replies = [pool.submit(server.get, "/keeps") for _ in range(2)]
            (victim,) = until(victims, "the main thread waits for the GIL")
            assert victim["gil"]["holder"] not in (None, pid)
            assert "work.py" in victim["sentence"].partition("held by thread ")[2]
            assert [reply.result().status for reply in replies] == [200] * 2
