"""A worker as its helpers, hooks and subclasses see it: gunicorn's interface, and the facts about a class.

Each method is called where gunicorn calls it, and `super()` is what is done here. `init_process` and `run` are those of
`base.Worker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from types import FrameType

    from tricorn._core import Core
    from tricorn.config.config import Config
    from tricorn.config.resolve import Raw
    from tricorn.gateway.warmup import Ask
    from tricorn.log import Logger
    from tricorn.workers.spec import WorkerFds, WorkerSpec


class SignalActions(Protocol):
    """Actions of the default signal handlers (`handlers.Handlers`)."""

    def drain(self) -> None: ...

    def stop(self, frame: FrameType | None) -> None: ...

    def abort(self, frame: FrameType | None) -> None: ...

    def reopen(self) -> None: ...


class Contract:
    alias: ClassVar[str]
    """Name in the setting `worker_class` and in the log; subclasses share it."""
    hub: ClassVar[bool] = False
    """Whether the main thread runs a Python event loop that watches the core's descriptors."""
    streaming: bool = False
    """Whether calls start with the request head, regardless of `request_buffering`."""
    merges_names: bool = True
    """Whether the application gets a WSGI environ, in which `X_User` and `X-User` have the same key."""
    yields: bool = False
    """Whether other calls run on the same thread while a call waits for its client."""
    websockets_over_http2: ClassVar[bool] = False
    """Whether clients may ask for a WebSocket on a stream of HTTP/2 (RFC 8441)."""
    brings: ClassVar[tuple[str, ...]] = ()
    """Packages that exist only in workers of this class."""

    stands_in = False
    """Whether the application could not be loaded, and `wsgi` shows the error instead."""

    spec: WorkerSpec
    fds: WorkerFds
    call_file: int
    """Descriptor that shows the main thread's system calls if the worker changes its user (`privileges`)."""
    age: int
    ppid: int
    app: Any
    wsgi: Any
    """The application, after it was loaded."""
    cfg: Config
    log: Logger
    max_requests: int
    aborted: bool
    leaving: bool
    """Whether the worker shuts down or is about to; the arbiter knows."""
    quick: bool
    """Whether the worker shuts down without waiting for running calls."""
    late_streams: int
    """Number of streams that did not end in time at shutdown, and were cancelled."""
    alive: bool
    """Set to False in the worker to have it replaced; it serves until its successor is ready."""
    _handlers: SignalActions | None = None
    """Set before `init_signals`."""

    @classmethod
    def at_once(cls, config: Config) -> int:
        """Returns the number of requests that a worker runs at once."""
        return 1

    @classmethod
    def called_directly(cls, application: Callable[..., Any], config: Config) -> tuple[Callable[..., Any], int] | None:
        """Returns the WSGI application that can be called without a loop or a server, and how many of its calls run at
        once. None: it is none.
        """
        return application, cls.at_once(config)

    @classmethod
    @contextmanager
    def rehearse(cls, application: Callable[..., Any], config: Config, log: Logger) -> Iterator[Ask | None]:
        """Starts the application up in a mold, yields what asks it as `make_ask` does, and shuts it down."""
        yield cls._ask_directly(application, config, log, multiprocess=True, worker=0)

    def make_ask(self) -> Ask | None:
        """Returns what asks the application, once it has started up, for a target of `warmup`. None: nothing can."""
        spec = self.spec
        return self._ask_directly(self.wsgi, self.cfg, self.log, multiprocess=spec.siblings, worker=spec.slot)

    @classmethod
    def _ask_directly(
        cls, application: Callable[..., Any], config: Config, log: Logger, *, multiprocess: bool, worker: int
    ) -> Ask | None:
        from tricorn.gateway.warmup import ask_wsgi

        called = cls.called_directly(application, config)
        if called is None:
            return None
        return ask_wsgi(called[0], log, multithread=called[1] > 1, multiprocess=multiprocess, worker=worker)

    def wakeup_fd(self, core: Core) -> int:
        """Returns a non-blocking descriptor that ends the main thread's wait when it is written to."""
        raise NotImplementedError

    def refuse_newcomers(self) -> None:
        """Stops accepting on the worker's own listeners, if other workers accept on theirs."""
        raise NotImplementedError

    def told_to_leave(self) -> None:
        """Reacts to the start of a drain, or of a stop if `quick`. Called in a signal handler, after the core."""
        raise NotImplementedError

    def spawn(self, function: Callable[..., object], *arguments: object) -> None:
        """Runs a function that a signal handler requests and that may block, such as a hook."""
        raise NotImplementedError

    def die(self) -> None:
        """Ends the process after SIGABRT. Only hooks for this case run."""
        raise NotImplementedError

    @classmethod
    def settings(cls) -> Mapping[str, Raw]:
        """Returns values of settings that override the configuration."""
        return {}

    @classmethod
    def setup(cls) -> None:
        """Prepares the class. Called once, when the class is known."""

    @classmethod
    def check_config(cls, cfg: Config, log: Logger) -> None:
        """Validates the configuration. Called once, when the log is set up. Raises ConfigError."""

    def load_wsgi(self) -> None:
        """Loads the application and sets `wsgi`."""
        self.wsgi = self.app.wsgi()

    def init_signals(self) -> None:
        """This server's handlers are set later, for signals that have none by then."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handles TERM: drains."""
        if self._handlers is not None:
            self._handlers.drain()

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:
        """Handles INT and QUIT: stops."""
        if self._handlers is not None:
            self._handlers.stop(frame)

    def handle_abort(self, sig: int, frame: FrameType | None) -> None:
        """Handles ABRT: aborts."""
        if self._handlers is not None:
            self._handlers.abort(frame)

    def handle_usr1(self, sig: int, frame: FrameType | None) -> None:
        """Handles USR1: reopens the logs."""
        if self._handlers is not None:
            self._handlers.reopen()

    def handle_winch(self, sig: int, frame: FrameType | None) -> None:
        """Handles WINCH: does nothing."""

    def end_calls(self, frame: FrameType | None) -> bool:
        """Raises SystemExit in running calls of the application, as gunicorn's `sync` does. Returns whether any ran.

        For the handler of a signal: if it has interrupted such a call, at `frame`, the exception is raised here.
        """
        return False

    def notify(self) -> None:
        """Heartbeat, done by the core's monitor. Called once a second if a class overrides it."""
