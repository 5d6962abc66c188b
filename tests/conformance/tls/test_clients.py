"""Which clients are served: programs x versions of TLS x keys x handshakes, under every class.

Python's client meets every class, curl and openssl one of them; with TRICORN_TEST_TLS=1 each meets all, as does Go's.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.tls import clients
from tests.conformance.tls.clients import ALERTS, ALL, CELLS, CLIENTS, MUTUAL, REFUSED, Cell, identity
from tests.conformance.tls.told import wrong
from tests.conformance.tls.world import World, serve
from tests.conftest import Pool
from tests.harness import with_each
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES, each

pytestmark = pytest.mark.beyond_reference(
    "it resumes no session of another worker, and has no lists of what is revoked"
)

CLASSES = (*EVERY, *SERVERS_OF_CLASSES)
FEW = [f"{alias}-python" for alias in CLASSES] + ["gthread-curl", "gthread-openssl"]
PAIRS = [f"{alias}-{client}" for client in CLIENTS for alias in CLASSES] if ALL else FEW


@pytest.mark.parametrize("pair", each(*PAIRS))
@with_each("cell", {str(cell): cell for cell in CELLS})
def test_a_client_is_served_or_refused(pair: str, cell: Cell, pool: Pool, world: World, tmp_path: Path) -> None:
    alias, _, name = pair.partition("-")
    server = serve(pool, alias, **(world.mutual() if cell.how in MUTUAL else world.settings()))
    if cell.how in REFUSED:
        told = rf"\[WARNING\] TLS handshake with ip=\S+ failed: {REFUSED[cell.how]}"
        before = len(server.log.matching(told))
        answer = CLIENTS[name](server.port, cell, world, tmp_path)
        assert answer.body is None
        server.log.wait(told, count=before + 1)
        if name == "go":
            assert re.search(ALERTS[cell.how], answer.said), answer.said
        return
    answer = CLIENTS[name](server.port, cell, world, tmp_path)
    assert answer.body is not None, answer.said
    resumed = clients.resumes(name, cell)
    assert not wrong(alias, answer.body, cell.version, cell.key, identity(cell, world), resumed, world)
    if answer.resumed is not None:
        assert answer.resumed == resumed, answer.said


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_certificate_that_may_be_missing_must_be_right(
    version: str, pool: Pool, world: World, tmp_path: Path
) -> None:
    server = serve(pool, "gthread", **world.mutual(1))
    for how in clients.MUTUAL:
        answer = clients.by_python(server.port, Cell(version, "ecdsa", how), world, tmp_path)
        assert (answer.body is not None) == (how in ("with", "again", "without")), (how, answer)
