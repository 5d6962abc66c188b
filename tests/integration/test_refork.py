"""`refork`: a worker that has served becomes the mold, and the others are forked from it."""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress

import pytest

from tests.harness import Load, proc, until
from tests.harness.load import CLOSE
from tests.harness.molds import RENEWED, Molded, kill

WARM = """\
import os

pages = []


def application(environ, start_response):
    if environ["PATH_INFO"] == "/fork" and os.fork() == 0:
        os._exit(7)  # a process of the application's
    if not pages:
        made = {number: str(number) * 20 for number in range(50_000)}
        pages.append((os.getpid(), made))
    body = f"{pages[0][0]} {os.getpid()} {os.getppid()}".encode()
    if environ["PATH_INFO"] == "/fork":
        body += b" %d" % os.waitstatus_to_exitcode(os.wait()[1])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""

APP = "mine:application"

CLASSES = pytest.mark.parametrize("worker_class", ["sync", "gthread"])


class Warm(Molded):
    def __init__(self, config: str = "", *, text: str = WARM, workers: int = 2, **options: object) -> None:
        self._wanted = workers
        config = f"refork = 20\nworkers = {workers}\n{config}"
        super().__init__(config, app=APP, workers=workers, files={"mine.py": text}, **options)

    def ask(self, path: str = "/") -> list[int]:
        """Where its pages were made, its pid, its parent's."""
        reply = self.get(path)
        assert reply.status == 200
        return [int(each) for each in reply.body.split()]

    def renewed(self, count: int = 1) -> int:
        """Serves requests until a worker is the mold, and all others are forks of it. Returns its pid."""

        def is_done() -> bool:
            self.ask()
            renewals = list(re.finditer(RENEWED, self.log.text))
            if len(renewals) < count:
                return False
            forks = re.findall(r"Booting worker with pid: (\d+)", self.log.text[renewals[-1].end() :])
            return set(self.worker_pids()) <= set(map(int, forks))

        until(is_done, "workers are forks of one that has served")
        self.steady(self._wanted)
        return self.mold_pid()


@CLASSES
def test_workers_are_forked_from_one_that_has_served_and_no_request_is_lost(worker_class: str) -> None:
    with (
        Warm(f"worker_class = {worker_class!r}\n", workers=3) as server,
        Load(server.address, "/", clients=4, fields=CLOSE) as load,
    ):
        loaded = server.mold_pid()
        mold = server.renewed()
        assert mold != loaded
        made_in, pid, parent = server.ask()
        assert (made_in, parent) == (mold, server.pid)
        assert pid in server.worker_pids()
        load.settle(20)
        server.log.wait(r"Refork after 20 requests: .* a worker, .* before")
        server.hup_molded(3)
        assert mold not in {server.ask()[0] for _ in range(10)}
        tally = load.stop()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
    assert tally.failures == []


SETTINGS: Mapping[str, str] = {
    "alone": "handover = False\n",
    "reuse_port": "reuse_port = True\n",
    "affinity": "affinity = ['cookie:sid']\n",
    "unlogged": "doctor = 'off'\nprofile_after = 0\n",
    "observed": "accesslog = '-'\nadmin_bind = '127.0.0.1:0'\nrequest_timeout = 30\ntimeout = 30\n",
    "counting": "max_requests = 200\nmax_requests_jitter = 50\n",
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_mold_that_was_a_worker_has_all_that_workers_need(settings: str) -> None:
    with (
        Warm(f"worker_class = 'gthread'\nthreads = 2\n{SETTINGS[settings]}") as server,
        Load(server.address, "/", clients=2) as load,
    ):
        mold = server.renewed()
        load.settle(20)
        assert server.ask("/fork")[0] == mold, "a fork of the application is none of the server's"
        assert server.ask("/fork")[3] == 7
        kill(server.worker_pids()[0])
        server.steady(2)
        assert {server.ask()[0] for _ in range(10)} == {mold}
        tally = load.stop()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
    assert len(tally.failures) <= 2  # what the worker had that was killed


def test_after_each_number_another_worker_becomes_the_mold() -> None:
    with Warm("refork = '20, 60'\n") as server, Load(server.address, "/", clients=2, fields=CLOSE) as load:
        first = server.renewed()
        until(lambda: len(server.log.matching(RENEWED)) == 2 or server.log.matching("That is less than 5%"), "the next")
        if len(server.log.matching(RENEWED)) == 2:
            assert server.mold_pid() != first
        tally = load.stop()
    assert tally.failures == []


def test_no_descriptor_is_left_and_no_process() -> None:
    with Warm("worker_class = 'gthread'\n") as server:
        server.steady(2)
        arbiter, workers = proc.descriptors(server.pid), {proc.descriptors(pid) for pid in server.worker_pids()}
        server.renewed()
        until(lambda: proc.descriptors(server.pid) == arbiter, "as many descriptors as before in the arbiter")
        assert {proc.descriptors(pid) for pid in server.worker_pids()} == workers
        for pid in server.worker_pids():
            kill(pid)
        server.steady(2)
        assert proc.descriptors(server.pid) == arbiter


def test_a_mold_that_was_a_worker_and_is_killed_is_made_again_from_code() -> None:
    with (
        Warm(expects="SIGKILL") as server,
        Load(server.address, "/", clients=2, fields=CLOSE) as load,
    ):
        mold = server.renewed()
        workers = server.worker_pids()
        kill(mold)
        until(lambda: server.mold_pids() not in ([], [mold]), "another mold")
        assert server.worker_pids() == workers
        second = server.renewed(2)
        assert second != mold
        tally = load.stop()
    assert tally.failures == []


HOOKS = {
    "raises": ("raise RuntimeError('hook marker')", "RuntimeError: hook marker"),
    "exits": ("raise SystemExit(3)", r"sys\.exit\(3\)|SystemExit"),
    "is killed": ("import os; os.kill(os.getpid(), 9)", "It ended before it could become the mold"),
    "starts a thread": (
        "import threading; threading.Thread(target=threading.Event().wait, name='poller', daemon=True).start()",
        "it has the thread 'poller'",
    ),
    "starts a process": ("import subprocess; server.kept = subprocess.Popen(['true'])", "It has processes of its own"),
    "connects": (
        "import socket; server.kept = socket.create_connection(server.address[0])",
        r"a connection to 127\.0\.0\.1",
    ),
}


@pytest.mark.parametrize("what", HOOKS)
def test_a_worker_that_cannot_become_the_mold_is_replaced_and_its_reason_told(what: str) -> None:
    statement, reason = HOOKS[what]
    hook = f"def before_refork(server, worker):\n    {statement}\n"
    with (
        Warm(hook, expects="Refork failed|SIGKILL") as server,
        Load(server.address, "/", clients=2, fields=CLOSE) as load,
    ):
        mold = server.mold_pid()
        server.log.wait(f"Refork failed; worker \\(pid:\\d+\\) ends.*({reason})", count=2)
        assert server.log.matching("No more until the next reload")
        load.settle(20)
        until(lambda: server.mold_pids() == [mold], "the mold stays")
        tally = load.stop()
    assert tally.failures == []


def test_a_worker_that_is_killed_while_it_drains_is_no_loss() -> None:
    hook = """\
def before_refork(server, worker):
    import time
    worker.log.info("drained %d", worker.pid)
    time.sleep(1000)
"""
    with Warm(hook, expects="SIGKILL|Refork failed") as server:
        until(lambda: server.ask() and server.log.matching("drained"), "a worker has drained")
        (found,) = server.log.matching(r"drained (\d+)")
        kill(int(found[1]))
        server.log.wait("Refork failed")
        server.steady(2)


def test_a_hook_that_hangs_is_ended_after_the_graceful_timeout() -> None:
    hook = "graceful_timeout = 1\ndef before_refork(server, worker):\n    import time; time.sleep(1000)\n"
    with Warm(hook, expects="SIGKILL|still running|Refork failed") as server:
        until(lambda: server.ask() and server.log.matching("Refork failed"), "it is given up")
        server.steady(2)


def test_the_end_while_a_worker_becomes_the_mold() -> None:
    hook = """\
def before_refork(server, worker):
    import time
    worker.log.info("drained %d", worker.pid)
    time.sleep(0.5)
"""
    with Warm(hook) as server:
        until(lambda: server.ask() and server.log.matching("drained"), "a worker has drained")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        until(lambda: not server.leftovers(), "no process is left")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_killed_meanwhile_the_service_goes_on(seed: int) -> None:
    """Any process but the arbiter, at any moment; with reloads, and more workers and less."""
    dice = random.Random(seed)
    config = f"worker_class = {dice.choice(('sync', 'gthread'))!r}\nrefork = [5, 20, 60]\ngraceful_timeout = 5\n"
    with (
        Warm(config, workers=dice.choice((1, 2, 3)), expects=".") as server,
        Load(server.address, "/", clients=3, fields=CLOSE) as load,
    ):
        kills, end = 0, time.monotonic() + 8
        while time.monotonic() < end:
            load.settle(dice.randint(1, 300))
            match dice.choice(("kill", "reload", "more", "less", "nothing", "nothing")):
                case "kill":
                    with suppress(ProcessLookupError):  # it has just ended
                        kill(dice.choice(proc.children(server.pid)))
                    kills += 1
                case "reload":
                    server.signal(signal.SIGHUP)
                case "more":
                    server.signal(signal.SIGTTIN)
                case "less":
                    server.signal(signal.SIGTTOU)
        load.settle(20)
        tally = load.stop()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        server.log.join()
        assert "defect" not in server.log.text
    assert len(tally.failures) <= 3 * kills  # what a worker had that was killed, one of each client at most


REFUSED = {
    "preload_app = False\n": "refork needs a mold",
    "reload = True\n": "refork needs a mold",
    "worker_class = 'gevent'\n": "refork works with the worker classes sync and gthread, not with gevent",
    "refork = '50, 20'\n": "expected numbers that rise",
    "max_requests = 20\n": "refork = 20 is never reached",
}


@pytest.mark.parametrize("config", REFUSED)
def test_settings_that_do_not_go_with_it(config: str) -> None:
    with Warm(config, wait=False, expects=".") as server:
        assert server.wait_exit() == 1
        server.log.join()
        assert REFUSED[config] in server.log.text
