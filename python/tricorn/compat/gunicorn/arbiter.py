"""The arbiter: its constants, for hooks and annotations."""

from __future__ import annotations

import signal
from typing import ClassVar, NoReturn

from tricorn.compat.absent import refuse
from tricorn.errors import ExitCode, TricornError

_NAMES = ("HUP", "QUIT", "INT", "TERM", "TTIN", "TTOU", "USR1", "USR2", "WINCH")


class Arbiter:
    """For annotations and for its constants. The `server` of hooks is another object with the same attributes."""

    WORKER_BOOT_ERROR: ClassVar[int] = int(ExitCode.WORKER_BOOT)
    APP_LOAD_ERROR: ClassVar[int] = int(ExitCode.APP_LOAD)
    SIGNALS: ClassVar[list[signal.Signals]] = [signal.Signals[f"SIG{name}"] for name in _NAMES]
    SIG_NAMES: ClassVar[dict[int, str]] = {each: each.name[3:].lower() for each in signal.Signals}

    def __init__(self, *_: object) -> NoReturn:
        raise TricornError(
            "tricorn serves gunicorn.arbiter.Arbiter for its constants only; "
            "a program that starts an arbiter itself needs gunicorn."
        )


__getattr__ = refuse(__name__)
