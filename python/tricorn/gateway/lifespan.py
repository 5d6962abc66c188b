"""ASGI's lifespan protocol: one call of the application that lives as long as the worker serves.

    receive: lifespan.startup ─▶ startup.complete ─▶ requests ─▶ receive: lifespan.shutdown ─▶ shutdown.complete
                              └▶ startup.failed: the worker does not boot                   └▶ shutdown.failed: logged

An application that raises or returns before it has answered does not speak the protocol. With `auto` it is served
nevertheless ("the server must continue", ASGI, Lifespan Protocol), with `on` it is not.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tricorn.errors import BootError

if TYPE_CHECKING:
    from tricorn.log import Logger

SPEC_VERSION = "2.0"
"""Of the lifespan protocol, which has versions of its own."""

LAST_STEPS = 1.0
"""Seconds the application may go on after its last answer."""


class Lifespan:
    """`startup` and `shutdown` are called in the loop that runs the requests. `mode` is the setting `asgi_lifespan`."""

    def __init__(self, application: Callable[..., Any], mode: str, log: Logger) -> None:
        self.state: dict[str, Any] = {}
        """What the application leaves for its requests; each gets a shallow copy in its scope."""
        self._application = application
        self._mode = mode
        self._log = log
        self._task: asyncio.Task[None] | None = None
        self._events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._startup = _Phase("startup")
        self._shutdown = _Phase("shutdown")
        self._error: BaseException | None = None
        """What the call let out."""
        self._is_idle = asyncio.Event()
        """The application asks for an event after the last one."""

    async def startup(self) -> None:
        """Returns when the application is ready. Raises BootError if it is not, and SystemExit if it did."""
        if self._mode == "off":
            return
        self._task = asyncio.create_task(self._call(), name="lifespan")
        await self._ask(self._startup)
        if isinstance(self._error, SystemExit):
            raise self._error
        if self._startup.answer == "failed":
            await self._end(self._task)
            raise _failure(self._startup.message)
        if self._startup.answer is None:
            self._is_not_spoken()

    async def shutdown(self) -> None:
        """Returns when the application has shut down, or has nothing to say to that. What goes wrong is logged."""
        if self._task is None or self._task.done() or self._startup.answer is None:
            return
        await self._ask(self._shutdown)
        if self._shutdown.answer == "failed":
            self._log.error("The application failed to shut down: %s", self._shutdown.message or "it gave no reason")
        await self._end(self._task)

    async def _ask(self, phase: _Phase) -> None:
        phase.is_asked = True
        self._events.put_nowait({"type": f"lifespan.{phase.name}"})
        await phase.is_over.wait()

    async def _end(self, task: asyncio.Task[None]) -> None:
        """Lets the application go on to its return."""
        idle = asyncio.create_task(self._is_idle.wait())
        await asyncio.wait((task, idle), timeout=LAST_STEPS, return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        task.cancel()

    async def _call(self) -> None:
        asgi = {"version": "3.0", "spec_version": SPEC_VERSION}
        try:
            await self._application({"type": "lifespan", "asgi": asgi, "state": self.state}, self._receive, self._send)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            self._error = error
            # Before that it is for `startup` to judge; and who has told a failure may raise it too, as Starlette does.
            if self._startup.answer == "complete" and self._shutdown.answer != "failed":
                self._log.error("Exception in the application's lifespan", exc_info=error)
        finally:
            self._startup.is_over.set()
            self._shutdown.is_over.set()

    def _is_not_spoken(self) -> None:
        error = self._error
        trace = "" if error is None else "".join(traceback.format_exception(error)).rstrip()
        if self._mode == "on":
            what = "it did not answer lifespan.startup" if error is None else f"{type(error).__name__}: {error}"
            raise BootError(f"The application failed to start (asgi_lifespan is on): {what}", details=trace)
        if error is not None and self._startup.is_taken:
            # It had asked for the event, so perhaps it meant to do something.
            self._log.warning("The application raised at lifespan.startup, and is served without lifespan:\n%s", trace)
        else:
            self._log.debug("The application does not speak the lifespan protocol")

    async def _receive(self) -> dict[str, str]:
        if self._shutdown.is_taken:
            self._is_idle.set()
        event = await self._events.get()
        phase = self._shutdown if self._startup.is_taken else self._startup
        phase.is_taken = True
        return event

    async def _send(self, message: Mapping[str, Any]) -> None:
        phase = self._shutdown if self._startup.answer == "complete" else self._startup
        prefix, _, answer = message["type"].rpartition(".")
        if prefix != f"lifespan.{phase.name}" or answer not in ("complete", "failed"):
            raise RuntimeError(f"Unexpected lifespan message {message['type']!r}, expected an answer to {phase.name}.")
        if not phase.is_asked or phase.is_over.is_set():
            raise RuntimeError(f"Unexpected lifespan message {message['type']!r}: it answers no event.")
        phase.answer = answer
        phase.message = str(message.get("message", ""))
        phase.is_over.set()


class _Phase:
    """One event, and the answer to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_asked = False
        """The event is there to be received."""
        self.is_taken = False
        self.is_over = asyncio.Event()
        """It was answered, or will not be."""
        self.answer: str | None = None
        self.message = ""


def _failure(message: str) -> BootError:
    """`message` is often a traceback: its last line says what is wrong."""
    lines = message.rstrip().splitlines()
    text = lines[-1] if lines else "it gave no reason"
    return BootError(f"The application failed to start: {text}", details=message if len(lines) > 1 else "")
