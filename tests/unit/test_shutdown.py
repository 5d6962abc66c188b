"""The notice that the worker leaves, as the application waits for it."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import threading

import tricorn
from tricorn.shutdown import Leaving

from tests.harness import until


def test_it_is_false_until_it_is_given() -> None:
    notice = Leaving()
    assert not notice
    assert not notice.wait(0)
    notice.announce()
    assert notice
    assert notice.wait()
    assert notice.wait(0)


def test_any_number_of_tasks_may_await_it() -> None:
    async def all_of(notice: Leaving) -> None:
        async def one() -> None:
            await notice

        tasks = [asyncio.create_task(one()) for _ in range(5)]
        cancelled = asyncio.create_task(one())
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert not any(task.done() for task in tasks)
        notice.announce()
        await asyncio.gather(*tasks)
        await notice
        await asyncio.wait_for(notice, 60)

    asyncio.run(all_of(Leaving()))


def test_threads_are_woken() -> None:
    notice, woken = Leaving(), []
    threads = [threading.Thread(target=lambda: woken.append(notice.wait(60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: notice._pipes, "one waits")
    assert not woken
    notice.announce()
    for thread in threads:
        thread.join()
    assert woken == [True] * 3


def test_a_loop_that_is_closed_is_no_reason_to_fail() -> None:
    notice, loop = Leaving(), asyncio.new_event_loop()

    async def begin() -> None:
        waiting.append(asyncio.ensure_future(notice))
        await asyncio.sleep(0)

    waiting: list[asyncio.Future[None]] = []
    loop.run_until_complete(begin())
    loop.close()
    notice.announce()
    assert notice
    waiting[0]._log_destroy_pending = False  # type: ignore[attr-defined]


def test_a_child_of_the_application_has_its_own() -> None:
    notice = Leaving()
    assert not notice.wait(0)
    child = os.fork()
    if child == 0:
        told = notice.wait(0)
        notice.announce()
        os._exit(0 if not told and notice else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not notice.wait(0), "what it is told its parent is not"


def test_a_copy_of_a_scope_has_the_same_notice() -> None:
    notice = tricorn.leaving()
    assert copy.copy(notice) is copy.deepcopy({"leaving": notice})["leaving"] is notice
    assert pickle.loads(pickle.dumps(notice)) is notice
    assert eval(repr(notice), {"tricorn": tricorn}) is notice


def test_it_is_one_object_for_the_whole_process() -> None:
    assert tricorn.leaving() is tricorn.leaving()
    assert isinstance(tricorn.leaving(), Leaving)
