"""The event loop of a mold: nothing of it is left when workers are forked."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest
from tricorn.gateway.lifespan import drive
from tricorn.workers import fork_audit, rehearsal

LOG: Any = logging.getLogger("test")


@pytest.fixture(params=["asyncio", "uvloop"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return str(request.param)


def test_the_loop_is_closed_and_what_ran_in_it_has_ended(kind: str) -> None:
    ended = []

    async def rest() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("a task")

    async def use() -> None:
        asyncio.ensure_future(rest())  # noqa: RUF006 (the loop ends it)
        await asyncio.to_thread(int)

    loops, threads = list(fork_audit.event_loops()), set(threading.enumerate())
    with rehearsal.stage(kind, LOG) as stage:
        assert stage.complete(use())
    assert ended == ["a task"]
    assert stage.loop.is_closed()
    assert list(fork_audit.event_loops()) == loops
    assert set(threading.enumerate()) <= threads


def test_threads_that_are_told_to_end_are_waited_for(kind: str) -> None:
    told, threads = threading.Event(), []

    def run() -> None:
        told.wait()
        time.sleep(0.05)  # its last steps

    async def start() -> None:
        threads.append(threading.Thread(target=run))
        threads[0].start()

    async def rest() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.set()

    async def use() -> None:
        await start()
        asyncio.ensure_future(rest())  # noqa: RUF006 (the loop ends it)
        await asyncio.sleep(0)

    with rehearsal.stage(kind, LOG) as stage:
        stage.complete(use())
    assert not threads[0].is_alive()


def test_what_the_application_raises_is_raised(kind: str) -> None:
    async def fail(error: BaseException) -> None:
        raise error

    with rehearsal.stage(kind, LOG) as stage:
        for error in (ValueError("marker"), SystemExit(3)):
            with pytest.raises(type(error)):
                stage.complete(fail(error))


def test_a_wait_from_outside_runs_the_loop(kind: str) -> None:
    async def wait(stage: rehearsal.Stage) -> tuple[bool, bool]:
        future: asyncio.Future[None] = stage.loop.create_future()
        stage.loop.call_soon(future.set_result, None)
        never: asyncio.Future[None] = stage.loop.create_future()
        return await stage.wait(future), await stage.wait(never, timeout=0.01)

    with rehearsal.stage(kind, LOG) as stage:
        assert drive(wait(stage)) == (True, False)
