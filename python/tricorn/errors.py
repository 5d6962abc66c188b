"""Exceptions, grouped by who can fix the cause.

    TricornError
    ├── ConfigError      the operator's: a setting, a flag, a path
    ├── BindError        the operator's: an address that cannot be listened on
    ├── AppImportError   the application's: it cannot be found or is not callable
    └── BootError        the application's: it was found and failed while it was loaded

    RequestTimeout       raised inside the application, into a call that takes longer than `request_timeout`
    RequestCancelled     the same, into a call that an operator has cancelled
    BodyError            the client's: raised by `wsgi.input` if the rest of a body does not come (`request_buffering`)

Every message says what was expected and what came, and where it can what to do. The exit code belongs to the
class, so that nothing else has to know it.
"""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from types import TracebackType
from typing import ClassVar

_PACKAGE = os.path.dirname(__file__) + os.sep
OWN_PACKAGES = ("tricorn", "tricorn_bench", "tricorn_green", "tricorn_tools")
"""Packages of all distributions."""
_BESIDE = tuple(f"/{name}/" for name in OWN_PACKAGES[1:])
"""Folders of the other distributions, wherever they are installed."""


class ExitCode(IntEnum):
    """The exit statuses supervisors and deployment scripts know from gunicorn."""

    OK = 0
    CONFIG = 1
    USAGE = 2
    WORKER_BOOT = 3
    APP_LOAD = 4


class TricornError(Exception):
    """Base class of the errors that tricorn raises."""

    exit_code: ClassVar[ExitCode] = ExitCode.CONFIG

    def __init__(self, message: str = "", *, details: str = "") -> None:
        super().__init__(message)
        self.details = details
        """Additional lines, such as a traceback. The message is complete without them."""

    def report(self) -> ExitCode:
        """Prints the error to stderr, as gunicorn does, and returns the exit status."""
        sys.stderr.write(f"\nError: {self}\n{self.details}")
        sys.stderr.flush()
        return self.exit_code


class ConfigError(TricornError):
    """Invalid setting, flag or path."""


class BindError(TricornError):
    """Could not listen on an address."""


class AppImportError(TricornError):
    """The application does not exist, or is not callable."""

    exit_code: ClassVar[ExitCode] = ExitCode.APP_LOAD


class BootError(TricornError):
    """The application raised an exception while it was loaded."""

    exit_code: ClassVar[ExitCode] = ExitCode.WORKER_BOOT


def is_own(file: str) -> bool:
    """Returns whether a source file is tricorn's, and not the application's."""
    return file.startswith(_PACKAGE) or any(package in file for package in _BESIDE)


def is_own_module(name: str) -> bool:
    """Returns whether a module is tricorn's, and not the application's."""
    return name.partition(".")[0] in OWN_PACKAGES


def of_the_application(trace: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback below ours and those of the import system."""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not (is_own(file) or "importlib" in file):
            return trace
        trace = trace.tb_next
    return None


ExceptionInfo = tuple[type[BaseException], BaseException, "TracebackType | None"]


def shown(error: BaseException) -> ExceptionInfo:
    """Returns the `exc_info` for a log, without our own frames unless there are no others."""
    trace = of_the_application(error.__traceback__)
    tells_itself = isinstance(error, ModuleNotFoundError | SyntaxError)
    return type(error), error, trace if trace is not None or tells_itself else error.__traceback__


class ClientDisconnected(OSError):
    """Raised by ASGI's `send` after the client has disconnected (HTTP specification 2.4)."""


class BodyError(ConnectionError):
    """Raised by `wsgi.input` if the client disconnects, is too slow, or sends a malformed body (`request_buffering`).

    It is an `OSError`, as frameworks expect. If the application does not handle it, the server responds with `status`
    and logs no error.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[object, ...]:
        return BodyError, (self.args[0], self.status)


class RequestTimeout(BaseException):
    """Raised inside the application when a request exceeds `request_timeout`. Clean up, and do not suppress it.

    The server then responds with 504, unless the response has started. Derived from `BaseException`, so that error
    handlers for `Exception` do not catch it.
    """

    limit: float = 0.0
    """The timeout in seconds."""

    def __init__(self, limit: float | None = None) -> None:
        if limit is not None:
            self.limit = limit
        super().__init__(f"the request takes longer than request_timeout allows ({self.limit:g} s)")

    def __reduce__(self) -> tuple[object, ...]:
        return RequestTimeout, (self.limit,)


class RequestCancelled(RequestTimeout):
    """Raised inside the application when an operator cancels the request (`tricorn ctl cancel`).

    As with `RequestTimeout`, clean up, and do not suppress it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.args = ("the request was cancelled by an operator",)

    def __reduce__(self) -> tuple[object, ...]:
        return RequestCancelled, ()


def request_timeout(limit: float) -> type[RequestTimeout]:
    """`RequestTimeout` with a limit in seconds of its own: other threads get it as a class, without arguments."""
    namespace = {"limit": limit, "__module__": __name__, "__doc__": RequestTimeout.__doc__}
    return type("RequestTimeout", (RequestTimeout,), namespace)
