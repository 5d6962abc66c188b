"""uvicorn's server: with worker processes, or on the loop of the program."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, SimpleNamespace
from typing import Any

from tricorn.compat.absent import refuse
from tricorn.embedded import HANDLED_SIGNALS, EmbeddedServer, handling_signals
from tricorn.errors import TricornError

from .config import Config

__all__ = ["HANDLED_SIGNALS", "Server"]

__getattr__ = refuse(__name__)

TICK = 0.1
"""Seconds between calls of `on_tick`."""


class Server:
    """`run` starts worker processes where it is called in the main thread; `serve` serves on the running event loop."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.started = False
        self.servers: list[Any] = []
        """Objects with `sockets`."""
        self.last_notified = 0.0
        self._captured_signals: list[int] = []
        self._should_exit = self._force_exit = False
        self._embedded: EmbeddedServer | None = None
        self._is_master = False
        """`run` is serving with worker processes."""

    @property
    def should_exit(self) -> bool:
        """Whether the server shuts down. May be set in any thread."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        self._tell(signal.SIGTERM)

    @property
    def force_exit(self) -> bool:
        """Whether the server shuts down without waiting for requests. May be set in any thread."""
        return self._force_exit

    @force_exit.setter
    def force_exit(self, value: bool) -> None:
        self._force_exit = value
        self._tell(signal.SIGQUIT)

    def _tell(self, number: int) -> None:
        if self._is_master and (self._should_exit or self._force_exit):
            os.kill(os.getpid(), number)
        elif self._embedded is not None and (self._should_exit or self._force_exit):
            self._embedded.leave(quick=self._force_exit)

    def run(self, sockets: Sequence[socket.socket] | None = None) -> None:
        """Serves until the server is stopped."""
        is_plain = type(self) is Server and sockets is None
        if not is_plain or threading.current_thread() is not threading.main_thread():
            asyncio.run(self.serve(sockets))
            return
        import tricorn

        self._is_master = True
        try:
            tricorn.run(self.config.app, **self.config.given())
        finally:
            self._is_master = False
        self.started = True  # programs look whether it was

    async def serve(self, sockets: Sequence[socket.socket] | None = None) -> None:
        """Serves on the running event loop. Raises SystemExit if the server cannot start."""
        with self.capture_signals():
            try:
                await self.startup(sockets)
                if not self.should_exit:
                    await self.main_loop()
            except asyncio.CancelledError:
                self.force_exit = True
                raise
            finally:
                if self._embedded is not None:
                    await self.shutdown(sockets)

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        try:
            server = EmbeddedServer(self.config.app, origin="uvicorn.Config", **self.config.given(embedded=True))
            await server.start(sockets or ())
        except TricornError as error:
            sys.exit(error.report())
        self._embedded = server
        self.servers = [SimpleNamespace(sockets=(listener.socket,)) for listener in server.listeners]
        self.started = True
        if self.should_exit:
            server.leave()

    async def main_loop(self) -> None:
        assert self._embedded is not None
        if type(self).on_tick is Server.on_tick:
            await self._embedded.wait()
            return
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % 864_000
            await asyncio.sleep(TICK)

    async def on_tick(self, counter: int) -> bool:
        return self.should_exit

    async def shutdown(self, sockets: Sequence[socket.socket] | None = None) -> None:
        if self._embedded is not None:
            embedded, self._embedded = self._embedded, None
            if self._force_exit:
                embedded.leave(quick=True)
            await embedded.stop()
        for sock in sockets or ():
            sock.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles signals if this is the main thread. Those that came are raised again at the end."""
        with handling_signals(self.handle_exit):
            yield
        for number in reversed(self._captured_signals):
            signal.raise_signal(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._captured_signals.append(sig)
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        else:
            self.should_exit = True
