"""The arbiter as hooks know it: `server.log`, `server.cfg`, `server.WORKERS` … under gunicorn's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tricorn.arbiter.generation import Generation
    from tricorn.arbiter.sockets import Listener
    from tricorn.config.config import Config
    from tricorn.log import Logger
    from tricorn.workers.application import Application
    from tricorn.workers.base import Worker


class Server:
    """What hooks get as `server`. Hooks may keep things of their own on it."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._workers: Callable[[], Mapping[int, Worker]] = dict
        self.pid: int | None = None
        """Of the arbiter; known from `on_starting` on."""
        self.num_workers = generation.config.workers
        self.worker_age = 0
        """How many workers have been started."""

    def attach(self, workers: Callable[[], Mapping[int, Worker]]) -> None:
        self._workers = workers

    def adopt(self, generation: Generation) -> None:
        """From now on this generation's configuration is the server's."""
        self._generation = generation

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
        """The workers by pid."""
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
