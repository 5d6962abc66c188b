"""gunicorn's classes that have no counterpart here."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from tricorn.errors import ExitCode, TricornError


class HaltServer(BaseException):
    """Raised by hooks to end the server. A BaseException, so that no `except Exception` on the way holds it up."""

    def __init__(self, reason: str, exit_status: int = 1) -> None:
        super().__init__(reason, exit_status)
        self.reason = reason
        self.exit_status = exit_status

    def __str__(self) -> str:
        return f"<HaltServer {self.reason!r} {self.exit_status}>"


class Arbiter:
    """For annotations and for its exit codes. The `server` of hooks is another object with the same attributes."""

    WORKER_BOOT_ERROR: ClassVar[int] = int(ExitCode.WORKER_BOOT)
    APP_LOAD_ERROR: ClassVar[int] = int(ExitCode.APP_LOAD)

    def __init__(self, *_: object) -> NoReturn:
        raise TricornError(
            "tricorn serves gunicorn.arbiter.Arbiter for its constants only; "
            "a program that starts an arbiter itself needs gunicorn."
        )
