"""An exception of the application has its traceback and its request in the log, once, in every class."""

from __future__ import annotations

import uuid

import pytest

from tests.conftest import Pool
from tests.harness.classes import ALL_CLASSES
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its line is another")


@ALL_CLASSES
@pytest.mark.parametrize("when", ["call", "later"])
def test_an_exception_has_its_traceback_and_its_request_once(pool: Pool, worker_class: str, when: str) -> None:
    server = pool.get(worker_class=worker_class)
    path = f"/crash/{uuid.uuid4().hex}"
    with server.connect() as wire:
        wire.send(request("GET", f"{path}?when={when}"))
        wire.ended()
    server.log.wait(rf"\[ERROR\].*GET {path}")
    server.log.wait(f"RuntimeError: crash marker: {when}")
    assert server.get("/pid").status == 200, "what follows the exception is logged"
    log = server.log.text
    record = log[log.index(f"GET {path}") :].partition("crash marker")[0]
    assert record.count("Traceback (most recent call last)") == 1
    assert ", line " in record
    assert "in crash" in record or "crash.py" in record
    assert log.count(path) == 1
