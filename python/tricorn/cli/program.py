"""`tricorn.run`: the server in a program of one's own."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any


def run(app: Callable[..., Any] | str, *, read_environment: bool = True, **settings: Any) -> int:
    """Serves `app`, a callable or `"module:attribute"`, until the server is told to stop. Returns the exit status.

    Settings have their names of docs/settings.md; flags of uvicorn, hypercorn and granian are understood as well
    (`host`, `port`, `log_level`). Of the environment the variables of settings and `TRICORN_CMD_ARGS` are read, and are
    stronger; the command line is the program's own, and a configuration file is read if `config` names it.

    To be called in the main thread. In worker processes it does not return: they end there, with SystemExit.
    """
    import tricorn.unpatched  # noqa: F401  (first of all: a configuration file may patch)
    from tricorn.arbiter.loop import SIGNALS
    from tricorn.cli import serve
    from tricorn.config import program
    from tricorn.config.load import Sources, working_directory

    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("tricorn.run() is to be called in the main thread: it handles signals")
    name = app if isinstance(app, str) else _name_of(app)
    sources = Sources(
        argv=(),
        environ=dict(os.environ),
        cwd=working_directory(),
        program=program.read({"wsgi_app": name, **settings}),
        application=None if isinstance(app, str) else app,
        reads_environment=read_environment,
    )
    before, me = {number: signal.getsignal(number) for number in SIGNALS}, os.getpid()
    status = serve(sources)
    if os.getpid() != me:
        sys.exit(status)
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        if handler is not None:  # one that was not installed by Python
            signal.signal(number, handler)
    return status


def _name_of(app: Any) -> str:
    """How the log and the titles of processes name an object."""
    named = app if hasattr(app, "__qualname__") else type(app)
    return f"{named.__module__}:{named.__qualname__}"
