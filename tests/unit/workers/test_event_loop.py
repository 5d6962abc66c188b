"""A loop that runs in turns and that no task can end: asyncio's and uvloop's."""

from __future__ import annotations

import asyncio
import contextvars
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from typing import Any, TypeVar

import pytest
from tricorn import forked
from tricorn.workers.event_loop import EventLoop

T = TypeVar("T")


class Log:
    def __init__(self) -> None:
        self.errors: list[str] = []
        self.warnings: list[str] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)

    def error(self, text: str, *arguments: object, exc_info: object = None) -> None:
        self.errors.append(text % arguments)


@pytest.fixture(params=["asyncio", "uvloop"])
def turns(request: pytest.FixtureRequest) -> Iterator[EventLoop]:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    made = EventLoop(request.param, Log())  # type: ignore[arg-type]
    yield made
    if not made.loop.is_closed():
        made.close()


def run(turns: EventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    task = turns.loop.create_task(coroutine)
    turns.run(task)
    return task.result()


def errors(turns: EventLoop) -> list[str]:
    log: Any = turns._log
    return log.errors


async def give(value: object) -> object:
    await asyncio.sleep(0)
    return value


async def fail(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


def test_it_is_the_current_loop_from_the_beginning(turns: EventLoop) -> None:
    assert asyncio.get_event_loop() is turns.loop


def test_it_has_the_time_of_its_kind(turns: EventLoop) -> None:
    """asyncio's is that of `time.monotonic`, on which timers count."""
    before = type(turns.loop).time(turns.loop)
    assert before <= turns.loop.time() <= type(turns.loop).time(turns.loop)
    begun = turns.loop.time()
    run(turns, asyncio.sleep(0.01))
    assert turns.loop.time() - begun > 0.009, "uvloop's has milliseconds"


def test_a_selector_of_another_kind_tells_its_waits_as_well() -> None:
    told: list[str] = []

    class Clock:
        def begin(self) -> None:
            told.append("begin")

        def around(self, select: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
            def timed(timeout: float | None = None) -> list[Any]:
                told.append("waits")
                return select(timeout)

            return timed

    clock: Any = Clock()
    log: Any = Log()
    loop = asyncio.SelectorEventLoop(selectors.PollSelector())
    turns = EventLoop("asyncio", log, (loop, frozenset(forked.epolls())))
    with closing(turns):
        turns.keep_time(clock)
        assert run(turns, give("taken")) == "taken"
    assert told[0] == "begin"
    assert "waits" in told


def test_callbacks_are_called_soon_in_order_with_their_arguments_and_contexts(turns: EventLoop) -> None:
    variable = contextvars.ContextVar("variable", default="none")
    other = contextvars.copy_context()
    other.run(variable.set, "other's")
    called: list[object] = []

    def call(*what: object) -> None:
        called.append((*what, variable.get()))

    async def soon() -> None:
        variable.set("own")
        loop = asyncio.get_running_loop()
        loop.call_soon(call)
        loop.call_soon(call, 1, None, context=other)
        loop.call_soon(call, "never").cancel()
        handle = loop.call_soon(call, (2,), context=None)
        assert type(handle) is type(type(loop).call_soon(loop, int))
        assert not called
        variable.set("later")
        await asyncio.sleep(0)

    run(turns, soon())
    assert called == [("own",), (1, None, "other's"), ((2,), "own")]
    call_soon: Any = turns.loop.call_soon
    for wrong in (call_soon, lambda: call_soon(call, what=1)):
        with pytest.raises(TypeError):
            wrong()


def test_a_loop_that_is_closed_or_debugged_checks_who_calls(turns: EventLoop) -> None:
    turns.loop.set_debug(True)

    async def elsewhere() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(RuntimeError, match="Non-thread-safe"):
            await asyncio.to_thread(loop.call_soon, print)

    run(turns, elsewhere())
    turns.close()
    with pytest.raises(RuntimeError, match="closed"):
        turns.loop.call_soon(print)


def test_a_turn_has_a_result(turns: EventLoop) -> None:
    assert run(turns, give(5)) == 5
    with pytest.raises(ValueError, match="no"):
        run(turns, fail(ValueError("no")))
    assert run(turns, give(6)) == 6


def test_tasks_go_on_with_the_next_turn(turns: EventLoop) -> None:
    seen: list[str] = []

    async def over_two_turns(event: asyncio.Event) -> None:
        seen.append("begun")
        await event.wait()
        seen.append("ended")

    async def begin() -> tuple[asyncio.Event, asyncio.Task[None]]:
        event = asyncio.Event()
        task = asyncio.ensure_future(over_two_turns(event))
        await asyncio.sleep(0)
        return event, task

    event, task = run(turns, begin())
    assert seen == ["begun"]
    event.set()
    turns.run(task)
    assert seen == ["begun", "ended"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_a_task_that_ends_the_program_ends_itself(turns: EventLoop, error: BaseException) -> None:
    async def main() -> str:
        other = asyncio.ensure_future(fail(error))
        await asyncio.wait([other])
        return repr(other.exception())

    assert run(turns, main()) == repr(error)
    assert errors(turns) == [f"{type(error).__name__} in the event loop; the loop keeps running"]


def test_a_callback_may_call_sys_exit(turns: EventLoop) -> None:
    async def main() -> str:
        asyncio.get_running_loop().call_soon(lambda: (_ for _ in ()).throw(SystemExit(3)))
        await asyncio.sleep(0.01)
        return "went on"

    assert run(turns, main()) == "went on"
    assert errors(turns) == ["SystemExit in the event loop; the loop keeps running"]


def test_a_turn_that_exits_itself_raises(turns: EventLoop) -> None:
    with pytest.raises(SystemExit) as caught:
        run(turns, fail(SystemExit(7)))
    assert caught.value.code == 7
    assert errors(turns) == []
    assert run(turns, give(1)) == 1


def warnings(turns: EventLoop) -> list[str]:
    log: Any = turns._log
    return log.warnings


def test_who_stops_the_loop_stops_nothing(turns: EventLoop) -> None:
    async def main() -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.01)
        return "went on"

    assert run(turns, main()) == "went on"
    assert warnings(turns) == ["The application stopped the event loop; the worker runs it again"]


def test_a_turn_ends_with_its_first_future_or_in_time_and_leaves_nothing_behind(turns: EventLoop) -> None:
    first, second = turns.loop.create_future(), turns.loop.create_future()

    def both() -> None:
        first.set_result(None)
        second.set_result(None)

    turns.loop.call_soon(both)
    turns.run(first, second)
    assert run(turns, give(1)) == 1
    turns.run(turns.loop.create_future(), timeout=0.01)
    turns.run(timeout=0.01)
    turns.run(first)  # is done
    assert run(turns, give(2)) == 2
    assert warnings(turns) == []


class TestTheRoot:
    """`asyncio.run` runs a program's main task: libraries look for it."""

    def test_it_is_found_as_a_programs_main_task_is(self, turns: EventLoop) -> None:
        from anyio._backends._asyncio import find_root_task

        async def find() -> asyncio.Task[Any]:
            return find_root_task()

        root = run(turns, find())
        assert root is run(turns, find()), "in each turn"
        assert root in asyncio.all_tasks(turns.loop)
        assert asyncio.all_tasks(turns.loop) == {root}, "and the worker has no other"

    def test_event_loop_ends_last(self, turns: EventLoop) -> None:
        ended: list[str] = []

        async def wait_for_ever() -> None:
            await asyncio.Event().wait()

        (root,) = asyncio.all_tasks(turns.loop)
        root.add_done_callback(lambda _: ended.append("root"))
        turns.loop.create_task(wait_for_ever()).add_done_callback(lambda _: ended.append("other"))
        turns.run(timeout=0.01)
        turns.close()
        assert ended == ["other", "root"]
        assert warnings(turns) == []

    def test_who_cancels_all_tasks_ends_all_but_the_turn(self, turns: EventLoop) -> None:
        async def wait_for_ever() -> None:
            await asyncio.Event().wait()

        async def cancel() -> int:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            ended = await asyncio.gather(*others, return_exceptions=True)
            await asyncio.sleep(0.01)
            return len(ended)

        turns.loop.create_task(wait_for_ever())
        assert run(turns, cancel()) == 2, "the root ends, and who waits for it goes on"
        assert warnings(turns) == ["The application cancelled all tasks of the event loop; the worker keeps serving"]
        assert len(asyncio.all_tasks(turns.loop)) == 1, "it is made anew"
        assert run(turns, give(1)) == 1

    def test_tasks_that_wait_for_one_another_in_a_circle_do_not_hold_up_the_end(self, turns: EventLoop) -> None:
        tasks: list[asyncio.Task[Any]] = []

        async def wait_for(index: int) -> None:
            await tasks[index]

        tasks += [turns.loop.create_task(wait_for(1)), turns.loop.create_task(wait_for(0))]
        turns.run(timeout=0.01)
        turns.close()
        assert turns.loop.is_closed()
        for task in tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]


def test_a_signal_is_handled_while_the_loop_waits(turns: EventLoop) -> None:
    """And not only when it happens to come while the loop waits: the descriptor wakes it."""
    seen: list[int] = []

    async def main() -> None:
        def handler(*_: object) -> None:
            seen.append(1)
            turns.call(done.set)

        done = asyncio.Event()
        signal.signal(signal.SIGUSR1, handler)
        killer = threading.Thread(target=lambda: (time.sleep(0.02), os.kill(os.getpid(), signal.SIGUSR1)))
        killer.start()
        await asyncio.wait_for(done.wait(), 10)
        killer.join()

    before = signal.getsignal(signal.SIGUSR1)
    old = signal.set_wakeup_fd(turns.wakeup_fd, warn_on_full_buffer=False)
    try:
        run(turns, main())
    finally:
        signal.set_wakeup_fd(old)
        signal.signal(signal.SIGUSR1, before)
    assert seen == [1]


def test_wakeups_between_turns_are_forgotten_in_the_next_one(turns: EventLoop) -> None:
    os.write(turns.wakeup_fd, b"x" * 2000)
    run(turns, asyncio.sleep(0.05))
    with pytest.raises(BlockingIOError):
        os.read(turns._reader, 1)


def test_tasks_that_are_left_are_cancelled_at_the_end(turns: EventLoop) -> None:
    seen: list[str] = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("cancelled")

    async def main() -> None:
        main.task = asyncio.ensure_future(wait_for_ever())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    run(turns, main())
    turns.close()
    assert seen == ["cancelled"]
    assert turns.loop.is_closed()


def test_a_task_that_will_not_end_is_not_waited_for(turns: EventLoop) -> None:
    seen: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("ignored")
            await asyncio.Event().wait()

    async def main() -> None:
        kept.append(asyncio.ensure_future(stubborn()))
        await asyncio.sleep(0)

    kept: list[Any] = []
    run(turns, main())
    turns.close()
    assert seen == ["ignored"]
    kept.pop()._log_destroy_pending = False


def test_generators_are_closed_at_the_end(turns: EventLoop) -> None:
    seen: list[str] = []
    kept: list[Any] = []

    async def generator() -> Any:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            seen.append("closed")

    async def main() -> None:
        kept.append(generator())
        await kept[0].__anext__()

    run(turns, main())
    turns.close()
    assert seen == ["closed"]
