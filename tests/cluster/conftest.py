"""A cluster of three hosts, a balancer and a client, where namespaces can be made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import net
from tests.cluster.cluster import ALL
from tests.cluster.net import Network

LONG = ("agent", "all_at_once", "faults", "locust", "one_queue", "orca", "websockets")
"""Each of these waits for long, some for a minute or two."""
collect_ignore = [] if ALL else [f"test_{name}.py" for name in LONG]


@pytest.fixture
def network() -> Iterator[Network]:
    reason = net.lacking()
    if reason is not None:
        pytest.skip(reason)
    with Network("balancer", "client", "app-1", "app-2", "app-3") as made:
        yield made
