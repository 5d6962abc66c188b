"""tricorn.offload where there is no greenlet worker: a plain call, and something to await on an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import tricorn
from tricorn_green import offload as offloading
from tricorn_green.offload import brought

from tests.harness import until


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = offloading._process.shared.size
    offloading.set_threads(2)
    yield
    offloading.set_threads(before)


def test_without_hub_and_loop_it_is_a_plain_call() -> None:
    before = offloading.figures().calls
    assert tricorn.offload(threading.get_ident)() == threading.get_ident()
    assert offloading.figures().calls == before


def test_it_decorates_functions_and_methods() -> None:
    class Handle:
        @tricorn.offload(serial=True)
        def ask(self, what: str, *, times: int = 1) -> str:
            """Asks."""
            return what * times

    assert Handle().ask("a", times=3) == "aaa"
    assert (Handle.ask.__name__, Handle.ask.__doc__) == ("ask", "Asks.")


@pytest.mark.parametrize("wrong", ["thread", "", None])
def test_offload_with_an_unknown_affinity(wrong: Any) -> None:
    with pytest.raises(ValueError, match="expected one of any, object, process"):
        tricorn.offload(len, affinity=wrong)


def test_what_cannot_be_called() -> None:
    with pytest.raises(TypeError, match="expected a function, got int"):
        tricorn.offload(3)  # type: ignore[call-overload]


def test_on_an_event_loop_it_is_awaited_and_the_loop_goes_on() -> None:
    async def main() -> tuple[int, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        task = asyncio.create_task(tick())
        thread = await tricorn.offload(_wait)(0.2)
        task.cancel()
        return thread, ticks

    thread, ticks = asyncio.run(main())
    assert thread != threading.get_ident()
    assert ticks > 3


def _wait(seconds: float) -> int:
    time.sleep(seconds)
    return threading.get_ident()


def test_errors_and_context_variables_travel() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    def fails() -> None:
        raise LookupError(variable.get())

    async def main() -> None:
        variable.set("set")
        await tricorn.offload(fails)()

    with pytest.raises(LookupError, match="set") as raised:
        asyncio.run(main())
    assert raised.traceback[-1].name == "fails"


def test_callbacks_come_back_to_the_thread_of_the_loop() -> None:
    seen: list[int] = []

    def callback(value: int) -> int:
        seen.append(threading.get_ident())
        return 2 * value

    async def main() -> Any:
        visit = brought(callback)
        return await tricorn.offload(lambda: visit(21))()

    assert asyncio.run(main()) == 42
    assert seen == [threading.get_ident()]


def test_a_callback_whose_caller_has_gone_is_called_all_the_same() -> None:
    running, begin, done = threading.Event(), threading.Event(), threading.Event()
    seen: list[object] = []

    def function() -> None:
        running.set()
        begin.wait(10)
        seen.append(brought(lambda: "called")())
        done.set()

    async def main() -> None:
        call = asyncio.ensure_future(tricorn.offload(function)())
        assert await asyncio.to_thread(running.wait, 10)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(call, 0.05)
        assert offloading.figures().abandoned == 1
        begin.set()
        assert await asyncio.to_thread(done.wait, 10)

    asyncio.run(main())
    assert seen == ["called"]


def test_a_callback_without_a_loop_to_call_it_fails_and_holds_no_thread() -> None:
    running, begin, done = threading.Event(), threading.Event(), threading.Event()
    seen: list[type[BaseException]] = []

    def function() -> None:
        running.set()
        begin.wait(10)
        try:
            brought(lambda: "called")()
        except RuntimeError as error:
            seen.append(type(error))
        done.set()

    async def main() -> None:
        call = asyncio.ensure_future(tricorn.offload(function)())
        assert await asyncio.to_thread(running.wait, 10), "one that is given up before is not begun"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    begin.set()
    assert done.wait(10)
    assert seen == [RuntimeError]


def test_calls_of_one_object_are_made_one_after_another() -> None:
    class Handle:
        together = most = 0

        def ask(self) -> None:
            self.together += 1
            self.most = max(self.most, self.together)
            time.sleep(0.01)
            self.together -= 1

    async def main(*handles: Handle) -> None:
        await asyncio.gather(*(tricorn.offload(each.ask)() for each in handles for _ in range(3)))

    handles = Handle(), Handle()
    asyncio.run(main(*handles))
    assert [handle.most for handle in handles] == [1, 1]


def test_an_object_keeps_its_thread_and_gives_it_back() -> None:
    class Handle:
        @tricorn.offload(affinity="object")
        def where(self) -> int:
            return threading.get_ident()

    async def main(handle: Handle) -> set[int]:
        return {await handle.where() for _ in range(5)}  # type: ignore[misc]

    handle = Handle()
    assert len(asyncio.run(main(handle))) == 1
    assert offloading.figures().pinned == 1
    del handle
    until(lambda: offloading.figures().pinned == 0, "the thread has let it go")


def test_an_object_that_nothing_tells_the_end_of_cannot_have_a_thread() -> None:
    async def main() -> None:
        await tricorn.offload(len, affinity="object")((1, 2))

    with pytest.raises(TypeError, match="tuple does not support weak references"):
        asyncio.run(main())
