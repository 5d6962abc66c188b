"""HAProxy asks each host for its load (`agent-check`): one that is slowed down gets less, one that leaves nothing."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benches.one_queue.theory import poisson, quantile
from tests.cluster.balancers import AGENT, CHECK, HAProxy, servers
from tests.cluster.cluster import HOSTS, at_once
from tests.cluster.load import Arrival, Load, Told, arrivals, lost
from tests.cluster.net import Host, Network
from tests.cluster.servers import ADMIN, PORT, Tricorn
from tests.harness import until
from tests.harness.wire import Wire

THREADS, WORK = 4, 0.1
FIELDS = (("X-Work", str(WORK)),)
CLIENTS = 6
"""Half of what the hosts can do with one of them at half speed, so that a host seldom has more than its threads."""
SLOW = (0.12, 0.28)
"""The share of a host at half speed: a fifth by theory, a third without weights."""
LOAD, SECONDS, MOST = 0.7, 20.0, 60
RATIO = 2.0
"""Of the 99th percentiles by the agent's weights and by `leastconn`: 1.3 is wanted, the rest is the machine's noise."""


def by_agent(text: str) -> str:
    """Weights alone say which host is next, and without `check` the agent alone says that one leaves."""
    return servers(text.replace("balance leastconn", "balance roundrobin"), AGENT)


def least_connections(text: str) -> str:
    return servers(text, CHECK)


@contextmanager
def three(network: Network, *, drain_delay: float = 0) -> Iterator[list[Tricorn]]:
    """The first of them has a `drain_delay`."""
    extra = ["--threads", str(THREADS), "--drain-quiet", "0"]
    delays = (drain_delay, 0, 0)
    hosts = [
        Tricorn(network[name], "gthread", workers=1, drain_delay=delay, extra=extra)
        for name, delay in zip(HOSTS, delays, strict=True)
    ]
    with ExitStack() as stack:
        for host in hosts:
            stack.push(host.__exit__)
        at_once(Tricorn.start, hosts)
        yield hosts


def load_of(host: Host) -> dict[str, Any]:
    with host.entered(), Wire((host.address, ADMIN)) as wire:
        told: dict[str, Any] = json.loads(wire.get("/load").body)
        return told


def share(told: list[Told], host: str) -> float:
    return Counter(each.host for each in told)[host] / len(told)


def slowed_down(slow: Tricorn, before: HAProxy, load: Load, hosts: list[Tricorn]) -> None:
    """Until HAProxy knows that one host has half of its speed, which it has to have had before."""
    until(lambda: all(is_known(host.host) for host in hosts), "each host knows what its best speed is", every=0.2)
    load.settle(100)
    slow.takes(2)
    until(lambda: 40 <= before.weight(slow.host) <= 60, "the slow host has half of the weight", every=0.1)


def is_known(host: Host) -> bool:
    told = load_of(host)
    return bool(told["utilisation"] >= 0.3 and told["rps"] >= 10)


def test_a_host_at_half_speed_gets_half_as_much(network: Network, tmp_path: Path) -> None:
    with (
        three(network) as hosts,
        HAProxy(network["balancer"], [host.host for host in hosts], tmp_path, by_agent) as before,
        Load(network["client"], before.address, clients=CLIENTS, pause=0, fields=FIELDS) as load,
    ):
        slow = hosts[0]
        before.until_told(THREADS)
        slowed_down(slow, before, load, hosts)
        got, weights = share(load.next(400), slow.host.name), [before.weight(host.host) for host in hosts]
        print(f"weights {weights}, share of the slow host {got:.3f}")
        assert SLOW[0] < got < SLOW[1], weights
        assert 35 <= weights[0] <= 65 < 70 <= min(weights[1:]), weights
        slow.takes(1)
        until(lambda: before.weight(slow.host) >= 80, "its weight is back", every=0.1)
        assert share(load.next(400), slow.host.name) > SLOW[1]
    assert not lost(load.told), lost(load.told)[:5]


def test_a_host_that_leaves_gets_nothing_new(network: Network, tmp_path: Path) -> None:
    """HAProxy is told by the agent alone: there is no other check, and the host still serves."""
    with (
        three(network, drain_delay=60) as hosts,
        HAProxy(network["balancer"], [host.host for host in hosts], tmp_path, by_agent) as before,
        Load(network["client"], before.address, clients=CLIENTS, pause=0, fields=FIELDS) as load,
    ):
        leaving = hosts[0]
        before.until_told(THREADS)
        assert {each.host for each in load.next(60)} == set(HOSTS)
        leaving.signal(signal.SIGTERM)
        try:
            until(lambda: before.weight(leaving.host) == 0, "the host that leaves has no weight")
            assert {each.host for each in load.next(100)} == set(HOSTS[1:])
            with network["client"].entered(), Wire((leaving.host.address, PORT)) as direct:
                assert direct.get("/").body.decode() == leaving.host.name, "it still serves"
        finally:
            leaving.signal(signal.SIGQUIT)
    assert not lost(load.told), lost(load.told)[:5]


def test_weights_are_about_as_good_as_the_fewest_connections(network: Network, tmp_path: Path) -> None:
    """With one of three hosts at half speed; the same requests for both."""
    trace = poisson(LOAD, int(THREADS * 2.5), WORK, SECONDS, seed=0)
    work = [Arrival(at, work) for at, work in zip(*trace, strict=True)]

    def p99(change: Callable[[str], str], hosts: list[Tricorn]) -> float:
        with HAProxy(network["balancer"], [host.host for host in hosts], tmp_path, change) as before:
            with Load(network["client"], before.address, clients=CLIENTS, pause=0, fields=FIELDS) as load:
                if change is by_agent:
                    slowed_down(hosts[0], before, load, hosts)
                load.settle(100)
            return quantile(sorted(arrivals(network["client"], before.address, work, MOST)), 0.99)

    with three(network) as hosts:
        agent, least = p99(by_agent, hosts), p99(least_connections, hosts)
    figures = f"99th percentiles in ms: agent {agent * 1e3:.0f}, leastconn {least * 1e3:.0f}, ratio {agent / least:.2f}"
    print(figures)
    assert agent <= RATIO * least, figures
