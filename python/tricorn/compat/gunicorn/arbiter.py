"""The arbiter: its constants, for hooks and annotations; and `Arbiter(app).run()`, which starts this server."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, ClassVar, NoReturn

from tricorn.compat import programs
from tricorn.compat.absent import refuse
from tricorn.errors import ConfigError, ExitCode

_NAMES = ("HUP", "QUIT", "INT", "TERM", "TTIN", "TTOU", "USR1", "USR2", "WINCH")


class Arbiter:
    """The `server` of hooks is another object with the same attributes."""

    WORKER_BOOT_ERROR: ClassVar[int] = int(ExitCode.WORKER_BOOT)
    APP_LOAD_ERROR: ClassVar[int] = int(ExitCode.APP_LOAD)
    SIGNALS: ClassVar[list[signal.Signals]] = [signal.Signals[f"SIG{name}"] for name in _NAMES]
    SIG_NAMES: ClassVar[dict[int, str]] = {each: each.name[3:].lower() for each in signal.Signals}

    def __init__(self, app: Any) -> None:
        self.app = app
        self.cfg = app.cfg
        self.pid = os.getpid()
        self.num_workers: int = app.cfg.workers

    def run(self) -> NoReturn:
        """Ends the process with the server's exit status, and a worker's with its own."""
        if changed := sorted(_THEIRS & _defined_by(type(self))):
            raise ConfigError(
                f"{type(self).__qualname__} changes gunicorn's arbiter ({', '.join(changed)}), which this server does "
                "not have: workers are replaced by max_requests, max_worker_lifetime and max_worker_memory, and the "
                "hooks tell what happens."
            )
        sys.exit(programs.run(self.app))


def _defined_by(kind: type) -> set[str]:
    """The names that classes derived from `Arbiter` define."""
    return {name for each in kind.__mro__ if issubclass(each, Arbiter) and each is not Arbiter for name in vars(each)}


_THEIRS = frozenset(
    (
        *(f"handle_{name.lower()}" for name in (*_NAMES, "CHLD")),
        "halt",
        "init_signals",
        "kill_worker",
        "kill_workers",
        "manage_workers",
        "maybe_promote_master",
        "murder_workers",
        "reap_workers",
        "reexec",
        "reload",
        "setup",
        "signal",
        "spawn_worker",
        "spawn_workers",
        "start",
        "stop",
        "wait_for_signals",
        "wakeup",
    )
)

__getattr__ = refuse(__name__)
