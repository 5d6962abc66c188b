"""When a collector's name is looked up again, and what comes of it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.periodic import collector_resolver as module
from tricorn.arbiter.periodic.collector_resolver import LONGEST, PAUSE, USUAL, CollectorResolver
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.config.collectors import Collector
from tricorn.log import outlet as outlets
from tricorn.log.outlet import Outlet
from tricorn.unpatched import select

from tests.harness.deadline import until
from tests.unit.arbiter.policy.support import QUIET

STATE = State(1, QUIET)

Names = dict[str, str]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    known = {"collector": "127.0.0.1"}

    def look_up(host: str, port: int, family: int, kind: int) -> list[Any]:
        if host not in known:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, kind, 0, "", (known[host], port))]

    monkeypatch.setattr(outlets.socket, "getaddrinfo", look_up)
    return known


class Arbiter:
    def __init__(self, *made: Outlet) -> None:
        self.said: list[str] = []
        self.lost = 0
        log = SimpleNamespace(outlets=lambda: list(made), info=lambda text, *rest: self.said.append(text % rest))
        handle = SimpleNamespace(snapshot=self._snapshot)
        self.parts: Any = SimpleNamespace(
            generation=SimpleNamespace(log=log),
            processes=SimpleNamespace(handles={1: handle}, signals=(), private=[]),
        )
        self.resolver = CollectorResolver(self.parts, 0.0)

    def _snapshot(self) -> Any:
        return SimpleNamespace(figures={"statsd_lost": self.lost, "syslog_lost": 0})

    def look(self, now: float) -> None:
        """As the schedule does: when it is due, or its descriptor is readable."""
        poll = select.poll()
        if self.resolver.descriptor >= 0:
            poll.register(self.resolver.descriptor, select.POLLIN)
        if poll.poll(0) or now >= self.resolver.due(STATE, now):
            assert self.resolver.run(STATE, now) == ()

    def ask(self, now: float) -> bool:
        """Whether a lookup was begun; it is waited for."""
        self.look(now)
        reader = self.resolver.descriptor
        if reader < 0:
            return False
        assert self.parts.processes.private == [reader], "no worker has it"
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        assert poll.poll(20_000)
        until(lambda: self.look(now) or self.resolver.descriptor < 0, "the answer is read")
        assert self.parts.processes.private == []
        return True


@pytest.fixture
def udp() -> Iterator[Callable[[str], Outlet]]:
    made: list[Outlet] = []

    def make(host: str) -> Outlet:
        made.append(Outlet(Collector("udp", host, 8125), keeps=False, inet4=True))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_name_that_means_another_address_is_followed_by_the_socket_that_all_share(
    names: Names, udp: Callable[[str], Outlet]
) -> None:
    outlet = udp("collector")
    arbiter = Arbiter(outlet)
    shared = outlet.socket()  # as a fork, or a core, has it
    assert shared is not None
    assert shared.getpeername() == ("127.0.0.1", 8125)
    names["collector"] = "127.0.0.2"
    arbiter.lost = 1
    assert not arbiter.ask(PAUSE - 1)
    assert arbiter.ask(PAUSE)
    assert outlet.address == ("127.0.0.2", 8125)
    assert shared.getpeername() == ("127.0.0.2", 8125)
    assert arbiter.said == [
        "collector:8125 is at 127.0.0.2 from now on: the host name now resolves to another address."
    ]
    shared.close()


def test_it_is_asked_for_ever_more_rarely_while_the_answer_is_the_same(
    names: Names, udp: Callable[[str], Outlet]
) -> None:
    arbiter = Arbiter(udp("collector"))
    asked = []
    for now in range(0, 2000, 5):
        arbiter.lost += 1
        if arbiter.ask(float(now)):
            asked.append(now)
    pauses = [after - before for before, after in pairwise(asked)]
    assert pauses[:4] == [10, 20, 40, 80]
    assert max(pauses) == LONGEST
    assert arbiter.said == []


def test_while_nothing_is_lost_it_is_asked_now_and_then(names: Names, udp: Callable[[str], Outlet]) -> None:
    arbiter = Arbiter(udp("collector"))
    asked = [now for now in range(0, 200, 5) if arbiter.ask(float(now))]
    assert asked == [USUAL, 2 * USUAL, 3 * USUAL]


def test_a_name_that_was_not_known_is_found_and_one_that_is_forgotten_stays(
    names: Names, udp: Callable[[str], Outlet]
) -> None:
    unknown, known = udp("later"), udp("collector")
    assert unknown.address is None
    arbiter = Arbiter(unknown)
    names["later"] = "127.0.0.3"
    assert arbiter.ask(PAUSE)
    assert unknown.address == ("127.0.0.3", 8125)
    names.clear()
    arbiter = Arbiter(known)
    assert arbiter.ask(USUAL)
    assert known.address == ("127.0.0.1", 8125)


def test_addresses_are_not_looked_up(udp: Callable[[str], Outlet]) -> None:
    for host in ("127.0.0.1", "localhost"):
        assert Arbiter(udp(host)).resolver.due(STATE, 0.0) == NEVER
    path = Outlet(Collector("dgram", "/nowhere"), keeps=False)
    assert not path.has_name
    assert not Outlet(Collector("udp", "::1", 9), keeps=False).has_name


def test_a_resolver_that_hangs_is_ended(
    names: Names, udp: Callable[[str], Outlet], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    outlet = udp("collector")
    arbiter = Arbiter(outlet)
    monkeypatch.setattr(module.os, "kill", lambda pid, number: killed.append(pid))
    reader, writer = module.os.pipe()
    module.os.set_blocking(reader, False)
    monkeypatch.setattr(module, "fork", lambda _: SimpleNamespace(pid=4711, messages=reader))
    arbiter.look(USUAL)
    assert arbiter.resolver.descriptor == reader
    arbiter.look(USUAL + module.ANSWER - 1)
    assert killed == []
    arbiter.look(USUAL + module.ANSWER)
    assert (killed, arbiter.resolver.descriptor) == ([4711], -1)
    assert outlet.address == ("127.0.0.1", 8125)
    module.os.close(writer)
