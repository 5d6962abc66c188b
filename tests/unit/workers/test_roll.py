"""Which requests wait for room in a pool: by the frames of their tasks and greenlets, and of the pool its own size."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from tricorn.workers.pools import BY_NAME, POOLS, sites
from tricorn.workers.roll import roll, sample


async def in_thread(event: Event) -> None:
    await asyncio.to_thread(event.wait)


async def elsewhere() -> None:
    await asyncio.sleep(60)


def test_of_calls_in_threads_those_wait_that_have_no_thread() -> None:
    event = Event()

    async def run() -> list[tuple[int, Any]]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        tasks = [asyncio.ensure_future(in_thread(event)) for _ in range(5)]
        other = asyncio.ensure_future(elsewhere())
        await asyncio.sleep(0)
        found = roll(range(6), list(enumerate([*tasks, other])))
        event.set()
        await asyncio.gather(*tasks)
        nothing = roll([0], [(0, other)])
        other.cancel()
        return [*found, *nothing]

    found = asyncio.run(run())
    assert [wait is not None for _, wait in found] == [False, False, True, True, True, False, False]
    pool, size, site, line = found[2][1]
    assert (pool, size, site[2]) == ("executor", "2 threads", "to_thread")
    assert line is not None
    assert line[0] == __file__
    assert line[2] == "in_thread"


def test_a_sample_has_the_frames_of_a_request_or_its_pool() -> None:
    event = Event()

    async def run() -> list[Any]:
        task = asyncio.ensure_future(in_thread(event))
        await asyncio.sleep(0)
        told = [*sample([3], [(3, task)], False), *sample([3], [(3, task)], True)]
        event.set()
        await task
        return told

    (slot, frames, none), (_, nothing, _) = asyncio.run(run())
    assert (slot, frames[0][2], none) == (3, "to_thread", None)
    assert ("in_thread", __file__) in [(function, file) for file, _, function in frames]
    assert nothing == []


def test_calls_of_sync_to_async_share_one_thread_where_no_context_of_a_request_is() -> None:
    from asgiref.sync import ThreadSensitiveContext, sync_to_async

    event = Event()

    async def shares() -> None:
        await sync_to_async(event.wait)()

    async def has_its_own() -> None:  # as in Django's own handler
        async with ThreadSensitiveContext():
            await sync_to_async(event.wait)()

    async def run() -> list[tuple[int, Any]]:
        tasks = [asyncio.ensure_future(each()) for each in (shares, has_its_own) for _ in range(3)]
        await asyncio.sleep(0)
        found = roll(range(6), list(enumerate(tasks)))
        event.set()
        await asyncio.gather(*tasks)
        return found

    found = asyncio.run(run())
    assert [wait is not None for _, wait in found] == [False, True, True, False, False, False]
    pool, size, _, line = found[1][1]
    assert (pool, size) == ("asgiref", "1 threads")
    assert line is not None
    assert line[2] == "shares"


def test_functions_that_sqlalchemy_runs_in_a_greenlet_of_the_task_are_seen() -> None:
    from sqlalchemy.pool import AsyncAdaptedQueuePool
    from sqlalchemy.util import greenlet_spawn

    class Connection:
        def close(self) -> None: ...

        rollback = close

    pool: Any = AsyncAdaptedQueuePool(Connection, pool_size=1, max_overflow=0)

    async def takes() -> None:
        await greenlet_spawn(pool.connect)

    async def run() -> list[tuple[int, Any]]:
        taken = await greenlet_spawn(pool.connect)
        task = asyncio.ensure_future(takes())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        found = roll([3], [(3, task)])
        await greenlet_spawn(taken.close)
        await task
        return found

    ((place, wait),) = asyncio.run(run())
    assert place == 3
    assert wait is not None
    assert (wait[0], wait[1]) == ("sqlalchemy", "1 connections")
    assert wait[2][2] == "_do_get"
    assert wait[3][2] == "takes"


def test_the_table_has_a_cure_and_a_place_for_each_pool() -> None:
    assert len(BY_NAME) == len(POOLS)
    for pool in POOLS:
        assert pool.cure.endswith("."), pool.name
        assert pool.sites, pool.name
    told = sites()
    assert {name for name, *_ in told} == set(BY_NAME) - {"executor", "asgiref"}
    assert all(isinstance(part, str) for site in told for part in site)
