"""Hosts that are gone without a word, and clients that a kernel balances connection by connection."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cluster.balancers import L4
from tests.cluster.cluster import HOSTS, cluster, replace
from tests.cluster.load import Load, lost
from tests.cluster.net import Network
from tests.cluster.servers import Tricorn
from tests.harness import until


def test_a_host_whose_link_is_down_for_three_seconds(network: Network, tmp_path: Path) -> None:
    """HAProxy connects elsewhere; what was under way is answered when the link is back, by TCP's retransmissions."""
    with cluster(network, "haproxy", "sync", tmp_path) as (before, servers):
        with Load(network["client"], before.address, clients=8, timeout=20) as load:
            load.settle(50)
            servers[0].host.plug(connected=False)
            time.sleep(3)  # as long as the link is down
            load.settle(20)
            servers[0].host.plug(connected=True)
            load.settle(100)
        assert not lost(load.told), lost(load.told)[:5]


def test_a_host_that_dies_without_a_word(network: Network, tmp_path: Path) -> None:
    """HAProxy repeats a GET that has no answer. A POST that was under way would be lost, and is not sent here."""
    with cluster(network, "haproxy", "sync", tmp_path) as (before, servers):
        with Load(network["client"], before.address, clients=8, methods=("GET",)) as load:
            load.settle(50)
            servers[0].host.kill()
            load.settle(100)
        assert not lost(load.told), lost(load.told)[:5]
        assert {each.host for each in load.told[-50:]} == set(HOSTS[1:]), "the dead one is given nothing"


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "each-its-own"])
def test_connections_of_their_own_on_layer_4(network: Network, tmp_path: Path, keep: bool) -> None:
    with cluster(network, "l4", "sync", tmp_path, drain_delay=2) as (before, servers):
        with Load(network["client"], before.address, clients=8, keep=keep) as load:
            load.settle(50)
            for server in servers:
                replace(server, before, 2)
                load.settle(20)
        assert not lost(load.told), lost(load.told)[:5]


@pytest.mark.parametrize("worker_class", ["sync", "asgi"])
def test_a_host_that_is_added_gets_connections_that_were_kept_elsewhere(
    network: Network, tmp_path: Path, worker_class: str
) -> None:
    """The kernel balances connections, not requests: without an age of connections the third host gets none."""
    hosts = [network[name] for name in HOSTS]
    servers = [Tricorn(host, worker_class, extra=["--connection-max-age", "1"]) for host in hosts]
    with servers[0], servers[1], servers[2], L4(network["balancer"], hosts, tmp_path) as before:
        before.leaves(hosts[2])
        with Load(network["client"], before.address, clients=12) as load:
            load.settle(100)
            assert {each.host for each in load.told} == set(HOSTS[:2])
            before.is_back(hosts[2])
            until(lambda: sum(each.host == HOSTS[2] for each in load.told[-200:]) > 50, "a quarter is the third's")
        assert not lost(load.told), lost(load.told)[:5]
