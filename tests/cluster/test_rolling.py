"""Every host is stopped and started, one after another, under load: no request is lost.

`make test-all` has the rows of `SHORT`; `make test-cluster` has all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.balancers import BALANCERS
from tests.cluster.cluster import ALL, cluster, judge, replace
from tests.cluster.load import Load
from tests.cluster.net import Network

ROLLING = [
    (balancer, worker_class, drain_delay)
    for balancer in BALANCERS
    for worker_class in ("sync", "asgi")
    for drain_delay in (0, 2)
]
SYN_AGAIN = 1.0
"""Seconds after which Linux sends a SYN again that had no answer: TCP_TIMEOUT_INIT."""
SHORT = [("haproxy", "sync", 0), ("l4", "asgi", 2)]


@pytest.mark.parametrize(("balancer", "worker_class", "drain_delay"), ROLLING if ALL else SHORT)
def test_each_host_in_turn_is_stopped_and_started(
    network: Network, tmp_path: Path, balancer: str, worker_class: str, drain_delay: float
) -> None:
    with cluster(network, balancer, worker_class, tmp_path, drain_delay=drain_delay) as (before, servers):
        with Load(network["client"], before.address, clients=8) as load:
            load.settle(50)
            for server in servers:
                replace(server, before, drain_delay)
                load.settle(20)
        judge(load.told)
        if drain_delay == 0:
            slowest = max(load.told, key=lambda told: told.seconds)
            assert slowest.seconds < SYN_AGAIN, f"a host that leaves refuses connections, and drops none: {slowest}"
