"""Doctor: an effect for each setting."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from tricorn.control.client import Control

from tests.compat.effects.shared import shared
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
TAKEN = "import signal\nsignal.signal(signal.SIGRTMIN + 10, lambda *_: None)\n"
IMPORTS = {"pycurl.py": PYCURL, "loud.py": "import pycurl\nfrom gallery import application\n"}
BLOCKS = r"pycurl .* blocks the whole worker"
HEALED = r"pycurl .* transfers run in threads"
HELD_UP = r"blocked for \d+\.\d+ s by one call\. Blocked .*slow\.py:5 in wait"


def waiting(config: str) -> Site:
    """A server whose application waits in C for 0.3 s."""
    return Site(config, app="waits:application", files={"slow.py": LIBRARY, "waits.py": TAKEN + APPLICATION})


@shared
def green() -> Site:
    return waiting("worker_class = 'gevent'\n")


@shared
def green_unwatched() -> Site:
    return waiting("worker_class = 'gevent'\ndoctor_threshold = 0\n")


@shared
def green_without_doctor() -> Site:
    return waiting("worker_class = 'gevent'\ndoctor = 'off'\n")


@shared
def threaded() -> Site:
    return waiting("worker_class = 'gthread'\nthreads = 1\ncontrol_socket = 'control'\n")


@shared
def threaded_and_slow() -> Site:
    config = "control_socket = 'control'\ndoctor_slow_request = 0.1\nprofile_after = 5\n"
    return waiting(f"worker_class = 'gthread'\n{config}")


@shared
def threaded_unwatched() -> Site:
    config = "control_socket = 'control'\ndoctor_slow_request = 0\nprofile_after = 0\n"
    return waiting(f"worker_class = 'gthread'\n{config}")


@shared
def threaded_without_doctor() -> Site:
    return waiting("worker_class = 'gthread'\ncontrol_socket = 'control'\ndoctor_slow_request = 0.1\ndoctor = 'off'\n")


def seconds(server: Site, count: int = 6) -> float:
    """How long so many requests take that come together and wait in C for 0.3 s each."""
    with ThreadPoolExecutor(count) as pool:
        began = time.monotonic()
        assert {reply.status for reply in pool.map(lambda _: server.get("/"), range(count))} == {204}
        return time.monotonic() - began


def ask_until(server: Site, pattern: str) -> None:
    """Asks again while nothing is told: on a crowded machine the request may be over before the doctor looks."""

    def is_told() -> bool:
        assert server.get("/").status == 204
        return bool(server.log.matching(pattern))

    until(is_told, f"the log has {pattern!r}")


def sees_doctor() -> None:
    config = "worker_class = 'gevent'\ndoctor = 'off'\n"
    with Site(config, app="loud:application", files=IMPORTS) as server:
        assert server.get("/hello").status == 200
        assert server.log.matching(BLOCKS) == []
    with Site(config, app="loud:application", files=IMPORTS, extra=("--doctor", "heal")) as server:
        server.log.wait(HEALED)
        assert server.log.matching(BLOCKS) == []


def sees_cures() -> None:
    config = "worker_class = 'gevent'\ndoctor = 'heal'\ncures = ['sqlite3']\n"
    with Site(config, app="loud:application", files=IMPORTS) as server:
        server.log.wait(BLOCKS)
        assert server.log.matching(HEALED) == []
    with Site(config, app="loud:application", files=IMPORTS, extra=("--cure", "pycurl")) as server:
        server.log.wait(HEALED)


def sees_offload(green: Site) -> None:
    assert seconds(green) > 1.7, "one after another"
    with waiting("worker_class = 'gevent'\noffload = ['slow:wait']\n") as server:
        assert seconds(server) < 1.5


def sees_offload_threads() -> None:
    with waiting("worker_class = 'gevent'\noffload = ['slow:wait']\noffload_threads = 1\n") as server:
        assert seconds(server) > 1.7


def profiles(server: Site) -> list[object]:
    with Control.connect(server.directory / "control", timeout=10) as control:
        found: list[object] = control.ask("slow")["workers"]
    return found


def sees_profile_after(
    threaded: Site, threaded_and_slow: Site, threaded_unwatched: Site, threaded_without_doctor: Site
) -> None:
    none = (threaded_and_slow, threaded_unwatched, threaded_without_doctor)
    for server in (threaded, *none):
        assert server.get("/").status == 204
    until(lambda: profiles(threaded), "the request is noted", every=0.1)
    assert [profiles(server) for server in none] == [[], [], []]


def sees_doctor_threshold(green: Site, green_unwatched: Site, green_without_doctor: Site) -> None:
    for server in (green_unwatched, green_without_doctor):
        for _ in range(3):
            assert server.get("/").status == 204
    ask_until(green, HELD_UP)
    assert not green_unwatched.log.matching(HELD_UP)
    assert not green_without_doctor.log.matching(HELD_UP)


def sees_doctor_slow_request(
    threaded_and_slow: Site, threaded: Site, threaded_unwatched: Site, threaded_without_doctor: Site
) -> None:
    told = r"GET / has run for \d+\.\d+ s in worker .*Blocked .*slow\.py:5 in wait"
    silent = (threaded, threaded_unwatched, threaded_without_doctor)
    for server in silent:
        for _ in range(3):
            assert server.get("/").status == 204
    ask_until(threaded_and_slow, told)
    assert [server.log.matching(told) for server in silent] == [[], [], []]


def sees_doctor_deep(green: Site) -> None:
    with waiting("worker_class = 'gevent'\ndoctor_deep = True\n") as server:
        _needs_the_signal(server, green)


def sees_doctor_level(green: Site) -> None:
    with waiting("worker_class = 'gevent'\ndoctor_level = 'thorough'\n") as server:
        _needs_the_signal(server, green)


def _needs_the_signal(deep: Site, shallow: Site) -> None:
    for server in (deep, shallow):
        ask_until(server, HELD_UP)
    needs = r"doctor_deep needs the signal"
    assert (bool(deep.log.matching(needs)), bool(shallow.log.matching(needs))) == (True, False)
