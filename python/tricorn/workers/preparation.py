"""Preparation of a worker class: before its workers exist, and in each process that imports an application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tricorn.config.config import Config


class Preparation:
    """Most classes have nothing to do."""

    @classmethod
    def import_shared(cls, config: Config) -> None:
        """Imports what workers share. Called in the arbiter, before the first fork."""

    @classmethod
    def survey(cls) -> None:
        """Searches modules once for all workers. Called in the arbiter, after hooks and configuration have imported."""

    @classmethod
    def patch_library(cls, log: Any) -> None:
        """Before a module of the application is imported: replaces what would block the hub."""

    @classmethod
    def patch_drivers(cls, log: Any, config: Config, connections: Any = None) -> None:
        """The same for drivers of databases; `connections` counts those that are open."""
