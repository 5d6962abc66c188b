"""Doctor: an effect for each setting."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tricorn.control.client import Control

from tests.harness import Site, until

LIBRARY = """
import ctypes
c = ctypes.CDLL(None)
def wait():
    c.usleep(300_000)
"""
APPLICATION = """
import slow
def application(environ, start_response):
    slow.wait()
    start_response("204 No Content", [])
    return []
"""
PYCURL = "class Curl:\n    def perform(self): pass\nclass CurlMulti:\n    def select(self, timeout): pass\n"
IMPORTS = {"pycurl.py": PYCURL, "loud.py": "import pycurl\nfrom gallery import application\n"}
BLOCKS = r"pycurl .* blocks the whole worker"
HEALED = r"pycurl .* transfers are made by threads"
HELD_UP = r"blocked for \d+\.\d+ s by one call\. Blocked .*slow\.py:5 in wait"


def seconds(config: str, count: int = 6) -> float:
    """How long so many requests take that come together and wait in C for 0.3 s each."""
    files = {"slow.py": LIBRARY, "waits.py": APPLICATION}
    config = f"worker_class = 'gevent'\n{config}"
    with Site(config, app="waits:application", files=files) as server, ThreadPoolExecutor(count) as pool:
        began = time.monotonic()
        assert {reply.status for reply in pool.map(lambda _: server.get("/"), range(count))} == {204}
        return time.monotonic() - began


def ask_until(server: Site, pattern: str) -> None:
    """Asks again while nothing is told: on a crowded machine the request may be over before the doctor looks."""

    def is_told() -> bool:
        assert server.get("/").status == 204
        return bool(server.log.matching(pattern))

    until(is_told, f"the log has {pattern!r}")


def sees_doctor(directory: Path) -> None:
    config = "worker_class = 'gevent'\ndoctor = 'off'\n"
    with Site(config, app="loud:application", files=IMPORTS) as server:
        assert server.get("/hello").status == 200
        assert server.log.matching(BLOCKS) == []
    with Site(config, app="loud:application", files=IMPORTS, extra=("--doctor", "heal")) as server:
        server.log.wait(HEALED)
        assert server.log.matching(BLOCKS) == []


def sees_cures(directory: Path) -> None:
    config = "worker_class = 'gevent'\ndoctor = 'heal'\ncures = ['sqlite3']\n"
    with Site(config, app="loud:application", files=IMPORTS) as server:
        server.log.wait(BLOCKS)
        assert server.log.matching(HEALED) == []
    with Site(config, app="loud:application", files=IMPORTS, extra=("--cure", "pycurl")) as server:
        server.log.wait(HEALED)


def sees_offload(directory: Path) -> None:
    assert seconds("") > 1.7, "one after another"
    assert seconds("offload = ['slow:wait']\n") < 1.5


def sees_offload_threads(directory: Path) -> None:
    assert seconds("offload = ['slow:wait']\noffload_threads = 1\n") > 1.7


def sees_profile_after(directory: Path) -> None:
    socket = directory / "ctl"
    for more, slow in (("", 1), ("profile_after = 5\n", 0), ("profile_after = 0\n", 0), ("doctor = 'off'\n", 0)):
        files = {"slow.py": LIBRARY, "waits.py": APPLICATION}
        config = f"control_socket = {str(socket)!r}\n{more}"
        with Site(config, app="waits:application", files=files) as server:
            assert server.get("/").status == 204
            if slow:
                until(lambda: profiles(socket), "the request is noted", every=0.1)
            assert bool(profiles(socket)) == bool(slow)


def profiles(socket: Path) -> list[object]:
    with Control.connect(socket, timeout=10) as control:
        found: list[object] = control.ask("slow")["workers"]
    return found


def sees_doctor_threshold(directory: Path) -> None:
    files = {"slow.py": LIBRARY, "waits.py": APPLICATION}
    for more, is_told in (("", True), ("doctor_threshold = 0\n", False), ("doctor = 'off'\n", False)):
        with Site(f"worker_class = 'gevent'\n{more}", app="waits:application", files=files) as server:
            for _ in range(3):
                assert server.get("/").status == 204
            if is_told:
                ask_until(server, HELD_UP)
            assert bool(server.log.matching(HELD_UP)) == is_told


def sees_doctor_slow_request(directory: Path) -> None:
    files = {"slow.py": LIBRARY, "waits.py": APPLICATION}
    says = r"GET / has run for \d+\.\d+ s in worker .*Blocked .*slow\.py:5 in wait"
    for more, is_told in (
        ("doctor_slow_request = 0.1\n", True),
        ("", False),
        ("doctor_slow_request = 0\n", False),
        ("doctor_slow_request = 0.1\ndoctor = 'off'\n", False),
    ):
        with Site(f"worker_class = 'gthread'\n{more}", app="waits:application", files=files) as server:
            for _ in range(3):
                assert server.get("/").status == 204
            if is_told:
                ask_until(server, says)
            assert bool(server.log.matching(says)) == is_told


def sees_doctor_deep(directory: Path) -> None:
    _asks_for_the_signal("doctor_deep = True\n")


def sees_doctor_level(directory: Path) -> None:
    _asks_for_the_signal("doctor_level = 'thorough'\n")


def _asks_for_the_signal(config: str) -> None:
    taken = "import signal\nsignal.signal(signal.SIGRTMIN + 10, lambda *_: None)\n"
    files = {"slow.py": LIBRARY, "waits.py": taken + APPLICATION}
    for more, is_told in ((config, True), ("", False)):
        with Site(f"worker_class = 'gevent'\n{more}", app="waits:application", files=files) as server:
            for _ in range(3):
                assert server.get("/").status == 204
            ask_until(server, HELD_UP)
            assert bool(server.log.matching(r"doctor_deep needs the signal")) == is_told
