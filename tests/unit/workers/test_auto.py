"""What `auto` sees of event loops, on the Pythons that make one when asked and on those that do not."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Iterator

import pytest
from tricorn.workers import auto


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield made
    asyncio.set_event_loop(None)
    made.close()


def current() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Python 3.14 warns of what 3.16 has no more
        return auto._current_loop()


def test_the_loop_that_is_set_is_seen(loop: asyncio.AbstractEventLoop) -> None:
    assert current() is loop


def test_no_event_loop_is_made() -> None:
    asyncio.set_event_loop(None)
    assert current() is None


def test_asyncio_need_not_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "asyncio.events")
    assert current() is None


def test_where_asking_makes_no_loop_the_public_function_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.14's way, on any: after set_event_loop() older ones make none either."""
    monkeypatch.setattr(auto, "MAKES_NO_LOOP", (3, 0))
    monkeypatch.delattr(asyncio.events, "_event_loop_policy", raising=False)
    asked: list[object] = [RuntimeError("There is no current event loop"), "a loop"]

    def get_event_loop() -> object:
        answer = asked.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(asyncio.events, "get_event_loop", get_event_loop)
    assert [current(), current()] == [None, "a loop"]
