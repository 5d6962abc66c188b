"""How long requests wait on three hosts behind HAProxy: tricorn, and other servers with as many workers.

    python -m tests.cluster.peers [tricorn] [gunicorn] [granian]

It needs root, HAProxy, and `make .venvs/bench/.setup` for the others. It takes five minutes. Requests are those of
`test_one_queue.py`. A table is printed, and nothing is judged. The others have no agent: they are measured with a
`maxconn` in the configuration, and without one.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benches.one_queue.theory import one_queue, poisson
from tests.cluster import net
from tests.cluster.balancers import CHECK, ROOT, servers
from tests.cluster.cluster import HOSTS
from tests.cluster.net import Host, Network
from tests.cluster.servers import PORT, Tricorn
from tests.cluster.test_one_queue import LOAD, SECONDS, WORK, WORKERS, by_agent, waited
from tests.harness import until
from tests.harness.wire import Wire

BENCH = ROOT / ".venvs/bench/bin"
PEERS = {
    "gunicorn": ("-w", str(WORKERS), "-b", f"0.0.0.0:{PORT}"),
    "granian": (
        *("--interface", "wsgi", "--host", "0.0.0.0", "--port", str(PORT), "--workers", str(WORKERS)),
        *("--blocking-threads", "1"),
    ),
}


def as_it_is(text: str) -> str:
    """`leastconn` alone, as the recipe has it."""
    return servers(text, CHECK)


def unchecked(text: str) -> str:
    """The same for servers without a readiness path."""
    return servers(text, "")


def unchecked_maxconn(text: str) -> str:
    return servers(text, f"maxconn {WORKERS}")


@contextmanager
def peer(host: Host, name: str) -> Iterator[None]:
    environment = {**os.environ, "CLUSTER_HOST": host.name, "PYTHONPATH": str(Path(__file__).parent)}
    process = host.start(
        [str(BENCH / name), *PEERS[name], "app:wsgi"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _answers(host), f"{name} answers on {host.name}")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            host.kill()
            process.wait(10)


def _answers(host: Host) -> bool:
    with host.entered():
        try:
            with Wire((host.address, PORT), timeout=2) as wire:
                return wire.get("/").status == 200
        except (OSError, AssertionError):
            return False


def main() -> int:
    if reason := net.lacking():
        print(f"Not measured: {reason}", file=sys.stderr)
        return 1
    trace = poisson(LOAD, WORKERS * len(HOSTS), WORK, SECONDS, seed=0)
    row("one queue in theory", statistics.mean(one_queue(trace, WORKERS * len(HOSTS))))

    def measure(changes: dict[str, Callable[[str], str]], server: str) -> None:
        with Network("balancer", "client", *HOSTS) as network, ExitStack() as stack:
            for name in HOSTS:
                host = network[name]
                there = Tricorn(host, "sync", workers=WORKERS) if server == "tricorn" else peer(host, server)
                stack.enter_context(there)
            for how, change in changes.items():
                with tempfile.TemporaryDirectory() as directory:
                    row(f"{server}, {how}", waited(network, Path(directory), trace, change))

    for name in sys.argv[1:] or ("tricorn", *PEERS):
        if name == "tricorn":
            measure({"leastconn, agent": by_agent, "leastconn": as_it_is}, name)
        elif (BENCH / name).exists():
            measure({f"leastconn, maxconn {WORKERS}": unchecked_maxconn, "leastconn": unchecked}, name)
        else:
            print(f"{name} is not installed in {BENCH}", file=sys.stderr)
    return 0


def row(what: str, seconds: float) -> None:
    print(f"| {what} | {seconds * 1e3:.1f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
