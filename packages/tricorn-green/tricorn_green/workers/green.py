"""Base of the greenlet workers: many requests at a time on one thread, each on a greenlet of its own.

The native side (`crates/tricorn-py/src/green.rs`) begins requests and reuses greenlets. A worker class says how its hub
watches descriptors, makes and wakes greenlets: that is a `Hub`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from greenlet import GreenletExit, getcurrent

from tricorn import forked
from tricorn.errors import ConfigError
from tricorn.metrics.scoreboard import Scoreboard, sum_of_databases
from tricorn.spelling import hint
from tricorn.workers import roll, shared_imports, watch
from tricorn.workers.base import ENDING_CALLS, Worker
from tricorn.workers.messages import Notice
from tricorn_green import drivers, patching
from tricorn_green import offload as offloading
from tricorn_green.database import Connections, Refusals
from tricorn_green.drivers.records import Care
from tricorn_green.drivers.table import CURABLE

if TYPE_CHECKING:
    from types import FrameType

    from tricorn.config.config import Config
    from tricorn.log import Logger
    from tricorn.log.types import Log
    from tricorn.workers.native import Core, GreenServer, LoopClock, WsgiGateway


CALLS_STEP = 0.01


class Event(Protocol):
    """Something that greenlets wait for until it is set."""

    def set(self) -> object: ...

    def wait(self) -> object: ...


class Hub(ABC):
    """The event loop of the main thread, and what is done in it. Made in the greenlet that will wait for the end."""

    switch: Callable[[], object]
    """Gives control to the hub; returns when another greenlet switches back."""
    is_linked: Callable[[Any], object]
    """Whether something is to be told when a greenlet ends. Asked for each request: best the library's own function."""

    @abstractmethod
    def watch(self, fd: int, callback: Callable[[], object]) -> None:
        """Calls back in the hub whenever `fd` is readable, until `unwatch`."""

    @abstractmethod
    def unwatch(self) -> None:
        """Watches nothing any more."""

    @abstractmethod
    def keep_time(self, clock: LoopClock) -> None:
        """Tells when the hub waits for events, and when it has; nothing where this hub does not show it."""

    @abstractmethod
    def new_greenlet(self, run: Callable[[], object]) -> Any:
        """A greenlet that calls `run` when it is switched to for the first time, and whose parent is the hub."""

    @abstractmethod
    def wait_readable(self, fd: int, seconds: float) -> None:
        """Lets others go on until `fd` has bytes, or the time is over."""

    @abstractmethod
    def wait_writable(self, fd: int, seconds: float) -> None:
        """Lets others go on until `fd` takes bytes, or the time is over."""

    @abstractmethod
    def event(self) -> Event:
        """A new event."""

    @abstractmethod
    def spawn(self, function: Callable[..., object], *args: object) -> None:
        """Calls a function in a greenlet of its own."""

    @abstractmethod
    def in_child(self) -> None:
        """Gives the hub of a process that the application forked its own descriptors to wait with."""

    @abstractmethod
    def when_ended(self, greenlet: Any, function: Callable[[BaseException | None], object]) -> None:
        """Calls `function` with what a greenlet has let out, if it is one of those that can say when they end."""


class GreenWorker(Worker):
    """Greenlet worker: runs up to `worker_connections` requests at once; a waiting request lets others run."""

    hub = yields = True
    standard_modules = shared_imports.CALCULATING
    _hub: Hub | None = None
    _server: GreenServer | None = None
    _connections: Connections | None = None
    _give_up_at = 0.0
    """When calls are left that were ended and go on, on the monotonic clock."""

    @classmethod
    def at_once(cls, config: Config) -> int:
        return max(config.worker_connections, 1)

    @classmethod
    def import_shared(cls, config: Config) -> None:
        patching.prepare(cls.alias)

    @classmethod
    def survey(cls) -> None:
        patching.survey()

    @classmethod
    def patch_library(cls, log: Log) -> None:
        patching.patch(cls.alias, log)

    @classmethod
    def patch_drivers(cls, log: Any, config: Config, connections: Connections | None = None) -> None:
        if config.green_drivers:
            drivers.install(cls.alias, log, connections, Care(config.doctor, config.cures, config.offload))

    @classmethod
    def check_config(cls, cfg: Config, log: Logger) -> None:
        if not cfg.green_drivers and (cfg.doctor == "heal" or cfg.offload):
            name = "doctor" if cfg.doctor == "heal" else "offload"
            raise ConfigError(
                f"{name} (from {cfg.origin(name)}) needs green_drivers, which is off (from "
                f"{cfg.origin('green_drivers')}). Remove one of the two."
            )
        for title in cfg.cures:
            if title not in CURABLE:
                raise ConfigError(
                    f"Invalid value for cures: {title!r} (from {cfg.origin('cures')}): expected one of "
                    f"{', '.join(CURABLE)}{hint(title, CURABLE)}"
                )
        super().check_config(cfg, log)

    @abstractmethod
    def make_hub(self) -> Hub:
        """The hub of this thread, made when it serves."""

    def patch(self) -> None:
        """gunicorn's: all is patched by then."""

    def prepare(self) -> None:
        # Nothing of the application's has imported yet what is to be patched.
        self.patch_library(Notices(self))
        self.patch()
        patching.watch_forks()
        config = self.spec.config
        offloading.settle(self.alias, config.offload_threads, self.log.warning)
        offloading.count_on(Scoreboard(self.spec.page))
        if config.green_drivers:
            self._connections = Connections(Scoreboard(self.spec.page), self._refused, self._call_later)
            self.patch_drivers(Notices(self), config, self._connections)

    def _refused(self, address: str, refusals: Refusals) -> None:
        held = sum_of_databases(self.spec.pages, len(self.spec.page), self.spec.group)
        text = refusals.sentence(address, held, self.spec.server.num_workers, self.cfg.worker_connections)
        self._tell(Notice("error", text, address))

    def _call_later(self, seconds: float, function: Callable[[], object]) -> None:
        def wait_and_call() -> None:
            time.sleep(seconds)  # in the hub: patched
            function()

        if self._hub is None:
            function()
        else:
            self._hub.spawn(wait_and_call)

    def serve(self, core: Core, gateway: WsgiGateway) -> None:
        from tricorn.workers.native import GreenServer, LoopClock

        hub = self._hub = self.make_hub()
        done = hub.event()
        server = self._server = GreenServer(core, gateway, hub, done.set)
        watch.listen(core, server.late_call)
        server.sample_with(roll.sample)
        for descriptor in server.descriptors:
            hub.watch(descriptor, server.poll)
        server.when_slow(partial(hub.keep_time, LoopClock(core)))  # it costs the hub two calls a turn
        try:
            with forked.fence():
                done.wait()
                self._wait_for_calls(server)
        finally:
            hub.unwatch()
            self._server = None
            server.close()
            if self._connections is not None:
                self._connections.report()

    def end_calls(self, frame: FrameType | None) -> bool:
        if self._server is None:
            return False
        self._give_up_at = time.monotonic() + ENDING_CALLS
        calls = self._server.calls()
        self._server.end_calls()
        if any(greenlet is getcurrent() for _, greenlet in calls):
            raise SystemExit
        return False  # what holds the hub is no request

    def _wait_for_calls(self, server: GreenServer) -> None:
        """Lets calls that were ended do what they do at their end."""
        while time.monotonic() < self._give_up_at and server.calls():
            time.sleep(CALLS_STEP)  # in the hub: patched

    def calls(self) -> Sequence[tuple[int, object]]:
        return () if self._server is None else self._server.calls()

    def in_child(self) -> None:
        """The child has all greenlets, and the hub: it may wait. Only the greenlet that forked ends it."""
        if self._hub is None:
            return
        self._hub.in_child()
        child = getcurrent()
        switch = self._hub.switch
        is_over = False

        def wait_for_child() -> None:
            # The main greenlet comes here with a SystemExit, which hubs pass on to it.
            while not is_over and getcurrent() is not child and getcurrent().parent is not None:
                with suppress(GreenletExit):
                    switch()

        def end(error: BaseException | None) -> None:
            nonlocal is_over
            is_over = True
            forked.leave(error)

        forked.before_leaving(wait_for_child)
        self._hub.when_ended(child, end)

    def has_threads_left(self) -> bool:
        return offloading.is_busy()

    def spawn(self, function: Callable[..., object], *args: object) -> None:
        """A signal handler may run in the hub itself, where nothing may wait."""
        if self._hub is None:
            function(*args)
        else:
            self._hub.spawn(function, *args)


class Notices:
    """A log for lines that all workers would write alike."""

    def __init__(self, worker: GreenWorker) -> None:
        self._worker = worker

    def debug(self, text: str, *arguments: object) -> None:
        self._worker.log.debug(text, *arguments)

    def info(self, text: str, *arguments: object) -> None:
        self._worker.notice("info", text % arguments)

    def warning(self, text: str, *arguments: object) -> None:
        self._worker.notice("warning", text % arguments)

    def error(self, text: str, *arguments: object) -> None:
        self._worker.log.error(text, *arguments)
