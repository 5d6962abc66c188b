"""The application as hooks know it: `worker.app`, `server.app`, under gunicorn's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tricorn.config.config import Config


class Application:
    """Loads what `wsgi_app` names, once."""

    def __init__(self, config: Config) -> None:
        self.cfg = config
        self.app_uri = config.wsgi_app or ""
        self.callable: Callable[..., Any] | None = None

    def wsgi(self) -> Callable[..., Any]:
        """The callable. Raises AppImportError, and whatever its modules raise."""
        if self.callable is None:
            from tricorn.gateway import app_loader

            self.callable = app_loader.load(self.app_uri)
        return self.callable
