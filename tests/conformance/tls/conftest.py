"""The world of these tests, made once."""

from __future__ import annotations

import pytest

from tests.conformance.tls.world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.made(tmp_path_factory.mktemp("tls"))
