"""ASGI's lifespan protocol: one call of the application that lives as long as the worker serves.

    receive: lifespan.startup ─▶ startup.complete ─▶ requests ─▶ receive: lifespan.shutdown ─▶ shutdown.complete
                              └▶ startup.failed: the worker does not boot                   └▶ shutdown.failed: logged

An application that raises or returns before it has answered does not speak the protocol. With `auto` it is served
nevertheless ("the server must continue", ASGI, Lifespan Protocol), with `on` it is not.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tricorn.errors import BootError
from tricorn.gateway.last_words import last_words

if TYPE_CHECKING:
    from tricorn.log import Logger

SPEC_VERSION = "2.0"
"""Version of the lifespan protocol, which is numbered separately."""

LAST_STEPS = 1.0
"""Seconds the application may go on after its last answer."""


T = TypeVar("T")
Wait = Callable[..., Awaitable[bool]]


class Lifespan:
    """The lifespan call of an application. `mode` is the setting `asgi_lifespan`.

    `startup` and `shutdown` await `wait(*futures, timeout=None)`, which returns whether one of the futures is done.
    """

    def __init__(
        self, application: Callable[..., Any], loop: asyncio.AbstractEventLoop, mode: str, log: Logger
    ) -> None:
        self.state: dict[str, Any] = {}
        """State that the application shares with its requests. Each scope gets a shallow copy."""
        self._application = application
        self._loop = loop
        self._mode = mode
        self._log = log
        self._task: asyncio.Task[None] | None = None
        self._events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._startup = _Phase("startup", loop.create_future())
        self._shutdown = _Phase("shutdown", loop.create_future())
        self._error: BaseException | None = None
        """Exception that ended the call."""
        self._is_idle: asyncio.Future[None] = loop.create_future()
        """The application asks for an event after the last one."""
        self._is_needed = True
        """False once the server itself may cancel the call."""

    async def startup(self, wait: Wait) -> bool:
        """Returns whether the application is ready; False: `wait` gave up first.

        Raises BootError if the startup failed, and SystemExit if the application raised that.
        """
        if self._mode == "off":
            return True
        self._task = self._loop.create_task(self._call(), name="lifespan")
        if not await self._ask(self._startup, wait):
            self._is_needed = False
            return False
        if isinstance(self._error, SystemExit):
            raise self._error
        if self._startup.answer == "failed":
            await self._end(self._task, wait)
            message = self._startup.message
            raise BootError(
                f"The application failed to start: {last_words(message) or 'no reason given'}",
                details=message if "\n" in message.strip() else "",
            )
        if self._startup.answer is None:
            self._is_not_spoken()
        return True

    async def shutdown(self, wait: Wait) -> bool:
        """Returns whether the application has shut down, or does not speak the protocol. Errors are logged."""
        self._is_needed = False
        if self._task is None or self._task.done() or self._startup.answer is None:
            return True
        if not await self._ask(self._shutdown, wait):
            return False
        if self._shutdown.answer == "failed":
            self._log.error("The application failed to shut down: %s", self._shutdown.message or "it gave no reason")
        await self._end(self._task, wait)
        return True

    async def _ask(self, phase: _Phase, wait: Wait) -> bool:
        phase.is_asked = True
        self._events.put_nowait({"type": f"lifespan.{phase.name}"})
        return await wait(phase.is_over)

    async def _end(self, task: asyncio.Task[None], wait: Wait) -> None:
        """Lets the application go on to its return."""
        self._is_needed = False
        await wait(task, self._is_idle, timeout=LAST_STEPS)
        task.cancel()

    async def _call(self) -> None:
        asgi = {"version": "3.0", "spec_version": SPEC_VERSION}
        try:
            await self._application({"type": "lifespan", "asgi": asgi, "state": self.state}, self._receive, self._send)
        except GeneratorExit:
            raise
        except asyncio.CancelledError as error:
            if self._is_needed:
                self._error = error
                if self._startup.answer == "complete":
                    self._log.warning(
                        "The application cancelled its lifespan task; the worker keeps serving without it"
                    )
            raise
        except BaseException as error:  # a group may be none of Exception
            self._error = error
            # Before that it is for `startup` to judge; and who has told a failure may raise it too, as Starlette does.
            if self._startup.answer == "complete" and self._shutdown.answer != "failed":
                self._log.error("Exception in the application's lifespan", exc_info=error)
        finally:
            self._startup.end()
            self._shutdown.end()

    def _is_not_spoken(self) -> None:
        error = self._error
        trace = "" if error is None else "".join(traceback.format_exception(error)).rstrip()
        if self._mode == "on":
            what = last_words(trace) or "it did not answer lifespan.startup"
            raise BootError(f"The application failed to start (asgi_lifespan is on): {what}", details=trace)
        if error is not None and self._startup.is_taken:
            # It had asked for the event, so perhaps it meant to do something.
            self._log.warning("Exception in lifespan.startup; serving the application without lifespan:\n%s", trace)
        else:
            self._log.debug("The application does not support the lifespan protocol")

    async def _receive(self) -> dict[str, str]:
        if self._shutdown.is_taken and not self._is_idle.done():
            self._is_idle.set_result(None)
        event = await self._events.get()
        phase = self._shutdown if self._startup.is_taken else self._startup
        phase.is_taken = True
        return event

    async def _send(self, message: Mapping[str, Any]) -> None:
        phase = self._shutdown if self._startup.answer == "complete" else self._startup
        prefix, _, answer = message["type"].rpartition(".")
        if prefix != f"lifespan.{phase.name}" or answer not in ("complete", "failed"):
            raise RuntimeError(f"Unexpected lifespan message {message['type']!r}, expected an answer to {phase.name}.")
        if not phase.is_asked or phase.is_over.done():
            raise RuntimeError(f"Unexpected lifespan message {message['type']!r}: it answers no event.")
        phase.answer = answer
        phase.message = str(message.get("message", ""))
        phase.end()


class _Phase:
    """One event, and the answer to it."""

    def __init__(self, name: str, is_over: asyncio.Future[None]) -> None:
        self.name = name
        self.is_asked = False
        """The event is there to be received."""
        self.is_taken = False
        self.is_over = is_over
        """It was answered, or will not be."""
        self.answer: str | None = None
        self.message = ""

    def end(self) -> None:
        if not self.is_over.done():
            self.is_over.set_result(None)


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that awaits nothing but a `wait` which runs the loop itself, and returns what it returns.

    A worker runs its lifespan in this way and not in a task, since an application may cancel all tasks of the loop.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise RuntimeError("a coroutine outside of the event loop waits for something (defect of tricorn)")
