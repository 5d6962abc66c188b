"""Django's connections end with their request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("django")

from django.core.signals import request_finished
from tricorn_green.drivers import django as driver
from tricorn_green.drivers.records import Ground


class Connection:
    def __init__(self, age: int | None) -> None:
        self.settings_dict = {"CONN_MAX_AGE": age}
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("modern", [True, False])
def test_all_are_closed_and_one_line_says_that_keeping_is_of_no_use(modern: bool) -> None:
    lines: list[str] = []
    log = SimpleNamespace(warning=lambda text, *args: lines.append(text % args))
    connections = [Connection(0), Connection(600), Connection(None)]

    def of_now(*, initialized_only: bool) -> list[Connection]:
        assert initialized_only
        return connections

    def of_before() -> list[Connection]:
        return connections

    db: Any = SimpleNamespace(connections=SimpleNamespace(all=of_now if modern else of_before))
    ground = Ground("gevent", log, None)  # type: ignore[arg-type]
    try:
        for _ in range(2):  # as if it was reloaded: nothing is done twice
            driver.apply(db, ground)
        request_finished.send(None)
        request_finished.send(None)
    finally:
        request_finished.disconnect(dispatch_uid="tricorn_green")
    assert [connection.closed for connection in connections] == [2, 2, 2]
    assert lines == [driver.OF_NO_USE]
