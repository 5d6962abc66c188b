"""The native core. One per worker process, made after the fork."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

__all__ = ["SCOREBOARD_BYTES", "SCOREBOARD_VERSION", "Core", "WsgiGateway", "check_access_log_format"]

SCOREBOARD_BYTES: int
SCOREBOARD_VERSION: int

def check_access_log_format(text: str) -> None:
    """Raises `ValueError`, naming the known atoms, for a format with another one."""

@final
class WsgiGateway:
    """How a WSGI application is called (PEP 3333).

    `base_environ` holds the keys that are the same for every request. `on_error(message, exception)` logs an exception
    that the application let out; `on_notice(is_warning, text)` logs what the core noticed (refused requests and such).
    """

    def __new__(
        cls,
        application: Callable[..., Any],
        base_environ: Mapping[str, Any],
        on_error: Callable[[str, BaseException], object],
        on_notice: Callable[[bool, str], object] | None = None,
    ) -> WsgiGateway: ...

@final
class Core:
    """The reactor, its monitor thread and the scoreboard page of this worker.

    `listeners` are descriptors of listening sockets that nobody else closes: the core owns them from now on.
    `scoreboard` is a writable buffer of at least `SCOREBOARD_BYTES`. Raises `ValueError` or `KeyError` for options it
    cannot use and `OSError` for what the system refuses.
    """

    def __new__(cls, listeners: Sequence[int], options: Mapping[str, Any], scoreboard: Any) -> Core: ...
    @property
    def wakeup_fd(self) -> int:
        """A non-blocking descriptor for `signal.set_wakeup_fd`."""

    def start(self) -> None:
        """Starts the monitor thread; this process must not fork from now on."""

    def serve(self, gateway: WsgiGateway) -> None:
        """Serves requests on the calling thread until the core is drained or stopped.

        On the main thread Python's signal handlers run in between. Up to `threads` threads may serve. Whatever an
        application lets out, `SystemExit` included, ends its request only. Raises what a signal handler raises, and
        `RuntimeError` for a defect of the core.
        """

    def wait(self) -> None:
        """Blocks the (main) thread until the core is drained or stopped; signal handlers run meanwhile."""

    def drain(self) -> None:
        """Accepts nothing more, finishes what was begun, then lets `serve` return.

        Idle connections are closed after a moment in which a request already on its way is still answered.
        """

    def stop(self) -> None:
        """Lets `serve` return as soon as running application calls do; connections are closed."""

    def close(self) -> None:
        """Joins the monitor thread, flushes the access log and closes every connection."""

    def reopen_logs(self) -> None:
        """Opens the access log file anew (after rotation). Raises `OSError`."""
