"""Three hosts that serve behind a balancer, what is done to them, and what is judged of the load meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cluster.balancers import BALANCERS, L4, Balancer
from tests.cluster.load import Told, lost
from tests.cluster.net import Network
from tests.cluster.servers import Tricorn

ALL = bool(os.environ.get("TRICORN_TEST_CLUSTER"))
"""`make test-cluster` sets it: all rows, and the files that `conftest.py` leaves out otherwise."""

HOSTS = ("app-1", "app-2", "app-3")


def at_once(work: Callable[[Tricorn], None], servers: Sequence[Tricorn]) -> None:
    """The same is done to all of them, side by side. Processes of those that fail end with their network."""
    failed: list[BaseException] = []

    def run(server: Tricorn) -> None:
        try:
            work(server)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


@contextmanager
def cluster(
    network: Network, balancer: str, worker_class: str, directory: Path, *, drain_delay: float = 0
) -> Iterator[tuple[Balancer, list[Tricorn]]]:
    hosts = [network[name] for name in HOSTS]
    with ExitStack() as stack:
        servers = [Tricorn(host, worker_class, drain_delay=drain_delay) for host in hosts]
        at_once(Tricorn.start, servers)
        for server in servers:
            stack.push(server.__exit__)
        yield stack.enter_context(BALANCERS[balancer](network["balancer"], hosts, directory)), servers


def replace(server: Tricorn, before: Balancer, drain_delay: float) -> None:
    """TERM, the end, a new start. Kernel rules are changed `late` where the host goes on meanwhile, else before."""
    if isinstance(before, L4) and drain_delay:
        late = threading.Timer(before.late, before.leaves, [server.host])
        late.start()
        server.stop()
        late.join()
    else:
        before.leaves(server.host)
        server.stop()
    server.start()
    before.is_back(server.host)


def judge(told: list[Told], hosts: Sequence[str] = HOSTS) -> None:
    assert not lost(told), f"{len(lost(told))} of {len(told)} are lost: {lost(told)[:5]}"
    assert {each.host for each in told} == set(hosts), "each host has answered"
    assert {each.reused for each in told} == {True, False}
