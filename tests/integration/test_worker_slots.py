"""The number of a worker: the server's own, and the one that hooks in the wild give it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness import KINDS, NO_BOOT, Site, configured, until
from tests.harness.site import replaced

WORKERS = 3

# The recipe of https://gist.github.com/hynek/ba655c8756924a5febc5285c712a7946, by which exporters name their files.
NUMBERING = """
import json, os

def note(what, worker, **more):
    line = json.dumps({"what": what, "age": worker.age, "slot": worker.slot, "number": worker._number, **more})
    fd = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode() + b"\\n")
    os.close(fd)

def nworkers_changed(server, new, old):
    server._wanted = new

def pre_fork(server, worker):
    taken = {w._number for w in server.WORKERS.values() if w.alive}
    worker._number = (set(range(1, server._wanted + 1)) - taken).pop()
    note("forked", worker)

def post_worker_init(worker):
    note("booted", worker, variable=os.environ["TRICORN_WORKER"])

def child_exit(server, worker):
    note("gone", worker)
"""


class Numbered(Site):
    def __init__(self, directory: Path, config: str = "") -> None:
        self._notes = directory / "notes"
        text = f"workers = {WORKERS}\n{config}{NUMBERING}"
        super().__init__(text, workers=WORKERS, env={"NOTES": str(self._notes)})

    def notes(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._notes.read_text().splitlines()]

    def ages(self, what: str) -> set[int]:
        return {note["age"] for note in self.notes() if note["what"] == what}

    def rests(self, workers: int = WORKERS) -> bool:
        """Whether there are as many workers as are wanted, and all of them serve."""
        living = self.ages("forked") - self.ages("gone")
        return len(living) == workers and living <= self.ages("booted")


def by_max_requests(server: Numbered) -> None:
    def replaced_often() -> bool:
        server.get("/hello")
        return len(server.ages("gone")) >= 2 * WORKERS

    until(replaced_often, "workers are replaced")


def by_reloads(server: Numbered) -> None:
    for _ in range(2):
        server.hup()


def by_scaling(server: Numbered) -> None:
    for number, workers in ((signal.SIGTTIN, 4), (signal.SIGTTOU, 3), (signal.SIGTTIN, 4), (signal.SIGTTOU, 3)):
        server.signal(number)
        until(lambda workers=workers: server.rests(workers), f"{workers} workers")  # type: ignore[misc]


def by_kills(server: Numbered) -> None:
    os.kill(server.worker_pids()[0], signal.SIGKILL)
    until(lambda: len(server.ages("gone")) == 1 and server.rests(), "one is replaced")
    replaced(server, lambda: [os.kill(pid, signal.SIGKILL) for pid in server.worker_pids()])


def by_kills_while_reloading(server: Numbered) -> None:
    def reload_and_kill() -> None:
        victim = server.worker_pids()[0]
        server.signal(signal.SIGHUP)
        os.kill(victim, signal.SIGKILL)

    replaced(server, reload_and_kill)


@pytest.mark.parametrize(
    ("disturb", "config"),
    [
        (by_max_requests, "max_requests = 3\n"),
        (by_reloads, ""),
        (by_scaling, ""),
        (by_kills, ""),
        (by_kills_while_reloading, ""),
    ],
)
def test_slots_and_numbers_are_given_once(tmp_path: Path, disturb: Callable[[Numbered], None], config: str) -> None:
    with Numbered(tmp_path, config) as server:
        until(server.rests, "all serve")
        disturb(server)
        until(server.rests, "all serve again")
        notes = server.notes()
        log = server.log.text
    assert "Exception in the hook" not in log
    slots: dict[int, int] = {}
    numbers: dict[int, int] = {}
    for note in notes:
        age, slot = note["age"], note["slot"]
        if note["what"] == "forked":
            assert slot == min(set(range(1, 99)) - set(slots.values())), f"the lowest that no process has: {note}"
            slots[age], numbers[age] = slot, note["number"]
        elif note["what"] == "booted":
            assert note["variable"] == str(slot) == str(slots.get(age, slot))
        else:
            del slots[age], numbers[age]
    assert len(set(numbers.values())) == WORKERS


RAISES = """
import os

def pre_fork(server, worker):
    if os.path.exists(os.path.join(os.path.dirname(__file__), "trouble")):
        raise KeyError("pop from an empty set")
"""


def test_a_worker_is_replaced_though_the_hook_before_its_fork_raises() -> None:
    with Site(RAISES) as server:
        server.get("/hello")
        server.write("trouble", "")
        victim = server.worker_pid()
        os.kill(victim, signal.SIGKILL)
        server.log.wait("Starting the worker although the hook pre_fork failed")
        until(lambda: server.worker_pids() not in ([], [victim]), "another worker")
        assert server.get("/hello").status == 200
        assert server.log.matching("KeyError: 'pop from an empty set'")


def test_a_configuration_whose_hook_raises_does_not_come_into_force() -> None:
    with Site(RAISES) as server:
        server.get("/hello")
        worker = server.worker_pid()
        server.write("trouble", "")
        server.signal(signal.SIGHUP)
        server.log.wait("Reload failed; the old workers keep serving: the hook pre_fork failed")
        assert server.get("/hello").status == 200
        assert server.worker_pids() == [worker]


def test_a_server_whose_hook_raises_at_once_does_not_start() -> None:
    with Site(RAISES, files={"trouble": ""}, wait=False, expects=NO_BOOT) as server:
        assert server.wait_exit() == 3
        assert server.log.matching("the hook pre_fork failed")


@KINDS
def test_an_application_knows_its_slot(worker_class: str) -> None:
    files = {
        "slot.py": "import os\n"
        "def text(environ):\n"
        "    return f\"{os.environ['TRICORN_WORKER']} {environ.get('tricorn.worker')!r}\".encode()\n"
        "def wsgi(environ, start_response):\n"
        "    start_response('200 OK', [('Content-Length', '3')])\n"
        "    return [text(environ)]\n"
        "async def asgi(scope, receive, send):\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    await send({'type': 'http.response.body', 'body': text({'tricorn.worker': 1})})\n"
    }
    app = "slot:asgi" if worker_class == "asgi" else "slot:wsgi"
    with Site(configured(worker_class), app=app, files=files) as server:
        assert server.get("/").body == b"1 1"
