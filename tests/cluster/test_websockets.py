"""WebSockets on layer 4: a host that leaves tells its clients to go, evenly over `stream_drain`."""

from __future__ import annotations

import selectors
import signal
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.cluster.balancers import L4
from tests.cluster.cluster import HOSTS
from tests.cluster.net import Host, Network
from tests.cluster.servers import Tricorn
from tests.harness.frames import CLOSE, TEXT, Frames
from tests.harness.wire import Address

if TYPE_CHECKING:
    from typing_extensions import Self

SOCKETS, DRAIN = 300, 5
GOING_AWAY = 1001
EVEN = 1.5
"""Most clients that come back within one second, of what they would be if each second had as many."""
PATIENCE = 40.0


class Ended(NamedTuple):
    at: float
    """time.monotonic()"""
    host: str
    code: int | None


class Sockets:
    """A context manager: clients that come back at once when they are told to go. To be used within a host."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._selector = selectors.DefaultSelector()
        self._stack = ExitStack()
        self.ended: list[Ended] = []
        self.open: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._selector.close()

    def connect(self) -> None:
        client = self._stack.enter_context(Frames(self._address, "/"))
        greeting = client.frame()
        assert greeting.first == TEXT, greeting
        host = greeting.payload.decode()
        self.open[host] += 1
        self._selector.register(client.sock, selectors.EVENT_READ, (client, host))

    def until_left(self, host: str) -> None:
        """Until the host has no client; an end without a Close frame fails."""
        deadline = time.monotonic() + PATIENCE
        while self.open[host]:
            assert time.monotonic() < deadline, f"{self.open[host]} clients are still on {host}"
            for key, _ in self._selector.select(1):
                client, its_host = key.data
                got = client.frame()
                assert got.first == CLOSE, got
                self.ended.append(Ended(time.monotonic(), its_host, got.code))
                self._selector.unregister(client.sock)
                client.put(CLOSE, got.payload).close()
                self.open[its_host] -= 1
                self.connect()


def test_clients_of_a_host_that_leaves_come_back_evenly(network: Network, tmp_path: Path) -> None:
    hosts: list[Host] = [network[name] for name in HOSTS[:2]]
    servers = [Tricorn(host, "asgi", extra=["--stream-drain", str(DRAIN)]) for host in hosts]
    with servers[0], servers[1], L4(network["balancer"], hosts, tmp_path) as before:
        with network["client"].entered(), Sockets(before.address) as sockets:
            for _ in range(SOCKETS):
                sockets.connect()
            leaving = servers[0]
            there = sockets.open[leaving.host.name]
            assert there > SOCKETS / 4, sockets.open
            before.leaves(leaving.host)
            leaving.signal(signal.SIGTERM)
            sockets.until_left(leaving.host.name)
            assert sockets.open[hosts[1].name] == SOCKETS
        assert {(each.host, each.code) for each in sockets.ended} == {(leaving.host.name, GOING_AWAY)}
        first = sockets.ended[0].at
        seconds = Counter(int(each.at - first) for each in sockets.ended)
        drain = min(DRAIN, there / 100)  # at least 100 a second
        figures = f"{there} clients come back in {drain} s, by seconds: {[seconds[each] for each in range(DRAIN + 1)]}"
        print(figures)
        assert max(seconds.values()) <= EVEN * there / drain, figures
