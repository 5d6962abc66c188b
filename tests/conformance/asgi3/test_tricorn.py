"""What tricorn tells in `scope["extensions"]["tricorn"]`: how long a request has waited, and its id."""

from __future__ import annotations

import re
import time

import pytest

from tests.conformance.asgi3.play import literal
from tests.conftest import Pool
from tests.harness import Server
from tests.harness.server import REFERENCE

pytestmark = pytest.mark.skipif(REFERENCE, reason="the reference server tells neither")

FRESH = re.compile(r"[0-9a-f]{32}")


@pytest.fixture(scope="module")
def named(pool: Pool) -> Server:
    return pool.get("asgi.play:application", worker_class="asgi", request_id=True)


def test_how_long_it_has_waited(server: Server) -> None:
    assert 0 <= literal(server, "/scope")["extensions"]["tricorn"]["queue_time"] < 10
    ago = f"t={time.time() - 20}"
    assert 19.9 <= literal(server, "/scope", ("X-Request-Start", ago))["extensions"]["tricorn"]["queue_time"] < 40


def test_without_ids_there_is_none(server: Server) -> None:
    scope = literal(server, "/scope")
    assert "request_id" not in scope["extensions"]["tricorn"]
    assert b"x-request-id" not in dict(scope["headers"])


@pytest.mark.parametrize("given", [None, "bad id", "x" * 200])
def test_a_request_without_a_good_id_gets_one(named: Server, given: str | None) -> None:
    scope = literal(named, "/scope", *([("X-Request-ID", given)] if given else []))
    id_ = scope["extensions"]["tricorn"]["request_id"]
    assert FRESH.fullmatch(id_)
    assert [value for name, value in scope["headers"] if name == b"x-request-id"] == [id_.encode()]


def test_a_good_id_is_kept(named: Server) -> None:
    scope = literal(named, "/scope", ("X-Request-ID", "abc-1"))
    assert scope["extensions"]["tricorn"]["request_id"] == "abc-1"
    assert [value for name, value in scope["headers"] if name == b"x-request-id"] == [b"abc-1"]
