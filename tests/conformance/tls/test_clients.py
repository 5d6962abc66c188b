"""Which clients are served: programs x versions of TLS x keys x handshakes, under every class.

Python's client meets every class, the others one of them; with TRICORN_TEST_TLS=1 each meets all.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conformance.tls import clients
from tests.conformance.tls.clients import BODY, CELLS, CLIENTS, MUTUAL, WELCOME, Cell
from tests.conformance.tls.world import World, serve
from tests.conftest import Pool
from tests.harness import with_each
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES, each

pytestmark = pytest.mark.beyond_reference(
    "it resumes no session of another worker, and has no lists of what is revoked"
)

ALL = os.environ.get("TRICORN_TEST_TLS") == "1"
CLASSES = (*EVERY, *SERVERS_OF_CLASSES)
PAIRS = [
    f"{alias}-{client}" for client in CLIENTS for alias in CLASSES if ALL or client == "python" or alias == "gthread"
]


@pytest.mark.parametrize("pair", each(*PAIRS))
@with_each("cell", {str(cell): cell for cell in CELLS})
def test_a_client_is_served_or_refused(pair: str, cell: Cell, pool: Pool, world: World, tmp_path: Path) -> None:
    alias, _, name = pair.partition("-")
    settings = world.mutual() if cell.how in MUTUAL else world.settings()
    server = serve(pool, alias, "gallery:application", **settings)
    answer = CLIENTS[name](server.port, cell, world, tmp_path)
    if cell.how in WELCOME:
        assert answer.body == BODY, answer.said
        if answer.resumed is not None:
            assert answer.resumed == (cell.how == "resumed"), answer.said
    else:
        assert answer.body is None


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_certificate_that_may_be_missing_must_be_right(
    version: str, pool: Pool, world: World, tmp_path: Path
) -> None:
    server = serve(pool, "gthread", "gallery:application", **world.mutual(1))
    for how in clients.MUTUAL:
        answer = clients.by_python(server.port, Cell(version, "ecdsa", how), world, tmp_path)
        assert (answer.body == BODY) == (how in ("with", "without")), (how, answer)
