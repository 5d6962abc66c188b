"""The arbiter: its constants, `Arbiter(app).run()`, which starts this server, and the class to derive from.

A class of a program's may look at its workers once a second (`manage_workers`), start and dismiss some, and deal with
signals. What else gunicorn's arbiter has is done by this server's own.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from signal import Signals
from typing import Any, ClassVar, NoReturn

from tricorn.arbiter.hook_api import Server
from tricorn.arbiter.policy.events import Event, KillRequested, Signalled, SpawnRequested
from tricorn.compat import programs
from tricorn.compat.absent import refuse
from tricorn.errors import ConfigError, ExitCode
from tricorn.workers import ending

_NAMES = ("HUP", "QUIT", "INT", "TERM", "TTIN", "TTOU", "USR1", "USR2", "WINCH")


class Arbiter(Server):
    """Hooks get it as `server`."""

    WORKER_BOOT_ERROR: ClassVar[int] = int(ExitCode.WORKER_BOOT)
    APP_LOAD_ERROR: ClassVar[int] = int(ExitCode.APP_LOAD)
    SIGNALS: ClassVar[list[signal.Signals]] = [signal.Signals[f"SIG{name}"] for name in _NAMES]
    SIG_NAMES: ClassVar[dict[int, str]] = {each: each.name[3:].lower() for each in signal.Signals}

    def __init__(self, app: Any) -> None:
        self._program = app
        self._workers = dict
        self._wake = lambda: None
        self._post = lambda event: None
        self._num_workers = app.cfg.workers
        self.pid = os.getpid()

    @property
    def app(self) -> Any:
        return super().app if self._has_begun else self._program

    @property
    def cfg(self) -> Any:
        return super().cfg if self._has_begun else self._program.cfg

    @property
    def _has_begun(self) -> bool:
        return "_generation" in vars(self)

    def run(self) -> NoReturn:
        """Ends the process with the server's exit status, and a worker's with its own."""
        theirs = _defined_by(type(self))
        if changed := sorted(theirs & _NOT_CALLED):
            raise ConfigError(
                f"{type(self).__qualname__} overrides methods of gunicorn's arbiter that tricorn does not call "
                f"({', '.join(changed)}). It calls manage_workers() and handle_…(), and provides spawn_worker() and "
                "kill_worker(). To replace workers use max_requests, max_worker_lifetime and max_worker_memory; for "
                "events use the hooks."
            )
        self.is_managing = "manage_workers" in theirs
        status = programs.run(self._program, self)
        ending.end_server(status)
        sys.exit(status)

    def spawn_worker(self) -> None:
        """One more than `num_workers`, until `kill_worker` is called."""
        self._tell(SpawnRequested())

    def kill_worker(self, pid: int, sig: int) -> None:
        """TERM: the worker finishes its requests and goes, as soon as `num_workers` others serve."""
        self._tell(KillRequested(pid, Signals(sig)))

    def _tell(self, event: Event) -> None:
        self._post(event)
        self._wake()

    def take_signal(self, signal: Signals) -> bool:
        """A method of the program's for it is called; `super()` of that is what is done otherwise."""
        name = f"handle_{signal.name.removeprefix('SIG').lower()}"
        if name not in _defined_by(type(self)) or signal is Signals.SIGCHLD:
            return False
        try:
            getattr(self, name)()
        except Exception:
            self.log.exception("Exception in %s.%s", type(self).__qualname__, name)
        return True

    def manage_workers(self) -> None:
        """Nothing is left to do. A class derived from this one is asked once a second."""


def _handler(name: str) -> Callable[[Arbiter], None]:
    def handle(self: Arbiter) -> None:
        self._tell(Signalled(Signals[f"SIG{name}"]))

    handle.__name__ = f"handle_{name.lower()}"
    return handle


for _name in _NAMES:
    setattr(Arbiter, f"handle_{_name.lower()}", _handler(_name))


def _defined_by(kind: type) -> set[str]:
    """The names that classes derived from `Arbiter` define."""
    return {name for each in kind.__mro__ if issubclass(each, Arbiter) and each is not Arbiter for name in vars(each)}


_NOT_CALLED = frozenset(
    (
        "handle_chld",
        "halt",
        "init_signals",
        "kill_worker",
        "kill_workers",
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
