"""All hosts reload, or are upgraded, at the same time: a host never stops to listen, and no balancer sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.balancers import BALANCERS
from tests.cluster.cluster import at_once, cluster, judge
from tests.cluster.load import Load
from tests.cluster.net import Network
from tests.cluster.servers import Tricorn


@pytest.mark.parametrize("worker_class", ["sync", "asgi"])
@pytest.mark.parametrize("balancer", BALANCERS)
def test_all_hosts_reload_at_once(network: Network, tmp_path: Path, balancer: str, worker_class: str) -> None:
    with cluster(network, balancer, worker_class, tmp_path) as (before, servers):
        with Load(network["client"], before.address, clients=8) as load:
            load.settle(50)
            at_once(Tricorn.reload, servers)
            load.settle(50)
        judge(load.told)


@pytest.mark.parametrize("worker_class", ["sync", "asgi"])
@pytest.mark.parametrize("balancer", BALANCERS)
def test_all_hosts_upgrade_at_once(network: Network, tmp_path: Path, balancer: str, worker_class: str) -> None:
    with cluster(network, balancer, worker_class, tmp_path) as (before, servers):
        with Load(network["client"], before.address, clients=8) as load:
            load.settle(50)
            at_once(Tricorn.upgrade, servers)
            load.settle(50)
        for server in servers:
            server.leave_after_upgrade()
        judge(load.told)
