"""A worker as its helpers, hooks and subclasses see it: gunicorn's interface, and the facts about a class.

Each method is called where gunicorn calls it, and `super()` is what is done here. `init_process` and `run` are those of
`base.Worker`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from types import FrameType

    from tricorn._core import Core
    from tricorn.config.config import Config
    from tricorn.config.resolve import Raw
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
    """The setting `worker_class` and the log have this name; a subclass has its family's."""
    hub: ClassVar[bool] = False
    """The main thread waits in an event loop of Python's, which watches the core's descriptors."""
    streaming: bool = False
    """Requests begin with their heads, whatever `request_buffering` says."""
    merges_names: bool = True
    """The application gets a WSGI environ, which has the same key for `X_User` and `X-User`."""
    yields: bool = False
    """A call that waits for its client lets other calls run on the same thread."""
    brings: ClassVar[tuple[str, ...]] = ()
    """Packages whose names are there in its workers alone."""

    stands_in = False
    """The application could not be loaded, and `wsgi` shows why."""

    spec: WorkerSpec
    fds: WorkerFds
    call_file: int
    """Descriptor that shows the main thread's system calls if the worker changes its user (`privileges`)."""
    age: int
    ppid: int
    app: Any
    wsgi: Any
    """The application, once it is loaded."""
    cfg: Config
    log: Logger
    max_requests: int
    aborted: bool
    leaving: bool
    """Told to leave, or about to: the arbiter knows."""
    quick: bool
    """Told to leave at once: running calls are not waited for."""
    late_streams: int
    """Streams that were told to end, since the worker leaves, and had to be forced."""
    alive: bool
    """Set to False in the worker, it is replaced; until its successor serves it goes on."""
    _handlers: SignalActions | None = None
    """Set before `init_signals`."""

    @classmethod
    def at_once(cls, config: Config) -> int:
        """How many requests run at once in one process."""
        return 1

    def wakeup_fd(self, core: Core) -> int:
        """Returns a non-blocking descriptor that ends the main thread's wait when it is written to."""
        raise NotImplementedError

    def refuse_newcomers(self) -> None:
        """Stops accepting at listeners of its own: where others serve on clients come to theirs."""
        raise NotImplementedError

    def told_to_leave(self) -> None:
        """Called in a signal handler, when the worker is to drain, or with `quick` to stop; the core knows."""
        raise NotImplementedError

    def spawn(self, function: Callable[..., object], *arguments: object) -> None:
        """Runs what a signal asks for and what may wait: a hook, a file."""
        raise NotImplementedError

    def die(self) -> None:
        """Ends the process after SIGABRT: no ceremony, but the hooks that want to know."""
        raise NotImplementedError

    @classmethod
    def settings(cls) -> Mapping[str, Raw]:
        """Values of settings that the class says, stronger than those of the configuration."""
        return {}

    @classmethod
    def setup(cls) -> None:
        """Once, when the class is known."""

    @classmethod
    def check_config(cls, cfg: Config, log: Logger) -> None:
        """Once, when the log is there."""

    def load_wsgi(self) -> None:
        """Sets `wsgi`."""
        self.wsgi = self.app.wsgi()

    def init_signals(self) -> None:
        """This server's handlers are set later, for signals that have none by then."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """On TERM."""
        if self._handlers is not None:
            self._handlers.drain()

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:
        """On INT and QUIT."""
        if self._handlers is not None:
            self._handlers.stop(frame)

    def handle_abort(self, sig: int, frame: FrameType | None) -> None:
        """On ABRT."""
        if self._handlers is not None:
            self._handlers.abort(frame)

    def handle_usr1(self, sig: int, frame: FrameType | None) -> None:
        """On USR1."""
        if self._handlers is not None:
            self._handlers.reopen()

    def handle_winch(self, sig: int, frame: FrameType | None) -> None:
        """On WINCH: nothing to do."""

    def end_calls(self, frame: FrameType | None) -> bool:
        """Ends calls of the application by SystemExit, as gunicorn's `sync` does. Returns whether there were any.

        For the handler of a signal: if it has interrupted such a call, at `frame`, the exception is raised here.
        """
        return False

    def notify(self) -> None:
        """The heartbeat, which the core's monitor does. Called once a second if a class overrides it."""
