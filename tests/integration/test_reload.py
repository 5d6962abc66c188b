"""Reloading under load: no client notices, whatever the new code or configuration is worth."""

from __future__ import annotations

import os
import re
import signal
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tricorn.control.client import Control

from tests.harness import (
    CLOSE,
    EVENT_LOOPS,
    KINDS,
    NO_BOOT,
    REFERENCE,
    Load,
    Server,
    Site,
    at_once,
    each,
    module,
    room,
    until,
)
from tests.harness.classes import THREADED
from tests.harness.server import free_port
from tests.harness.site import replaced
from tests.harness.wire import Reply

REUSED_KINDS = pytest.mark.parametrize(
    ("worker_class", "fields"),
    # Each class, and each way to ask under one of threads and one without: all of both would take twice as long.
    each("sync", "gthread", "gevent", *EVENT_LOOPS, values=[CLOSE, (), (), CLOSE]),
)
LOSS = pytest.mark.beyond_reference("a reload there drops what has been accepted")
ROUNDS = int(os.environ.get("RELOAD_ROUNDS", "20"))


@LOSS
@REUSED_KINDS
@pytest.mark.timeout(120)
def test_reloads_workers_more_workers_less_and_the_end_lose_nothing(worker_class: str, fields: tuple) -> None:
    with (
        Server(worker_class=worker_class, workers=2, keep_alive=5) as server,
        Load(server.address, "/sleep?s=0.002", clients=6, fields=fields) as load,
    ):
        load.settle(50)
        for round_ in range(ROUNDS if worker_class in THREADED else ROUNDS // 2):
            replaced(server, lambda: server.signal(signal.SIGHUP))
            load.settle(20)
            if round_ % 5 == 4:
                server.signal(signal.SIGTTIN)
                until(lambda: len(server.worker_pids()) == 3, "a third worker")
                load.settle(20)
                server.signal(signal.SIGTTOU)
                until(lambda: len(server.worker_pids()) == 2, "two workers")
        load.leaving()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        tally = load.join()
    assert tally.failures == []
    assert tally.answered > ROUNDS // 2 * 20


@LOSS
@KINDS
def test_long_answers_are_complete_although_the_worker_was_told_to_leave(worker_class: str) -> None:
    def whole(reply: Reply) -> bool:
        return reply.status == 200 and len(reply.body) == 40 * 8192

    target = "/stream?count=40&size=8192&pause=0.003&length=1"
    with (
        Server(worker_class=worker_class, workers=2) as server,
        Load(server.address, target, clients=4, check=whole) as load,
    ):
        load.settle(5)
        for _ in range(4):
            replaced(server, lambda: server.signal(signal.SIGHUP))
            load.settle(5)
        tally = load.stop()
    assert tally.failures == []


@LOSS
def test_signals_faster_than_workers_boot() -> None:
    with (
        Server(worker_class="gthread", workers=2) as server,
        Load(server.address, "/sleep?s=0.002", clients=4) as load,
    ):
        load.settle(20)
        for _ in range(30):
            server.signal(signal.SIGHUP)
            load.settle(2)
        load.settle(50)
        until(lambda: len(server.worker_pids()) == 2, "two workers are left")
        load.settle(20)
        tally = load.stop()
    assert tally.failures == []


BROKEN = {
    "syntax_error": ("code", "def application(:\n", r"SyntaxError"),
    "import_error": ("code", "import no_such_module_at_all\n", r"no_such_module_at_all"),
    "raises": ("code", "raise RuntimeError('import marker')\n", r"import marker"),
    "no_attribute": ("code", "other = 1\n", r"[Ff]ailed to find attribute 'application'"),
    "not_callable": ("code", "application = 5\n", r"callable"),
    "exits": ("code", "import sys\nsys.exit(9)\n", r"9"),
    "killed": ("code", "import os\nos.kill(os.getpid(), 9)\n", r"SIGKILL"),
    "conf_syntax_error": ("conf", "workers = (\n", r"conf\.py"),
    "conf_raises": ("conf", "raise RuntimeError('conf marker')\n", r"conf marker"),
    "bad_value": ("conf", "workers = 'many'\n", r"workers"),
    "negative": ("conf", "timeout = -1\n", r"timeout"),
    "bad_hook": ("conf", "def post_fork(worker):\n    pass\n", r"post_fork"),
    "bad_logconfig": ("conf", "logconfig = '/nonexistent/logging.ini'\n", r"/nonexistent/logging\.ini"),
    "bad_logconfig_dict": ("conf", "logconfig_dict = {'version': 7}\n", r"log"),
    "unwritable_log": ("conf", "errorlog = '/nonexistent/dir/log'\n", r"/nonexistent/dir"),
    "bad_class": ("conf", "worker_class = 'no_such_class'\n", r"no_such_class"),
    "bad_user": ("conf", "user = 'no-user-has-this-name'\n", r"no-user-has-this-name"),
    "bad_chdir": ("conf", "chdir = '/nonexistent/dir'\n", r"/nonexistent/dir"),
}


@pytest.mark.beyond_reference("a bad deploy ends the whole service there")
@pytest.mark.parametrize("case", BROKEN)
def test_a_reload_to_something_broken_changes_nothing(case: str) -> None:
    kind, text, why = BROKEN[case]
    files = {"mine.py": module("good")}
    with Site("workers = 2\n", app="mine:application", workers=2, files=files, expects=NO_BOOT) as server:
        before, lines = set(server.worker_pids()), len(server.log.lines)
        with Load(server.address, "/", clients=2, fields=CLOSE) as load:
            load.settle(5)
            if kind == "code":
                server.write("mine.py", text)
            else:
                server.configure(text)
            server.signal(signal.SIGHUP)
            until(
                lambda: [line for line in server.log.lines[lines:] if re.search(why, line)],
                f"the log says why ({why})",
            )
            only(server, before)
            load.settle(10)
            assert server.process.poll() is None
            server.write("mine.py", module("repaired"))
            server.configure("workers = 2\n")
            server.hup(workers=2)
            load.settle(10)
            tally = load.stop()
        assert tally.failures == []
        assert {server.get("/").body for _ in range(6)} == {b"repaired"}


def only(server: Server, before: set[int]) -> None:
    """Waits until the workers are those again that there were before the attempt."""
    try:
        until(lambda: set(server.worker_pids()) == before, "the workers there were, and no other")
    except AssertionError as error:
        raise AssertionError(f"{error}: {before}, {server.worker_pids()}; its log:\n{server.log.text}") from None


@pytest.mark.beyond_reference("it gives up there")
def test_a_reload_to_an_address_that_is_taken() -> None:
    with socket.socket() as taken, Site() as server:
        assert server.get("/hello").status == 200
        taken.bind(("127.0.0.1", free_port()))
        taken.listen()
        port = taken.getsockname()[1]
        before = server.worker_pids()
        server.configure(f"bind = '127.0.0.1:{port}'\n")
        server.signal(signal.SIGHUP)
        server.log.wait(rf"{port}.*in use|in use.*{port}")
        with Load(server.address, "/hello", clients=2, fields=CLOSE) as load:
            load.settle(20)
            tally = load.stop()
        assert tally.failures == []
        until(lambda: server.worker_pids() == before, "the workers there were")
        server.configure("")
        server.hup()
        assert server.get("/hello").status == 200


def test_a_reload_to_another_address_leaves_the_old_one() -> None:
    port = free_port()
    with Site() as server:
        old = server.address
        assert server.get("/hello").status == 200
        server.configure(f"bind = ['127.0.0.1:{port}']\n")
        server.hup()
        server.address = ("127.0.0.1", port)
        assert server.get("/hello").status == 200
        # No process holds it any more, the new worker included: refused, and not left waiting.
        until(lambda: refused(old), "the old address is free")


def refused(address: Any) -> bool:
    try:
        socket.create_connection(address, timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.beyond_reference("the new master's pidfile is not restored, or it has gone")
def test_the_pidfile_follows_a_reload(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with Site(f"pidfile = '{first}'\n") as server:
        assert server.get("/hello").status == 200
        before = set(server.worker_pids())
        assert int(first.read_text()) == server.pid
        server.configure("pidfile = '/nonexistent/dir/pid'\n")
        server.signal(signal.SIGHUP)
        server.log.wait("/nonexistent/dir")
        only(server, before)
        assert int(first.read_text()) == server.pid
        server.configure(f"pidfile = '{second}'\n")
        server.hup()
        until(second.exists, "the pidfile has its new name")
        assert int(second.read_text()) == server.pid
        assert not first.exists()
    assert not second.exists()


CALL = 0.3


@pytest.mark.beyond_reference("it does not say what a dead worker was doing")
@KINDS
@pytest.mark.parametrize("again", range(2))
def test_a_killed_worker_fails_what_it_was_running_and_the_log_names_it(worker_class: str, again: int) -> None:
    with ExitStack() as stack:
        short = stack.enter_context(tempfile.TemporaryDirectory(prefix="tricorn-t-"))
        options = {"keep_alive": 5, "control_socket": f"{short}/control", **room(worker_class)}
        server = stack.enter_context(Server(worker_class=worker_class, workers=4, **options))
        control = stack.enter_context(Control.connect(f"{short}/control", timeout=30))

        def in_calls() -> list[int]:
            """Workers whose calls have begun just now."""
            return [row["pid"] for row in control.ask("requests")["requests"] if row["age"] < CALL / 2]

        with Load(server.address, f"/sleep?s={CALL}", clients=16, check=lambda reply: reply.status == 200) as load:
            load.settle(50)
            victim = until(in_calls, "a call has begun")[0]
            os.kill(victim, signal.SIGKILL)
            server.log.wait(rf"Worker \(pid:{victim}\) was sent SIGKILL!")
            load.settle(100)
            tally = load.stop()
        until(lambda: len(server.worker_pids()) == 4, "the worker is replaced")
        named = [line for line in server.log.lines if str(victim) in line and "GET /sleep" in line]
    assert named, server.log.text
    # A connection whose request had arrived and was not yet running is lost with the process that held it.
    assert len(tally.failures) <= at_once(worker_class) + 16 // 4, tally.failures
    assert re.search(r"\d+(\.\d+)? ?(s|ms)", "\n".join(named)), named


RELOAD = "reload = True\nreload_engine = 'poll'\n"


@pytest.mark.parametrize("worker_class", each("sync", "gevent", *EVENT_LOOPS))
def test_reload_when_a_file_changes(worker_class: str) -> None:
    config = f"{RELOAD}worker_class = {worker_class!r}\n"
    with Site(config, app="mine:application", files={"mine.py": module("first", worker_class)}) as server:
        assert server.get("/").body == b"first"
        path = server.write("mine.py", module("the second", worker_class))
        until(lambda: changed(path) and answer(server) == b"the second", "the new code serves", every=0.5)
        assert server.log.matching(r"mine\.py")


def test_reload_when_an_extra_file_changes(tmp_path: Path) -> None:
    extra = tmp_path / "template.html"
    extra.write_text("one")
    with Site(f"{RELOAD}reload_extra_files = ['{extra}']\n") as server:
        worker = server.worker_pid()
        server.get("/hello")
        until(lambda: changed(extra) and server.log.matching(r"template\.html"), "it is noticed", every=0.5)
        until(lambda: server.worker_pids() and worker not in server.worker_pids(), "a new worker")
        until(lambda: answer(server, "/hello") == b"Hello\n", "it serves")


def test_reload_of_a_syntax_error_shows_its_traceback_in_the_browser_and_once_in_the_log() -> None:
    files = {"mine.py": module("first")}
    with Site(f"{RELOAD}workers = 2\n", app="mine:application", files=files, expects=NO_BOOT) as server:
        path = server.write("mine.py", "def application(:\n")
        until(lambda: b"SyntaxError" in (answer(server) or b""), "its traceback is served", every=0.1)
        with Load(server.address, "/", clients=1, fields=CLOSE, check=lambda reply: True) as load:
            load.settle(20)
            tally = load.stop()
        assert tally.failures == []
        page = (answer(server) or b"").decode()
        assert "mine.py" in page
        if not REFERENCE:
            assert "tricorn/" not in page, "none of our frames"
            assert len(server.log.matching("SyntaxError")) == 1
        path = server.write("mine.py", module("the third"))
        until(lambda: changed(path) and answer(server) == b"the third", "the repaired code", every=0.5)


def changed(path: Path) -> bool:
    """Changes the file once more: the watcher may not have seen it for the first time yet."""
    path.write_text(path.read_text() + "\n")
    return True


def answer(server: Server, target: str = "/") -> bytes | None:
    try:
        return server.get(target).body
    except (OSError, AssertionError):
        if not REFERENCE:
            raise
        return None
