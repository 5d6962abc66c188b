"""The application as hooks know it: `worker.app`, `server.app`, under gunicorn's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tricorn.gateway import app_loader, interfaces
from tricorn.workers import choose

if TYPE_CHECKING:
    from tricorn.config.config import Config


class Application:
    """Loads what `wsgi_app` names, once."""

    def __init__(self, config: Config, given: Any = None) -> None:
        """`given` is the application, or with `factory` what makes it, that no name leads to."""
        self.cfg = config
        self.app_uri = config.wsgi_app or ""
        self._given = given
        self.callable: Callable[..., Any] | None = None if config.factory else given

    def load(self) -> Callable[..., Any]:
        if self.cfg.paste is not None and self._given is None:
            from tricorn.gateway import paste

            return paste.load(self.cfg.paste, self.cfg.paste_global_conf)
        made: Callable[..., Any] | None = None if self._given is None else app_loader.make(self._given)
        return made or app_loader.load(self.app_uri, factory=self.cfg.factory)

    def wsgi(self) -> Callable[..., Any]:
        """The callable. Raises AppImportError, also if the worker class cannot call it, and what its modules raise."""
        if self.callable is None:
            self.callable = self.load()
        interfaces.check(self.callable, self.app_uri, choose(self.cfg.worker_class, self.cfg.threads))
        return self.callable
