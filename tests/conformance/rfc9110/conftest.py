"""Semantics are the same over both versions of HTTP."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import BY_HTTP1, BY_HTTP2, conforming
from tests.conftest import Pool
from tests.harness import Server, each


@pytest.fixture(scope="session", params=each(*BY_HTTP1, *BY_HTTP2))
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    worker_class, _, transport = request.param.partition("-")
    return conforming(pool, worker_class, transport)
