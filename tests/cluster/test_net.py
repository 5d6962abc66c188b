"""The network itself: hosts reach each other and nothing else, and nothing of it stays."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.cluster import net
from tests.cluster.net import Network, ip


def test_hosts_reach_each_other_and_nothing_stays(network: Network) -> None:
    one, two = network["app-1"], network["app-2"]
    with one.entered(), socket.create_server((one.address, 9)) as listener:
        with two.entered(), socket.create_connection((one.address, 9), timeout=10) as client:
            accepted, peer = listener.accept()
            accepted.close()
            assert peer[0] == two.address == client.getsockname()[0]
        assert two.run(["cat", "/proc/net/route"]).count("\n") == 2, "a heading, and the route of its own network"


def test_a_cable_is_pulled_and_put_back(network: Network) -> None:
    one, two = network["app-1"], network["app-2"]
    with one.entered(), socket.create_server((one.address, 9)), two.entered():
        one.plug(connected=False)
        with pytest.raises(OSError, match="timed out"):
            socket.create_connection((one.address, 9), timeout=0.5)
        one.plug(connected=True)
        socket.create_connection((one.address, 9), timeout=10).close()


def test_another_thread_stays_where_it_is(network: Network) -> None:
    names: list[list[str]] = []

    def look() -> None:
        names.append([name for _, name in socket.if_nameindex()])

    with network["client"].entered():
        look()
        elsewhere = threading.Thread(target=lambda: look())
        with network["app-1"].entered():
            elsewhere.start()
            elsewhere.join()
    assert "eth0" in names[0]


def test_processes_end_with_their_host() -> None:
    if reason := net.lacking():
        pytest.skip(reason)
    with Network("app-1") as network:
        process = network["app-1"].start(["sleep", "600"])
        namespaces = [line.split()[0] for line in ip("netns", "list").splitlines() if line.split()[0] in network.made]
        assert len(namespaces) == 2
    assert process.wait(10) == -9
    assert not set(namespaces) & {line.split()[0] for line in ip("netns", "list").splitlines()}
