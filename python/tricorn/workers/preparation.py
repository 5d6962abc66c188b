"""Preparation of a worker class: before its workers exist, and in each process that imports an application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tricorn.workers import shared_imports

if TYPE_CHECKING:
    from tricorn.config.config import Config


class Preparation:
    """Most classes have nothing to do."""

    standard_modules: ClassVar[Sequence[str]] = shared_imports.COMMON
    """Modules that the arbiter imports for applications that import anything."""

    @classmethod
    def import_shared(cls, config: Config) -> None:
        """Imports what workers share. Called in the arbiter, before the first fork."""

    @classmethod
    def import_for_application(cls, config: Config) -> None:
        """Imports what the application will, in the arbiter, when it listens. For applications that workers load."""
        if shared_imports.imported_by(config):
            shared_imports.import_modules(cls.standard_modules)

    @classmethod
    def survey(cls) -> None:
        """Searches modules once for all workers. Called in the arbiter, after hooks and configuration have imported."""

    @classmethod
    def patch_library(cls, log: Any) -> None:
        """Patches what would block the hub. Called before any module of the application is imported."""

    @classmethod
    def patch_drivers(cls, log: Any, config: Config, connections: Any = None) -> None:
        """Patches database drivers; `connections` counts open connections."""
