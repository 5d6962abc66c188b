"""The native core. One per worker process, made after the fork."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

SCOREBOARD_BYTES: int
SCOREBOARD_VERSION: int

class WsgiGateway:
    """How a WSGI application is called (PEP 3333).

    `base_environ` holds the keys that are the same for every request; `on_error(message, exception)` logs an
    exception that the application let out.
    """

    def __init__(
        self,
        application: Callable[..., Any],
        base_environ: Mapping[str, Any],
        on_error: Callable[[str, BaseException], None],
    ) -> None: ...

class Core:
    """The reactor, its monitor thread and the scoreboard page of this worker."""

    def __init__(self, listeners: Sequence[int], options: Mapping[str, Any], scoreboard: Any) -> None: ...
    @property
    def wakeup_fd(self) -> int:
        """A non-blocking descriptor for `signal.set_wakeup_fd`."""

    def start(self) -> None:
        """Starts the monitor thread; requests are taken from now on by threads inside `serve`."""

    def serve(self, gateway: WsgiGateway) -> None:
        """Serves requests on the calling thread until the core is drained or stopped.

        On the main thread Python's signal handlers run in between. Any number of threads up to `threads` may serve.
        """

    def wait(self) -> None:
        """Blocks the (main) thread until the core is drained or stopped; signal handlers run meanwhile."""

    def drain(self) -> None:
        """Accepts nothing more, closes idle connections, finishes running and read requests, then lets `serve` return."""

    def stop(self) -> None:
        """Lets `serve` return as soon as running application calls do; connections are closed."""

    def close(self) -> None:
        """Joins the monitor thread, flushes the access log and closes every connection."""

    def reopen_logs(self) -> None:
        """Opens the access log file anew (after rotation)."""
