"""Base of the event-loop workers: up to `worker_connections` calls at a time, each a task of one loop.

    boot     the loop is made, the application loaded; it starts up in the loop, which rests until the worker serves
    serve    the loop watches the core's descriptors; the core begins requests as tasks
    leave    WebSockets and event streams are told, one after another; the core finishes what it has; calls that go on
             after their replies are waited for, and cancelled when `graceful_timeout` is over, or at once after QUIT
    end      the application shuts down in the loop, whatever came before; tasks that are left are cancelled

The native side is `crates/tricorn-py/src/loops`. A worker class says how an application starts, is called and ends.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tricorn import blocking_calls
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.workers import event_loop, leaving, registry, roll, watch
from tricorn.workers.base import Worker
from tricorn.workers.event_loop import EventLoop
from tricorn.workers.farewell import Farewell

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.log import Logger
    from tricorn.workers.native import Core, LoopServer


class LoopWorker(Worker):
    """Many requests at a time; those that wait let others go on."""

    hub = streaming = yields = True
    merges_names = False
    made_loop: tuple[asyncio.AbstractEventLoop, frozenset[int]] | None = None
    """The loop that the application's modules got while they were imported before the class was known; and the epolls
    that were there before it."""
    _loop: EventLoop | None = None
    _server: LoopServer | None = None
    _started = False
    """The application has started up, and is to be shut down."""
    _deadline: float | None = None
    """Loop time when `graceful_timeout` will be over; None: the worker was not told to leave."""
    _farewell: Farewell | None = None
    """While clients that would stay are sent to other workers."""
    _at_once: asyncio.Future[None]
    """Done when nothing is to be waited for any longer."""

    @classmethod
    def at_once(cls, config: Config) -> int:
        return max(config.worker_connections, 1)

    @classmethod
    def check_config(cls, cfg: Config, log: Logger) -> None:
        super().check_config(cfg, log)
        if cfg.offload:
            log.warning(
                "offload (from %s) has no effect with %s: on an event loop, await the call, as in `await "
                "tricorn.offload(function)(...)`.",
                cfg.origin("offload"),
                cls.alias,
            )

    @classmethod
    def import_shared(cls, config: Config) -> None:
        event_loop.import_loop(registry.loop_of(cls.alias, config))

    def start_up(self) -> bool:
        """Starts the application up. Raises if that fails; False: the worker leaves before it is complete."""
        return True

    def shut_down(self) -> bool:
        """Shuts the application down, after its last request and only if it has started up. False: not in time."""
        return True

    @abstractmethod
    def make_gateway(self) -> Any:
        """Returns the gateway through which the core calls the application."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None
        return self._loop.loop

    @classmethod
    def called_directly(cls, application: Callable[..., Any], config: Config) -> tuple[Callable[..., Any], int] | None:
        return None

    def prepare(self) -> None:
        kind = registry.loop_of(self.alias, self.cfg)
        self._loop = EventLoop(kind, self.log, self.made_loop)
        self.log.debug("Using event loop: %s", "that of the application" if self.made_loop else kind)
        self._at_once = self.loop.create_future()
        blocking_calls.configure(self.spec.config.offload_threads, Scoreboard(self.spec.page))

    def give_up(self) -> None:
        if self._loop is not None:
            self._end()

    def start_application(self) -> None:
        self._started = self.start_up()
        if not self._started:
            self.log.warning("Worker shutting down: cancelled the application's startup")

    def has_threads_left(self) -> bool:
        return blocking_calls.is_busy()

    def calls(self) -> Sequence[tuple[int, object]]:
        return () if self._server is None else self._server.calls()

    def in_child(self) -> None:
        if self._loop is not None:
            self._loop.in_child()

    def wakeup_fd(self, core: Core) -> int:
        return core.wakeup_fd if self._loop is None else self._loop.wakeup_fd

    def told_to_leave(self) -> None:
        super().told_to_leave()
        if self._loop is not None:
            self._loop.call(self._leave)

    def spawn(self, function: Callable[..., object], *arguments: object) -> None:
        """A signal handler may run in the midst of the application."""
        if self._loop is None:
            function(*arguments)
        else:
            self._loop.call(function, *arguments)

    def serve(self, core: Core, gateway: Any) -> None:
        try:
            self._serve_in_loop(core, gateway)
        finally:
            self._end()

    def _serve_in_loop(self, core: Core, gateway: Any) -> None:
        from tricorn.workers.native import LoopClock, LoopServer

        assert self._loop is not None
        done: asyncio.Future[None] = self.loop.create_future()
        server = self._server = LoopServer(core, gateway, partial(done.set_result, None))
        watch.listen(core, server.late_call)
        server.sample_with(roll.sample)
        for descriptor in server.descriptors:
            self.loop.add_reader(descriptor, server.poll)
        self._loop.keep_time(LoopClock(core))
        if self.leaving:
            self._leave()
        try:
            self._loop.run(done)
            if self.leaving:  # after a quick stop the loop may have had no turn for it
                self._leave()
        finally:
            for descriptor in server.descriptors:
                self.loop.remove_reader(descriptor)
        try:
            self._wait_for_calls(server, self._loop)
        finally:
            self._server = None
            if self._farewell is not None:
                self._farewell.cancel()
            _, self.late_streams = server.closed()
            server.close()

    def _leave(self) -> None:
        """Begins or speeds up the departure. Runs in the loop after each signal that asks for it."""
        if self._deadline is None:
            self._deadline = self.loop.time() + leaving.patience(self)
            self.loop.call_at(self._deadline, self._hurry)
        if self.quick:
            self._hurry()
        if self._server is not None:
            code = SERVICE_RESTART if Scoreboard(self.spec.page).replaced else GOING_AWAY
            self._send_away(self._server, code)

    def _hurry(self) -> None:
        if not self._at_once.done():
            self._at_once.set_result(None)

    def _send_away(self, server: LoopServer, code: int) -> None:
        """Clients that would stay, one after another: if all came back in the same moment, they would be a burst."""
        if self._farewell is None:
            self._farewell = Farewell(self.loop, server.leave(code), server.dismiss, server.enforce)
            self._farewell.begin(leaving.spread(self), leaving.lead(self))
            # What answers a request that no client repeats by itself has as long as it can be waited for.
            self.loop.call_later(leaving.last_call(self), self._end_streams)
        if self.quick:
            self._farewell.hurry()
            self._end_streams()

    def _end_streams(self) -> None:
        if self._server is not None:
            self._server.last_call()

    def _wait_for_calls(self, server: LoopServer, loop: EventLoop) -> None:
        """Background work after replies: waited for, and then cancelled."""
        if self._at_once.done() and server.closed() != (0, 0):
            self._wait_briefly(server, loop, STREAMS_REST)
            server.enforce(True)
            self._wait_briefly(server, loop, STREAMS_REST)
        while server.running() and not self._at_once.done():
            loop.run(self._at_once, timeout=TICK)
        if server.running():
            self.log.warning("Worker shutting down: cancelled unfinished requests: %s", self._unfinished(server))
            server.cancel_all()
            self._wait_briefly(server, loop, CANCELLED_REST)

    @staticmethod
    def _wait_briefly(server: LoopServer, loop: EventLoop, seconds: float) -> None:
        for _ in range(round(seconds / TICK)):
            if server.running():
                loop.run(timeout=TICK)

    def _unfinished(self, server: LoopServer) -> str:
        """The requests of calls under way, and how many calls have none: they go on after their response."""
        running = Scoreboard(self.spec.page).requests()
        named = [request.text for request in running[:MOST_NAMED]]
        if (others := max(server.running(), len(running)) - len(named)) > 0:
            named.append(f"{others} more" if named else f"{others} after their responses")
        return ", ".join(named)

    def _end(self) -> None:
        """The application's shutdown, whatever came before; then there is no loop any more."""
        loop, started = self._loop, self._started
        assert loop is not None
        self._started = False
        try:
            if started and not self.shut_down():
                self.log.warning("The application's shutdown timed out and was cancelled")
        except (Exception, SystemExit):
            self.log.exception("Exception during the application's shutdown")
        finally:
            self._loop = None
            loop.close()

    def complete(self, coroutine: Coroutine[Any, Any, None], rest: float = 0.0) -> bool:
        """Runs a coroutine of the application in a task, and raises what it raises. Returns as `wait` does."""
        task = self.loop.create_task(coroutine)
        if self.wait(task, rest=rest):
            task.result()
            return True
        task.cancel()
        return False

    def wait(self, *futures: asyncio.Future[Any], timeout: float | None = None, rest: float = 0.0) -> bool:
        """Runs the loop until one of these is done, or for `timeout` seconds; returns whether one is.

        Once nothing is to be waited for any longer (`_at_once`), it takes `rest` seconds at most. The worker waits in
        this way, and not in tasks of its own, since an application may cancel all tasks of the loop.
        """
        assert self._loop is not None
        self._loop.run(*futures, self._at_once, timeout=timeout)
        if rest and self._at_once.done():
            self._loop.run(*futures, timeout=rest if timeout is None else min(rest, timeout))
        return any(future.done() for future in futures)

    def wait_in_turns(self, rest: float = 0.0) -> Callable[..., Awaitable[bool]]:
        """`wait` for coroutines that run outside of the loop."""

        async def wait(*futures: asyncio.Future[Any], timeout: float | None = None) -> bool:
            return self.wait(*futures, timeout=timeout, rest=rest)

        return wait


TICK = 0.02
"""Seconds between looks at calls that go on after their replies."""

MOST_NAMED = 8
"""Requests in a line of the log."""

GOING_AWAY, SERVICE_RESTART = 1001, 1012
"""Close codes of WebSockets (RFC 6455 section 7.4.1, IANA): the server ends, or others serve on."""

# The arbiter kills a worker two seconds after QUIT. Of these:
STREAMS_REST = 0.1
CANCELLED_REST = 0.5
SHUTDOWN_REST = 1.0
