"""Header names are made into Python objects once. A client that makes names up does not switch that off."""

from __future__ import annotations

import pytest

from tests.harness import Server, each

pytestmark = pytest.mark.beyond_reference("it keeps no names")

ROUNDS = 40
FIELDS = 90


@pytest.mark.parametrize("worker_class", each("sync", "asgi"))
def test_names_that_are_made_up_do_not_stay_for_good(worker_class: str) -> None:
    with Server("names:application", worker_class=worker_class, keep_alive=30) as server, server.connect() as wire:
        # More names than are kept, each once.
        for nr in range(ROUNDS):
            wire.get("/", *((f"X-{nr}-{field}-{nr * field}", "x") for field in range(FIELDS)))
        # Values differ, so that no pair of name and value is found.
        answers = [wire.get("/", ("X-Same", str(nr))).text for nr in range(5)]
        assert answers == ["new", "same", "same", "same", "same"]
