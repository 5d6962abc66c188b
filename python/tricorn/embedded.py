"""`tricorn.serve_async`: runs the server in this process, on the running event loop.

    start up     the application is loaded, addresses are bound, the lifespan starts
    serve        the loop watches the core's descriptors, and requests are tasks of the loop
    leave        nothing more is accepted; requests that run are waited for, and cancelled after `graceful_timeout`
    shut down    the lifespan ends, and everything is closed

There is no arbiter and no worker process: one core serves on the loop of the program. Settings for processes are
rejected (`workers`, `reload`), and nothing supervises the program: no `timeout`, no doctor.
"""

from __future__ import annotations

import asyncio
import math
import mmap
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from tricorn import log as logs
from tricorn.arbiter import generation
from tricorn.arbiter.listeners.sockets import Listener, start_listening
from tricorn.config import program
from tricorn.config.load import Sources, working_directory
from tricorn.config.resolve import Layer
from tricorn.errors import ConfigError
from tricorn.gateway import agents, asgi, interfaces, observe_asgi
from tricorn.gateway.lifespan import Lifespan
from tricorn.tls import certificates
from tricorn.tls.tickets import Tickets
from tricorn.workers import native, watch
from tricorn.workers.application import Application
from tricorn.workers.asgi import AsgiWorker
from tricorn.workers.core_options import core_options
from tricorn.workers.farewell import Farewell
from tricorn.workers.leaving import LAST_CALL

if TYPE_CHECKING:
    from tricorn.config.config import Config


async def serve_async(
    app: Callable[..., Any] | str,
    *,
    sockets: Sequence[socket.socket] = (),
    read_environment: bool = True,
    **settings: Any,
) -> None:
    """Serves the ASGI application `app`, a callable or `"module:attribute"`, on the running event loop.

    Returns when the server was told to stop by INT (Ctrl-C) or TERM, which are handled meanwhile if this is the main
    thread. A second signal does not wait for requests, nor does the server if the task is cancelled. `sockets` are
    bound already, and served in place of `bind`; they stay the caller's.

    Settings are those of `tricorn.run`. Raises ConfigError for those that need processes (`workers`, `reload`), and
    what else keeps the server from starting: BindError, AppImportError, BootError for a lifespan that fails.
    """
    server = EmbeddedServer(app, read_environment=read_environment, **settings)
    with handling_signals(server.handle_exit):
        await server.start(sockets)
        try:
            await server.wait()
        except asyncio.CancelledError:
            server.leave(quick=True)
            raise
        finally:
            await server.stop()


class EmbeddedServer:
    """Server for a single run on one event loop: `start`, `wait`, `stop`. `leave` may be called in any thread."""

    # Of workers, as hooks and loggers know them.
    age = slot = 1

    def __init__(
        self,
        app: Callable[..., Any] | str,
        *,
        read_environment: bool = True,
        origin: str = "tricorn.serve_async()",
        **settings: Any,
    ) -> None:
        """Reads the configuration. Raises ConfigError or TypeError for invalid settings, naming `origin`."""
        name = app if isinstance(app, str) else interfaces.name_of(app)
        given = program.read({"wsgi_app": name, **settings}, origin)
        _refuse_processes(given, origin)
        sources = Sources((), dict(os.environ), working_directory(), given, reads_environment=read_environment)
        loaded = sources.load()
        self.cfg: Config = loaded.config
        generation.check(self.cfg)
        self.log = logs.make(self.cfg)
        for warning in loaded.warnings:
            self.log.warning("%s", warning)
        self.pid = os.getpid()
        self.listeners: list[Listener] = []
        self.leaving = self.quick = False
        """Told to leave, and not to wait for requests."""
        self._app = Application(self.cfg, None if isinstance(app, str) else app)
        self._wakes = asyncio.Event()
        """Set whenever something has happened that `wait` looks at."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ends = AsyncExitStack()
        """Cleanup of `stop`, last in first out."""

    @property
    def should_exit(self) -> bool:
        """Whether the server leaves, by uvicorn's name: libraries look for it at the handler of TERM."""
        return self.leaving

    async def start(self, sockets: Sequence[socket.socket] = ()) -> None:
        """Starts the application up, and accepts requests. Undoes all of it if that fails."""
        loop = self._loop = asyncio.get_running_loop()
        application = self._load()
        async with AsyncExitStack() as ends:
            self._open(sockets)
            ends.callback(self._close)
            lifespan = Lifespan(application, loop, self.cfg.asgi_lifespan, self.log)
            if await lifespan.startup(self._wait):
                ends.push_async_callback(self._shut_down, lifespan)
                done, core, server = self._serve(application, lifespan.state, loop)
                ends.push_async_callback(self._end, core, server, done)
            self._ends = ends.pop_all()

    async def wait(self) -> None:
        """Waits until the server is told to leave."""
        await self._wait()

    async def stop(self) -> None:
        """Finishes the requests that run, or cancels them; ends the application; closes everything. Once.

        If the task is cancelled meanwhile, nothing is waited for any longer, and all of this still happens.
        """
        self.leave()
        ending = asyncio.ensure_future(self._ends.aclose())
        cancelled: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError as error:
                cancelled = error
                self.leave(quick=True)
        if cancelled is not None:
            raise cancelled
        ending.result()

    def leave(self, *, quick: bool = False) -> None:
        """Tells the server to leave; `quick`: not to wait for requests. Also for handlers of signals."""
        self.leaving, self.quick = True, self.quick or quick
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._wakes.set)

    def handle_exit(self, number: int, frame: FrameType | None) -> None:
        """On INT and TERM: leaves, and waits for nothing when it comes again."""
        self.leave(quick=self.leaving)

    def _load(self) -> Callable[..., Any]:
        application = self._app.wsgi()
        interface = interfaces.interface_of(application)
        if interface not in (None, "ASGI"):
            raise ConfigError(
                f"{self._app.name!r} is for {interface}: on a running event loop only ASGI applications can be "
                "served. Use tricorn.run()."
            )
        return agents.observed_asgi(application)

    def _open(self, sockets: Sequence[socket.socket]) -> None:
        if not sockets:
            self.listeners = generation.bind(self.cfg, self.cfg.doors, patient=False, log=self.log)
            return
        self.listeners = [Listener(sock.dup(), shared=True) for sock in sockets]
        for listener in self.listeners:
            start_listening(listener.socket, self.cfg.backlog)

    def _close(self) -> None:
        generation.discard(self.listeners)
        self.log.info("Shutting down: %s", self._app.name)

    def _serve(
        self, application: Callable[..., Any], state: dict[str, Any], loop: asyncio.AbstractEventLoop
    ) -> tuple[asyncio.Future[None], native.Core, native.LoopServer]:
        core = self._make_core()
        before, after = observe_asgi.callbacks(self, self.cfg, self.log)
        gateway = asgi.make_gateway(application, loop, state, self.cfg, self.log, before=before, after=after)
        done: asyncio.Future[None] = loop.create_future()
        core.start()
        server = native.LoopServer(core, gateway, partial(done.set_result, None))
        if threading.current_thread() is threading.main_thread():
            watch.listen(core, server.late_call)
        for descriptor in server.descriptors:
            loop.add_reader(descriptor, server.poll)
        self.log.info("Ready: serving %s at %s", self._app.name, " ".join(map(str, self.listeners)))
        return done, core, server

    def _make_core(self) -> native.Core:
        config = self.cfg
        tls = certificates.make(config, Tickets(), self.log)
        options = core_options(config, AsgiWorker, siblings=False) | {
            **dict.fromkeys(("max_requests", "timeout", "doctor_threshold", "doctor_slow_request", "profile_after"), 0),
            "access_log": logs.native_access(config, self.log),
            "syslog": logs.native_syslog(config, self.log),
            "statsd": logs.native_statsd(config, self.log),
            "doors": [native.door(listener.door) for listener in self.listeners],
            "tls_page": None if tls is None else tls.page,
        }
        page = mmap.mmap(-1, native.scoreboard_bytes(AsgiWorker.at_once(config)))
        core = native.Core([listener.socket.dup().detach() for listener in self.listeners], options, page)
        if not logs.is_native(config, self.log):
            core.hand_over_access_log()
        return core

    async def _end(self, core: native.Core, server: native.LoopServer, done: asyncio.Future[None]) -> None:
        """Waits for requests, and for what goes on after them; then cancels what is left."""
        loop = asyncio.get_running_loop()
        core.drain()
        farewell = Farewell(loop, server.leave(GOING_AWAY), server.dismiss, server.enforce)
        farewell.begin(0.0)  # no other server is there that their clients would besiege
        patience = self.cfg.graceful_timeout
        last_call = loop.call_later(0.0 if self.quick else patience * LAST_CALL, server.last_call)
        end = loop.time() + patience
        while (not done.done() or server.running()) and not self.quick and loop.time() < end:
            self._wakes.clear()
            await _first_of(done, asyncio.ensure_future(self._wakes.wait()), timeout=TICK)
        core.stop()
        if server.running():
            self.log.warning("Cancelled unfinished requests: %s", server.running())
            server.cancel_all()
        end = loop.time() + CANCELLED_REST
        while (not done.done() or server.running()) and loop.time() < end:
            await _first_of(loop.create_future(), timeout=TICK)
        farewell.cancel()
        last_call.cancel()
        for descriptor in server.descriptors:
            loop.remove_reader(descriptor)
        server.close()
        if lost := core.close():
            self.log.warning("%s", lost)

    async def _shut_down(self, lifespan: Lifespan) -> None:
        most = SHUTDOWN_REST if self.quick else self.cfg.graceful_timeout

        async def wait(*futures: asyncio.Future[Any], timeout: float | None = None) -> bool:
            await asyncio.wait(futures, timeout=min(most, timeout or most), return_when=asyncio.FIRST_COMPLETED)
            return any(future.done() for future in futures)

        if not await lifespan.shutdown(wait):
            self.log.warning("The application's shutdown timed out and was cancelled")

    async def _wait(self, *futures: asyncio.Future[Any], timeout: float | None = None) -> bool:
        """Returns whether one of these is done; False: the server is told to leave, or the time is over."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self.leaving and not any(future.done() for future in futures) and time.monotonic() < end:
            self._wakes.clear()
            rest = None if timeout is None else end - time.monotonic()
            await _first_of(*futures, asyncio.ensure_future(self._wakes.wait()), timeout=rest)
        return any(future.done() for future in futures)


@contextmanager
def handling_signals(handle: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Has INT and TERM handled so while the block runs, if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in HANDLED_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _first_of(*futures: asyncio.Future[Any], timeout: float | None) -> None:
    """Waits for one of these, the last of which is cancelled then."""
    try:
        await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        futures[-1].cancel()


def _refuse_processes(given: Layer, origin: str) -> None:
    for name in NEEDS_PROCESSES:
        value = given.values[name].value if name in given.values else None
        if value and (name, value) != ("workers", 1):
            raise ConfigError(
                f"{origin}: {name} needs worker processes, but serve_async() runs in the current process. Use "
                "tricorn.run()."
            )


HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)

NEEDS_PROCESSES = ("workers", "reload", "daemon", "preload_app", "warmup", "reuse_port", "admin_bind")
"""Settings of processes, and of what an arbiter does."""

GOING_AWAY = 1001
"""Close code of WebSockets (RFC 6455 section 7.4.1): the server ends."""

TICK = 0.02
"""Seconds between looks at calls that go on after their replies."""

CANCELLED_REST = 0.5
"""Seconds in which calls may end that were cancelled."""

SHUTDOWN_REST = 1.0
"""Seconds for the application's shutdown, if nothing is waited for any longer."""
