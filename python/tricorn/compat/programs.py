"""Programs that start the server themselves: gunicorn's `BaseApplication(...).run()`, as this server has it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tricorn.compat.assigned import with_assigned
from tricorn.config.config import Config
from tricorn.config.load import Loaded, Sources
from tricorn.errors import ConfigError, TricornError
from tricorn.workers.application import Application

if TYPE_CHECKING:
    from tricorn.arbiter.hook_api import Server


class Front(Protocol):
    """The configuration that a program fills (`gunicorn.config.Config`)."""

    directory: str

    def loaded(self) -> Loaded: ...


class Program(Protocol):
    """gunicorn's application object."""

    cfg: Front
    callable: Callable[..., Any] | None

    def wsgi(self) -> Any: ...

    def reload(self) -> object: ...


class _ProgramSources(Sources):
    """Sources of a reload: the program is asked again."""

    owner: Any = None
    """The program."""

    def load(self) -> Loaded:
        before = self.owner.cfg
        try:
            self.owner.reload()
            return with_assigned(self.owner.cfg.loaded())
        except BaseException as error:
            self.owner.cfg = before
            if isinstance(error, SystemExit):  # gunicorn's way of saying so; the reason was printed
                raise ConfigError("The program failed to read its configuration.") from None
            raise


class _ProgramApplication(Application):
    """The program's application. Hooks find the program's own attributes on it."""

    def __init__(self, program: Program, config: Config) -> None:
        super().__init__(config)
        self.program = program
        self.app_uri = str(getattr(program, "app_uri", None) or config.wsgi_app or type(program).__name__)
        self.name = self.app_uri
        self.callable = program.callable

    def load(self) -> Callable[..., Any]:
        found: Callable[..., Any] | None = self.program.wsgi()
        if found is None:
            raise ConfigError(f"{type(self.program).__qualname__}.load() returned None; expected the application.")
        return found

    def __getattr__(self, name: str) -> Any:
        if name == "program":
            raise AttributeError(name)
        return getattr(self.program, name)


def run(program: Program, server: Server | None = None) -> int:
    """Serves what the program loads. Returns the exit status, and in a forked worker that of the worker."""
    from tricorn import arbiter
    from tricorn.arbiter.loop import handlers_of_signals, restore_signals

    sources = _ProgramSources(
        argv=tuple(sys.argv[1:]), environ=dict(os.environ), cwd=program.cfg.directory, owner=program
    )
    before = handlers_of_signals()
    try:
        return arbiter.run(sources, with_assigned(program.cfg.loaded()), partial(_ProgramApplication, program), server)
    except TricornError as error:
        restore_signals(before)  # the program may go on without a server
        return error.report()
