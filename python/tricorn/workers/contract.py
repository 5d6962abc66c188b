"""gunicorn's worker interface: the methods that subclasses override.

Each method is called where gunicorn calls it, and `super()` is what is done here. `init_process` and `run` are those of
`base.Worker`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tricorn.workers.handlers import HANDLED

if TYPE_CHECKING:
    from types import FrameType

    from tricorn.config.config import Config
    from tricorn.config.resolve import Raw
    from tricorn.log import Logger
    from tricorn.workers.handlers import Handlers


class Contract:
    SIGNALS = HANDLED
    app: Any
    wsgi: Any
    """The application, once it is loaded."""
    _handlers: Handlers | None = None
    """Set before `init_signals`."""

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
