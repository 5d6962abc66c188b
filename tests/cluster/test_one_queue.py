"""One queue of all hosts: HAProxy keeps what no host can run, and gives it to the host that is free first.

Six workers on three hosts at 70 % of what they can do. How many requests a host can run at once stands in HAProxy's
configuration, or the host's agent says it. Theory is the same trace in one queue of six; beside it, the same trace with
round robin, where a request waits for a host although another one idles.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from benches.one_queue.theory import Trace, one_queue, poisson
from tests.cluster.balancers import AGENT, CHECK, HAProxy, servers
from tests.cluster.cluster import HOSTS
from tests.cluster.load import Arrival, arrivals
from tests.cluster.net import Network
from tests.cluster.servers import Tricorn

WORKERS, LOAD, WORK, SECONDS = 2, 0.7, 0.1, 40.0
CLIENTS = 60
TOLERANCE = 1.6
"""Of the mean wait: the machine has fewer processors than the cluster has hosts."""


def fixed(text: str) -> str:
    return servers(text, f"maxconn {WORKERS} {CHECK}")


def by_agent(text: str) -> str:
    return servers(text, f"{CHECK} {AGENT}")


def round_robin(text: str) -> str:
    return servers(text.replace("balance leastconn", "balance roundrobin"), CHECK)


def waited(network: Network, directory: Path, trace: Trace, change: Callable[[str], str]) -> float:
    """The mean wait of the trace, less what a request takes besides its work when nothing else is under way."""
    work = [Arrival(at, work) for at, work in zip(*trace, strict=True)]
    with HAProxy(network["balancer"], [network[name] for name in HOSTS], directory, change) as balancer:
        if change is by_agent:
            balancer.until_told(WORKERS)
        alone = [Arrival(number * 0.1, 0.02) for number in range(50)]
        overhead = statistics.median(arrivals(network["client"], balancer.address, alone, 1))
        waits = arrivals(network["client"], balancer.address, work, CLIENTS)
    assert len(waits) == len(work)
    return statistics.mean(waits) - overhead


def test_waits_are_those_of_one_queue(network: Network, tmp_path: Path) -> None:
    trace = poisson(LOAD, WORKERS * len(HOSTS), WORK, SECONDS, seed=0)
    theory = statistics.mean(one_queue(trace, WORKERS * len(HOSTS)))
    hosts = [Tricorn(network[name], "sync", workers=WORKERS) for name in HOSTS]
    with hosts[0], hosts[1], hosts[2]:
        one, agent, beside = (waited(network, tmp_path, trace, change) for change in (fixed, by_agent, round_robin))
    figures = (
        f"mean waits in ms: theory {theory * 1e3:.1f}, maxconn {one * 1e3:.1f}, "
        f"maxconn by the agent {agent * 1e3:.1f}, round robin {beside * 1e3:.1f}"
    )
    print(figures)
    assert one <= TOLERANCE * theory, figures
    assert agent <= TOLERANCE * theory, figures
    assert max(one, agent) < beside, figures
