"""Reloads that begin with a few workers (`canary`): worse code is rolled back under load, and no request is lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tricorn.control.client import Control, Refused

from tests.harness import Load, configured, proc, until
from tests.harness.classes import each
from tests.harness.http2 import Http2Wire
from tests.harness.load import CLOSE
from tests.harness.site import Site
from tests.harness.wire import Reply

CANARY_CLASSES = pytest.mark.parametrize("worker_class", each("sync", "gthread", "asgi"))

WSGI = """\
import itertools
import os
import time

count = itertools.count(1)


def application(environ, start_response):
    number = next(count)
    {act}
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", "{length}")])
    return [b"{name}"]
"""

ASGI = """\
import asyncio
import itertools
import os
import time

count = itertools.count(1)


async def application(scope, receive, send):
    number = next(count)
    {act}
    fields = [(b"content-type", b"text/plain"), (b"content-length", b"{length}")]
    await send({{"type": "http.response.start", "status": int(status[:3]), "headers": fields}})
    await send({{"type": "http.response.body", "body": b"{name}"}})
"""

ACTS = {
    "good": "{sleep}(0.02); status = '200 OK'",
    "fails": "{sleep}(0.02); status = '500 Oops' if number % 10 == 0 else '200 OK'",
    "slow": "{sleep}(0.05); status = '200 OK'",
    "dies": "status = '200 OK'; number == 50 and os.kill(os.getpid(), 9)",
}
NO_ERROR = 0
"""Of HTTP/2: a connection that ended well."""

WHY = {
    "fails": r"requests of the new workers failed \(",
    "slow": "the new workers are slower: median ",
    "dies": r"a new worker \(pid:\d+\) was killed by SIGKILL",
}


def code(worker_class: str, kind: str, name: str) -> str:
    text, sleep = (ASGI, "await asyncio.sleep") if worker_class == "asgi" else (WSGI, "time.sleep")
    return text.format(act=ACTS[kind].format(sleep=sleep), name=name, length=len(name))


class Canaries(Site):
    """Three workers whose code is `old`, and reloads that begin with one."""

    def __init__(self, worker_class: str = "gthread", *, seconds: float = 3.0, more: str = "", **options: str) -> None:
        config = f"{configured(worker_class)}workers = 3\ncanary = 1\ncanary_time = {seconds}\ncanary_requests = 60\n"
        self.worker_class = worker_class
        files = {"mine.py": code(worker_class, "good", "old")}
        super().__init__(config + more, app="mine:application", workers=3, files=files, **options)

    def wait_ready(self) -> None:
        super().wait_ready()
        self.log.wait("Ready: ")  # all workers serve: canaries are compared with those

    def deploy(self, kind: str, name: str) -> None:
        self.write("mine.py", code(self.worker_class, kind, name))

    def begin(self, kind: str = "good", name: str = "new") -> set[int]:
        """A reload; returns the processes that there are more when the canary is watched."""
        known = set(self.worker_pids())
        self.deploy(kind, name)
        self.signal(signal.SIGHUP)
        self.log.wait("Canary: comparing 1 of 3 new workers")
        return set(self.worker_pids()) - known

    def end_of_rollback(self, old: set[int]) -> None:
        self.log.wait("Reload failed; the old workers keep serving")
        until(lambda: set(self.worker_pids()) == old, "the old workers, and no other")


@contextmanager
def loaded(server: Site, clients: int = 6) -> Iterator[Load]:
    """Under load; what `old` answers is never lost, and of `new` only what its own defect makes of it."""

    def is_right(reply: Reply) -> bool:
        return reply.body in (b"old", b"new") and (reply.status == 200 or (reply.status, reply.body) == (500, b"new"))

    with Load(server.address, "/", clients=clients, fields=CLOSE, check=is_right, pause=0.002) as load:
        load.settle(50)
        yield load


@CANARY_CLASSES
@pytest.mark.parametrize("kind", ["fails", "slow", "dies"])
def test_worse_code_is_rolled_back_and_no_request_of_the_old_one_is_lost(worker_class: str, kind: str) -> None:
    with Canaries(worker_class, seconds=10.0) as server, loaded(server) as load:
        old = set(server.worker_pids())
        server.begin(kind)
        server.end_of_rollback(old)
        assert server.log.matching(f"Reload failed; the old workers keep serving: .*{WHY[kind]}"), server.log.text
        assert {server.get("/").body for _ in range(20)} == {b"old"}
        load.settle(50)
        tally = load.stop()
    # The requests of one that is killed are lost with it: one for each client, at most.
    assert len(tally.failures) <= (6 if kind == "dies" else 0), tally.failures


@CANARY_CLASSES
@pytest.mark.parametrize("mold", [False, True], ids=["", "mold"])
def test_code_that_is_as_good_is_rolled_out(worker_class: str, mold: bool) -> None:
    with (
        Canaries(worker_class, more="preload_app = 'mold'\n" if mold else "") as server,
        loaded(server) as load,
    ):
        old = set(server.worker_pids())
        server.begin()
        assert old <= set(server.worker_pids()), "all of them serve beside the canary"
        server.log.wait("Canary: .*; starting the other new workers")
        until(lambda: not old & set(proc.children(server.pid)), "the old ones are gone")
        assert {server.get("/").body for _ in range(20)} == {b"new"}
        tally = load.stop()
    assert tally.failures == []


@pytest.mark.parametrize("worker_class", each("gthread", "asgi"))
def test_clients_whose_connections_stay_open_meet_the_canary(worker_class: str) -> None:
    """Pools of a load balancer; these classes have room for all of them in one worker."""
    with (
        Canaries(worker_class, seconds=10.0) as server,
        Load(server.address, "/", clients=8, check=lambda reply: reply.body in (b"old", b"new")) as load,
    ):
        old = set(server.worker_pids())
        load.settle(100)
        server.begin("slow")
        server.end_of_rollback(old)
        assert server.log.matching(WHY["slow"])
        tally = load.stop()
    assert tally.failures == []


def test_clients_of_http2_connect_anew_and_lose_nothing() -> None:
    with Canaries(seconds=3600.0, more="http_protocols = 'h2,h1'\nhttp2_cleartext = 'prior-knowledge'\n") as server:
        with Http2Wire(server.connect()) as wire:
            assert wire.get("/").body == b"old"
            assert wire.goaway is None
            server.begin()
            while wire.goaway is None:
                assert wire.get("/").status == 200
            assert wire.end() == NO_ERROR
        server.log.wait("Canary: comparing")


def test_worse_code_in_a_mold_is_rolled_back_with_its_mold() -> None:
    with Canaries(more="preload_app = 'mold'\n", seconds=20.0) as server, loaded(server) as load:
        old = set(proc.children(server.pid))
        server.deploy("fails", "new")
        server.signal(signal.SIGHUP)
        server.log.wait("Reload failed; the old workers keep serving")
        until(lambda: set(proc.children(server.pid)) == old, "the old workers and their mold")
        tally = load.stop()
    assert tally.failures == []


def test_a_canary_that_is_killed_ends_the_reload() -> None:
    with Canaries(seconds=3600.0, expects="SIGKILL") as server:
        old = set(server.worker_pids())
        (canary,) = server.begin()
        os.kill(canary, signal.SIGKILL)
        server.end_of_rollback(old)
        assert {server.get("/").body for _ in range(20)} == {b"old"}


def test_an_old_worker_that_is_killed_is_replaced_and_the_comparison_goes_on() -> None:
    with Canaries(seconds=3.0, expects="SIGKILL") as server, loaded(server) as load:
        old = set(server.worker_pids())
        server.begin()
        os.kill(min(old), signal.SIGKILL)
        server.log.wait("Canary: .*; starting")
        until(lambda: not old & set(proc.children(server.pid)), "the old ones are gone")
        load.stop()


def test_a_stop_during_the_comparison_ends_all_workers_gracefully() -> None:
    with Canaries(seconds=3600.0) as server, loaded(server) as load:
        server.begin()
        load.settle(50)
        load.leaving()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        tally = load.join()
    assert tally.failures == []


def test_a_reload_during_the_comparison_happens_afterwards() -> None:
    with Canaries(seconds=3.0) as server, loaded(server) as load:
        server.begin()
        server.deploy("good", "new")
        server.signal(signal.SIGHUP)
        server.log.wait("Canary: comparing", count=2)
        assert server.log.matching("Canary: .*; starting")
        server.log.wait("Canary: .*; starting", count=2)
        tally = load.stop()
    assert tally.failures == []


def test_code_without_an_error_of_its_own_that_fails_a_dependency_is_not_blamed() -> None:
    """Both generations fail alike."""
    files = {"mine.py": code("gthread", "fails", "old")}
    config = "threads = 4\nworkers = 2\ncanary = 1\ncanary_time = 3\ncanary_requests = 20\n"
    with (
        Site(config, app="mine:application", workers=2, files=files) as server,
        Load(server.address, "/", clients=6, fields=CLOSE, check=lambda reply: True, pause=0.002) as load,
    ):
        server.log.wait("Ready: ")
        load.settle(50)
        server.signal(signal.SIGHUP)
        server.log.wait("Canary: no difference found: 1?[0-9]")


def test_the_control_socket_asks_for_a_canary_and_tells_of_it(tmp_path: Path) -> None:
    path = str(tmp_path / "control")
    with Canaries(seconds=3600.0, more=f"canary = 0\ncontrol_socket = {path!r}\n") as server, loaded(server) as load:
        events: list[dict[str, object]] = []

        def follow() -> None:
            with Control.connect(path, timeout=60) as following:
                for event in following.events():
                    events.append(event)
                    if event["event"] == "reload_rolled_back":
                        return

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        with Control.connect(path, timeout=60) as control, Control.connect(path, timeout=60) as waiting:
            server.deploy("fails", "new")
            until(lambda: control.ask("status")["reloading"] is False, "it answers")
            outcome: list[object] = []

            def ask() -> None:
                try:
                    outcome.append(waiting.ask("reload", wait=True, canary="34%", **{"for": 30}))
                except Refused as error:
                    outcome.append(str(error))

            asking = threading.Thread(target=ask, daemon=True)
            asking.start()

            def told() -> object:
                return (control.ask("status")["canary"] or {}).get("state")

            until(lambda: told() == "watched" or bool(outcome), "the canaries are watched")
            asking.join(60)
            assert len(outcome) == 1
            assert "requests of the new workers failed (" in str(outcome[0])
            assert control.ask("status")["canary"] is None
            assert control.ask("stats")["reloads"] == {"rolled_back": 1}
        follower.join(20)
        names = [event["event"] for event in events]
        wanted = ["reload_begun", "canary_booting", "canary_watched", "reload_rolled_back"]
        assert [name for name in names if name in wanted] == wanted
        (begun,) = [event for event in events if event["event"] == "canary_booting"]
        assert begun["workers"] == 2
        assert "failed" in str(events[-1]["reason"])
        load.stop()


def test_ones_own_judge_sees_the_numbers_and_decides(tmp_path: Path) -> None:
    hook = f"""\
def canary_judge(server, old, new):
    if new.requests < 20:
        return None
    with open({str(tmp_path / "told")!r}, "w") as file:
        print(new.requests, old.requests, new.percentile(0.5) < 1, file=file)
    return False

def on_rollback(server, reason):
    with open({str(tmp_path / "reason")!r}, "w") as file:
        file.write(reason)
"""
    with Canaries(seconds=3600.0, more=hook) as server, loaded(server) as load:
        old = set(server.worker_pids())
        server.begin()
        server.end_of_rollback(old)
        until((tmp_path / "reason").exists, "the hook is told")
        assert (tmp_path / "reason").read_text() == "the hook canary_judge returned False"
        new_requests, old_requests, is_short = (tmp_path / "told").read_text().split()
        assert int(new_requests) >= 20
        assert int(old_requests) > 0
        assert is_short == "True"
        tally = load.stop()
    assert tally.failures == []


def test_rubbish_in_the_page_of_a_canary_harms_nobody() -> None:
    scribbles = """\
def post_worker_init(worker):
    import mine
    if hasattr(mine, 'SCRIBBLES'):
        import os, threading
        def scribble():
            import time
            while True:
                worker.spec.page[128:4000] = os.urandom(3872)
                time.sleep(0.01)
        threading.Thread(target=scribble, daemon=True).start()
"""
    good = code("gthread", "good", "old")
    with Canaries(seconds=4.0, more=scribbles) as server, loaded(server) as load:
        server.write("mine.py", "SCRIBBLES = True\n" + good)
        old = set(server.worker_pids())
        server.signal(signal.SIGHUP)
        server.log.wait("Canary: comparing")
        until(lambda: bool(server.log.matching("Reload failed|Canary: .*; starting")), "a verdict, whatever it is")
        until(lambda: bool(old & set(server.worker_pids())) == bool(server.log.matching("Reload failed")), "one stays")
        load.settle(50)
        load.stop()
