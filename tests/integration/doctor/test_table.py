"""Each way to hold up a worker, under each class: the verdict, the line, the library and how long it took.

gevent has all rows. The other classes have `SOME`, and with TRICORN_WHOLE_TABLE=1 all.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from tricorn.stalls.keeper import PAUSE

from tests.harness import Site, until
from tests.harness.classes import each
from tests.harness.deadline import PATIENCE, SELDOM

SOURCE = Path(__file__).with_name("held_up.py")
LINE = re.compile(r"\[WARNING\] The event loop of worker \(pid:\d+\) was blocked for ([\d.]+) s by one call\. (.*)")
ATTEMPTS = 4
"""What is over before it could be looked at is not told: a busy machine may be late."""
STARVED = " STARVED: "
WANTED = re.compile(r"waiting for CPU (\d+) %")
NAMES = {"gevent": "wsgi", "eventlet": "wsgi", "asgi": "asgi", "tornado": "tornado()"}
GREEN = ("gevent", "eventlet")


@dataclass(frozen=True)
class Case:
    says: str
    """What the sentence begins with."""
    library: str = ""
    not_under: tuple[str, ...] = ()
    """Where nothing is held up by it: the library is patched there, or made so."""
    inner: str = ""
    """Another line that may be named besides the one that is marked."""
    beside: Callable[[Path], AbstractContextManager[object]] = nullcontext


@cache
def application() -> ModuleType:
    """The module of the servers. Each process of pytest collects this file, and importing that takes a second."""
    from tests.integration.doctor import held_up

    return held_up


def busy_processor(_: Path) -> AbstractContextManager[object]:
    return nullcontext() if application().may_throttle() else burning()


@contextmanager
def burning() -> Iterator[None]:
    first = min(os.sched_getaffinity(0))
    burn = f"import os, time; os.sched_setaffinity(0, {{{first}}})\nend = time.monotonic() + 0.8\nprint(flush=True)\n"
    burn += "while time.monotonic() < end: pass"
    process = subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    with (directory / "locked").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        timer = threading.Timer(application().SECONDS + 0.1, fcntl.flock, (file, fcntl.LOCK_UN))
        timer.start()
        try:
            yield
        finally:
            timer.join()


BLOCKED = r"Blocked(: waiting in many short system calls|, in libsqlite3| in the system call|: waiting)"
CASES = {
    "sleeps": Case(r"Blocked in the system call (clock_nanosleep|select|pselect6)", not_under=GREEN),
    "psycopg2_connects": Case(r"Blocked in the system call p?poll on TCP to 127.0.0.1:", "libpq"),
    "psycopg_connects": Case(r"Blocked in the system call (p?poll|epoll_p?wait) on .*TCP to 127.0.0.1:", "", GREEN),
    "flushes": Case(BLOCKED, "librdkafka"),
    "transfers": Case(r"Blocked in the system call p?poll", "libcurl"),
    "waits_for_sqlite": Case(BLOCKED, "libsqlite3"),
    "waits_for_file": Case(r"Blocked in the system call flock", beside=locked),
    "waits_for_lock": Case(r"Waiting for a Python lock"),
    "waits_for_pool": Case(r"Waiting for a database connection from SQLAlchemy's pool.*POOL_WAIT", not_under=GREEN),
    "matches": Case(r"Running native code, called from .*, with the GIL held"),
    "computes": Case(r"Running Python code", inner="computes"),
    "asks_the_time": Case(r"Running Python code"),
    "compresses": Case(r"Running native code, called from .*; the GIL is released"),
    "keeps_the_gil": Case(r"Blocked in the system call (clock_)?nanosleep .* with the GIL held"),
    "another_keeps_the_gil": Case(r"Waiting for the GIL at .*; it is held by thread \d+ .*, at .* in .*keeps"),
    "collects": Case(r"Collecting garbage"),
    "starves": Case(r"Ready to run, but got no CPU for \d+ % of the time", inner="starves", beside=busy_processor),
}


SOME = {
    "eventlet": ("psycopg2_connects", "flushes", "keeps_the_gil", "waits_for_lock"),
    "asgi-asyncio": ("psycopg2_connects", "flushes", "waits_for_lock", "computes", "keeps_the_gil", "collects"),
    "asgi-uvloop": ("psycopg2_connects", "flushes", "waits_for_lock", "computes"),
    "tornado": ("flushes", "waits_for_lock", "keeps_the_gil"),
}
"""What a class may make a difference to: one row of each kind. That a loop computes is found out in one way by all."""


def test_each_function_of_the_application_has_a_row() -> None:
    assert set(application().CASES) == {*CASES, "ready"}


@contextmanager
def silent_server() -> Iterator[int]:
    """Takes connections, says nothing, and closes each after a while."""
    listener = socket.create_server(("127.0.0.1", 0))

    def one(connection: socket.socket) -> None:
        with connection:
            time.sleep(application().SECONDS)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


def rows() -> list[object]:
    """A class and what holds it up: row by row, so that a server is started once."""
    classes = ("gevent", "eventlet", "asgi-asyncio", "asgi-uvloop", "tornado")
    found: list[object] = []
    for name in classes:
        alias = name.partition("-")[0]
        is_whole = name == "gevent" or os.environ.get("TRICORN_WHOLE_TABLE") == "1"
        cases = [case for case in (CASES if is_whole else SOME[name]) if alias not in CASES[case].not_under]
        (parameter,) = each(name)
        assert isinstance(parameter, type(pytest.param()))
        found += [pytest.param(name, case, marks=parameter.marks, id=f"{name}-{case}") for case in cases]
    return found


@contextmanager
def started(name: str, directory: Path) -> Iterator[Site]:
    worker_class, _, loop = name.partition("-")
    config = f"worker_class = {worker_class!r}\nasgi_loop = {loop or 'asyncio'!r}\n"
    if worker_class in GREEN:
        config += "green_drivers = False\n"  # psycopg2 gets no callback that lets others go on
    app = f"held_up:{NAMES[worker_class]}"
    with silent_server() as port:
        (directory / "port").write_text(str(port))
        environ = {"HELD_UP": str(directory)}
        with Site(config, app=app, files={"held_up.py": SOURCE.read_text()}, env=environ, fresh=True) as server:
            server.get("/ready")
            yield server
    shutil.rmtree(directory, ignore_errors=True)


Stages = Callable[[str], tuple[Site, Path]]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    """The server of a class, and its directory: one at a time, for all rows of the class."""
    current: dict[str, tuple[Site, Path]] = {}
    with ExitStack() as running:

        def stage(name: str) -> tuple[Site, Path]:
            if name not in current:
                current.clear()
                running.close()
                directory = tmp_path_factory.mktemp("held_up")
                current[name] = running.enter_context(started(name, directory)), directory
            return current[name]

        yield stage


@pytest.mark.parametrize(("worker_class", "name"), rows())
def test_doctor_verdict_of_a_stall(stages: Stages, worker_class: str, name: str) -> None:
    server, directory = stages(worker_class)
    case = CASES[name]
    told = told_of(server, directory, name, case)
    assert told is not None, f"nothing was told of it: {server.log.text[-3000:]}"
    length, said, took = told
    assert is_near(length, took), (length, took)
    assert f"held_up.py:{line_of(name)} in {name}" in said or f" in {case.inner or '-'}" in said, said
    if name != "starves" and lacked_a_processor(said):
        return  # other work of this machine has had its processor each time: that is told, and true
    assert re.match(case.says, said), said
    assert case.library in said, said


def is_near(length: float, took: float) -> bool:
    """Within 20 %, and the time of a look."""
    return 0.8 * took - 0.02 <= length <= 1.2 * took + 0.05


def lacked_a_processor(said: str) -> bool:
    """By the verdict, or for most of the time, so that few looks have seen it at work."""
    wanted = WANTED.search(said)
    return STARVED in said or (wanted is not None and int(wanted[1]) > 50)


def told_of(server: Site, directory: Path, name: str, case: Case) -> tuple[float, str, float] | None:
    """How long it took by the log, what the log says of it, and how long it took by the application's clock."""
    told = None
    for attempt in range(ATTEMPTS):
        within = PATIENCE / 6 if attempt == ATTEMPTS - 1 else 2
        told = one_told(server, directory, name, case, within) or told
        # A look is short: it may find another row without a processor, and `starves` in the moment in which it has one.
        if told is not None and is_near(*told[::2]) and lacked_a_processor(told[1]) == (name == "starves"):
            break
        if told is not None:
            again = time.monotonic() + PAUSE  # until then the same is only counted
            until(lambda again=again: time.monotonic() > again, "the pause is over", within=2 * PAUSE, every=0.5)
    return told


def one_told(server: Site, directory: Path, name: str, case: Case, within: float) -> tuple[float, str, float] | None:
    before = len(server.log.matching(LINE.pattern))
    with case.beside(directory):
        took = json.loads(server.get(f"/{name}").body)
    deadline = time.monotonic() + within
    last = None
    while time.monotonic() < deadline:
        for found in server.log.matching(LINE.pattern)[before:]:
            if re.search(rf" in {name}\b|{name}\.<locals>", found[2]):
                last = float(found[1]), found[2], took
                if last[0] >= 0.8 * took - 0.02:  # else it is the line of an earlier attempt, which comes late
                    return last
        server.get("/ready")  # which a report of the worker may come with
        time.sleep(SELDOM)  # what tells the stall wants the processor as well
    return last


def line_of(name: str) -> int:
    """The line of a function that is marked, or its first."""
    lines = SOURCE.read_text().splitlines()
    first = lines.index(f"def {name}() -> None:")
    marked = (number for number, line in enumerate(lines[first:], first + 1) if "  # here" in line)
    return next(marked)
