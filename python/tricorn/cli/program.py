"""`tricorn.run`: starts the server from a program."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType, ModuleType
from typing import Any


def run(app: Callable[..., Any] | str, *, read_environment: bool = True, **settings: Any) -> int:
    """Serves `app`, a callable or `"module:attribute"`, until the server is told to stop. Returns 0.

    If it cannot start, or ends by a failure, it raises SystemExit with the exit status, so that supervisors see it.

    Settings have their names of docs/reference/settings.md; flags of uvicorn, hypercorn and granian are understood too
    (`host`, `port`, `log_level`). Of the environment the variables of settings and `TRICORN_CMD_ARGS` are read, and are
    stronger; the command line is the program's own, and a configuration file is read if `config` names it.

    To be called in the main thread. It returns after TERM, INT (Ctrl-C) and QUIT; the program's own signal handlers are
    back then. In worker processes it does not return: they end there, with SystemExit.
    """
    import tricorn.unpatched  # noqa: F401  (first of all: a configuration file may patch)
    from tricorn.cli import lacks_core, serve
    from tricorn.config import program
    from tricorn.config.load import Sources, working_directory

    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("tricorn.run() is to be called in the main thread: it handles signals")
    name = app if isinstance(app, str) else _name_of(app, sys._getframe(1))
    sources = Sources(
        argv=(),
        environ=dict(os.environ),
        cwd=working_directory(),
        program=program.read({"wsgi_app": name, **settings}),
        application=None if isinstance(app, str) else app,
        reads_environment=read_environment,
    )
    if lacks_core():
        return serve(sources)
    from tricorn.arbiter.loop import handlers_of_signals, restore_signals

    before, me = handlers_of_signals(), os.getpid()
    status = serve(sources)
    if os.getpid() != me:
        sys.exit(status)
    restore_signals(before)
    if status:
        sys.exit(status)
    return status


def _name_of(app: Any, caller: FrameType) -> str:
    """How the log and the titles of processes name an object: `module:attribute`, as the caller knows it.

    Looked through are the caller's module, the modules that it has imported, and the local variables of the caller
    (`module:main.<locals>.app`). An object without a name is called by that of its class.
    """
    module = caller.f_globals.get("__name__", "__main__")
    imported = [each for each in caller.f_globals.values() if isinstance(each, ModuleType)]
    for where, names in ((module, caller.f_globals), *((each.__name__, vars(each)) for each in imported)):
        if (name := _key_of(app, names)) is not None:
            return f"{where}:{name}"
    if (name := _key_of(app, caller.f_locals)) is not None:
        return f"{module}:{caller.f_code.co_name}.<locals>.{name}"
    from tricorn.gateway import interfaces

    return interfaces.name_of(app)


def _key_of(value: object, names: Mapping[str, object]) -> str | None:
    return next((name for name, each in tuple(names.items()) if each is value and not name.startswith("_")), None)
