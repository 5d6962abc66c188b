"""Scaling down while other workers boot: those that serve stay."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from tricorn.control.client import Control

from tests.harness import KINDS, Site, configured, until
from tests.harness.site import ASGI_MODULE, OWN_MODULE
from tests.harness.wire import request

GATE = """\
import time

if os.path.exists("hold"):
    open(f"held.{os.getpid()}", "w").close()
    while os.path.exists("hold"):
        time.sleep(0.01)
"""
"""An application that takes long to load: as long as there is a file `hold`."""


def by_signals(server: Site) -> Callable[[int], None]:
    def scale(by: int) -> None:
        name = "ttin" if by > 0 else "ttou"
        for _ in range(abs(by)):  # two signals of one kind at once are one (signal(7))
            seen = len(server.log.matching(f"Handling signal: {name}"))
            server.signal(signal.SIGTTIN if by > 0 else signal.SIGTTOU)
            server.log.wait(f"Handling signal: {name}", count=seen + 1)

    return scale


def by_operator(server: Site) -> Callable[[int], None]:
    def scale(by: int) -> None:
        with Control(str(server.directory / "ctl")) as control:
            control.ask("scale", workers=f"{by:+}")

    return scale


@pytest.mark.parametrize("how", [by_signals, by_operator])
@KINDS
def test_workers_that_boot_go_before_those_that_serve(
    worker_class: str, how: Callable[[Site], Callable[[int], None]]
) -> None:
    with site(worker_class) as server:
        scale = how(server)
        before = answering(server, 2)
        server.write("hold", "")
        scale(+3)
        until(lambda: len(held(server)) == 3, "three workers load the application")
        scale(-3)
        until(lambda: set(server.worker_pids()) == before, "those that had not loaded it are gone")
        assert answering(server, 2) == before
        assert not server.log.matching("ERROR"), "it is no failure"


@KINDS
def test_a_worker_that_loads_is_kept_while_it_is_wanted(worker_class: str) -> None:
    with site(worker_class) as server:
        before = answering(server, 2)
        server.write("hold", "")
        by_signals(server)(+1)
        (first,) = until(lambda: held(server), "one worker loads the application")
        by_signals(server)(+2)
        until(lambda: len(held(server)) == 3, "two more do")
        by_signals(server)(-2)
        until(lambda: set(server.worker_pids()) == {*before, first}, "the younger ones are gone")
        (server.directory / "hold").unlink()
        until((server.directory / f"slow.py.{first}.imported").exists, "the one that began first has loaded it")
        assert set(server.worker_pids()) == {*before, first}


def site(worker_class: str) -> Site:
    source = ASGI_MODULE if worker_class == "asgi" else OWN_MODULE
    body = 'b"%d" % os.getpid()'
    source = source.replace('b"{text}"', body).replace("open(f", f"{GATE}\nopen(f", 1)
    return Site(
        f"workers = 2\nchdir = '.'\n{configured(worker_class)}",
        app="slow:application",
        workers=2,
        files={"slow.py": source},
        extra=["--control-socket", "ctl"],
    )


def held(server: Site) -> list[int]:
    """The workers that wait in the application's module, or have."""
    return [int(path.suffix[1:]) for path in Path(server.directory).glob("held.*")]


def answering(server: Site, count: int) -> set[int]:
    """The pids of as many workers, once each has answered."""
    found: set[int] = set()

    def all_did() -> bool:
        with ExitStack() as stack:
            wires = [stack.enter_context(server.connect()) for _ in range(4 * count)]
            for wire in wires:  # at once, so that one worker alone does not get to all of them
                wire.send(request("GET", "/"))
            found.update(int(wire.reply().body) for wire in wires)
        return len(found) >= count

    until(all_did, f"{count} workers answer")
    return found
