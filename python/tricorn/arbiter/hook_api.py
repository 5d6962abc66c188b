"""The `server` object of hooks, with gunicorn's names: `server.log`, `server.cfg`, `server.WORKERS` …"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from signal import Signals
from typing import TYPE_CHECKING, Any

from tricorn.unpatched import os

if TYPE_CHECKING:
    from tricorn.arbiter.generation import Generation
    from tricorn.arbiter.listeners.sockets import Listener
    from tricorn.arbiter.policy.events import Event
    from tricorn.config.config import Config
    from tricorn.log import Logger
    from tricorn.workers.application import Application
    from tricorn.workers.base import Worker


class Server:
    """The `server` object that hooks get. Hooks may set attributes of their own."""

    _generation: Generation
    pid: int | None = None
    """Pid of the arbiter; set from `on_starting` on."""
    worker_age = 0
    """Number of workers that have been started."""
    is_managing = False
    """`manage_workers` is to be called once a second."""
    _asked: int | None = None
    """The `num_workers` that a hook has set, until the arbiter takes it."""

    def __init__(self, generation: Generation) -> None:
        self.begin(generation)

    def begin(self, generation: Generation) -> None:
        self._generation = generation
        self._workers: Callable[[], Mapping[int, Worker]] = dict
        self._wake: Callable[[], object] = lambda: None
        self._post: Callable[[Event], object] = lambda event: None
        self._num_workers = generation.config.workers

    def attach(
        self,
        workers: Callable[[], Mapping[int, Worker]],
        wake: Callable[[], object],
        post: Callable[[Event], object],
    ) -> None:
        """`wake` ends the wait of the arbiter's loop; it may be called in any thread. `post` tells the policy."""
        self._workers, self._wake, self._post = workers, wake, post

    def take_signal(self, signal: Signals) -> bool:
        """Whether it is dealt with, and the policy does not hear of it."""
        return False

    def manage_workers(self) -> None:
        """gunicorn's: the policy does it."""

    def adopt(self, generation: Generation) -> None:
        """Takes over the configuration of this generation."""
        self._generation = generation

    @property
    def num_workers(self) -> int:
        """Target number of workers. A hook, or a thread that it started, may set it, like TTIN and TTOU."""
        asked = self._asked  # read once: the arbiter may take it meanwhile
        return self._num_workers if asked is None else asked

    @num_workers.setter
    def num_workers(self, value: int) -> None:
        if value < 0:
            raise ValueError(f"num_workers is a number of workers, not {value}")
        self._asked = value
        if self.pid == os.getpid():  # in a worker the descriptor may be another one
            self._wake()

    def decided(self, workers: int) -> None:
        self._num_workers = workers

    def take_request(self) -> int | None:
        """The number of workers that was asked for since the last look."""
        asked: int | None = vars(self).pop("_asked", None)  # in one step: a thread may set it at any moment
        return asked

    def reload(self) -> None:
        """Reloads the server, like HUP."""
        self._signal(Signals.SIGHUP)

    def stop(self, graceful: bool = True) -> None:
        """Stops the server, like TERM or QUIT."""
        self._signal(Signals.SIGTERM if graceful else Signals.SIGQUIT)

    def kill_workers(self, sig: int) -> None:
        for pid in self.WORKERS:
            self.kill_worker(pid, sig)

    def kill_worker(self, pid: int, sig: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, sig)

    def _signal(self, signal: Signals) -> None:
        """Sends a signal to the arbiter, from a hook of it, from a thread, or from a worker."""
        os.kill(self.pid or os.getpid(), signal)

    @property
    def cfg(self) -> Config:
        return self._generation.config

    @property
    def log(self) -> Logger:
        return self._generation.log

    @property
    def app(self) -> Application:
        return self._generation.app

    @property
    def WORKERS(self) -> Mapping[int, Worker]:  # gunicorn's name
        """Workers by pid."""
        return self._workers()

    @property
    def LISTENERS(self) -> list[Listener]:
        return self._generation.listeners

    @property
    def address(self) -> list[Any]:
        return self.cfg.address

    @property
    def proc_name(self) -> str:
        return self.cfg.proc_name or self._generation.app.app_uri

    @property
    def timeout(self) -> float:
        return self.cfg.timeout
