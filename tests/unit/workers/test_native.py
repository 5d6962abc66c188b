"""What settings say of a core."""

from __future__ import annotations

import pytest
from tricorn.config.command_line import read_arguments
from tricorn.config.resolve import resolve
from tricorn.workers.native import core_options, entries


@pytest.mark.parametrize(("alias", "count"), [("sync", 1), ("gthread", 4), ("gevent", 300), ("eventlet", 300)])
def test_a_class_says_how_many_requests_run_at_once(alias: str, count: int) -> None:
    config = resolve([read_arguments(["--threads", "4", "--worker-connections", "300"])])
    assert entries(config, alias) == count
    assert core_options(config, alias, siblings=False)["threads"] == count
