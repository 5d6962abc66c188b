"""Envoy weighs hosts by what their responses report (`load_report = "orca"`): one at half speed gets half as much."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.cluster.balancers import Envoy
from tests.cluster.cluster import HOSTS, at_once
from tests.cluster.load import Load, Told, lost
from tests.cluster.net import Network
from tests.cluster.servers import Tricorn
from tests.harness import until

THREADS, WORK, CLIENTS = 4, 0.1, 6
HALF = (0.3, 0.72)
"""Requests of the host at half speed, of the others' mean. Weights that are not used make it 1."""

KIND = "envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin"
POLICY = f"""\
    load_balancing_policy:
      policies:
      - typed_extension_config:
          name: envoy.load_balancing_policies.client_side_weighted_round_robin
          typed_config:
            "@type": type.googleapis.com/{KIND}
            enable_oob_load_report: false
            blackout_period: 1s
            weight_update_period: 1s
"""


def weighted(text: str) -> str:
    old = "    lb_policy: LEAST_REQUEST\n"
    assert old in text
    return text.replace(old, POLICY)


def share(told: list[Told]) -> float:
    """Of the first host, of the mean of the others."""
    counted = Counter(each.host for each in told)
    return counted[HOSTS[0]] * 2 / (counted[HOSTS[1]] + counted[HOSTS[2]])


def test_a_host_at_half_speed_gets_half_as_much(network: Network, tmp_path: Path) -> None:
    extra = ["--threads", str(THREADS), "--load-report", "orca"]
    hosts = [Tricorn(network[name], "gthread", workers=1, extra=extra) for name in HOSTS]
    with ExitStack() as stack:
        for host in hosts:
            stack.push(host.__exit__)
        at_once(Tricorn.start, hosts)
        before = stack.enter_context(
            Envoy(network["balancer"], [host.host for host in hosts], tmp_path, weighted),
        )
        fields = (("X-Work", str(WORK)),)
        with Load(network["client"], before.address, clients=CLIENTS, pause=0, fields=fields) as load:
            load.settle(200)
            even = share(load.next(200))
            hosts[0].takes(2)
            until(lambda: share(load.told[-200:]) < HALF[1], "Envoy sends the slow host less")
            half = share(load.next(400))
        print(f"requests of a host beside the others' mean: {even:.2f}, at half speed {half:.2f}")
        assert 0.75 < even < 1.33
        assert HALF[0] < half < HALF[1]
        assert not lost(load.told), lost(load.told)[:5]
