"""What tests of listeners share: a log that is a list, a clock that does not wait, and everything closed again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tricorn.arbiter.listeners.sockets import Listener

from tests.unit.arbiter.log import Log


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tricorn.arbiter.listeners.sockets.time.sleep", lambda _: None)


@pytest.fixture
def opened() -> Iterator[list[Listener]]:
    listeners: list[Listener] = []
    yield listeners
    for listener in listeners:
        listener.close()
        listener.remove_file()
