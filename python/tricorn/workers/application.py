"""The application as hooks know it: `worker.app`, `server.app`, under gunicorn's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tricorn.gateway import app_loader, interfaces
from tricorn.workers.registry import choose

if TYPE_CHECKING:
    from tricorn.config.config import Config


class Application:
    """Loads what `wsgi_app` names, once."""

    def __init__(self, config: Config, given: Any = None) -> None:
        """`given` is the application, or what makes it, that no name leads to."""
        self.cfg = config
        self.app_uri = config.wsgi_app or ""
        self.name = self.app_uri if config.is_default("default_proc_name") else config.default_proc_name
        """Name in the log. A framework's own command serves through a factory of ours, and names its result."""
        self._given = given
        is_made = given is None or config.factory or not interfaces.is_application(given, self._worker_class)
        self.callable: Callable[..., Any] | None = None if is_made else given

    def load(self) -> Callable[..., Any]:
        if self.cfg.paste is not None and self._given is None:
            return app_loader.load_paste(self.cfg.paste, self.cfg.paste_global_conf)
        factory, worker_class = self.cfg.factory, self._worker_class
        if self._given is None:
            return app_loader.load(self.app_uri, factory=factory, worker_class=worker_class)
        return app_loader.make(self._given, self.app_uri, factory=factory, worker_class=worker_class)

    def wsgi(self) -> Callable[..., Any]:
        """The callable. Raises AppImportError, also if the worker class cannot call it, and what its modules raise."""
        if self.callable is None:
            self.callable = self.load()
        interfaces.check(self.callable, self.app_uri, self._worker_class)
        return self.callable

    @property
    def _worker_class(self) -> str:
        return choose(self.cfg.worker_class, self.cfg.threads)
