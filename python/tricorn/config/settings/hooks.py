"""Functions of the operator's that are called when something happens. Names and arguments are gunicorn's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tricorn.config.lookups import AnyHook, Hook, PostRequestHook
from tricorn.config.setting import Setting

SECTION = "Server Hooks"


def _does_nothing(name: str) -> AnyHook:
    def hook(*_: object) -> None:
        pass

    hook.__name__ = hook.__qualname__ = name
    return hook


def pre_request(worker: Any, req: Any) -> None:
    worker.log.debug("%s %s", req.method, req.path)


def _hook(
    name: str, arguments: str, text: str, doc: str = "", default: Callable[..., Any] | None = None
) -> Setting[AnyHook]:
    return Setting(
        name=name,
        kind=Hook(arguments.count(",") + 1),
        default=default or _does_nothing(name),
        default_shown="does nothing" if default is None else "logs method and path at debug level",
        section=SECTION,
        help=text,
        doc=f"Called as `{name}({arguments})`. {doc}".strip(),
    )


ON_STARTING = _hook("on_starting", "server", "Called just before the master process is initialized.")
ON_RELOAD = _hook(
    "on_reload", "server", "Called during a reload with HUP, when the new configuration is in force and no worker is."
)
WHEN_READY = _hook("when_ready", "server", "Called just after the server is started, before a worker is.")
PRE_FORK = _hook(
    "pre_fork",
    "server, worker",
    "Called just before a worker is forked.",
    "An exception ends the start or the reload; once workers have served, the worker is forked all the same. The "
    "worker's number is worker.slot.",
)
POST_FORK = _hook(
    "post_fork",
    "server, worker",
    "Called just after a worker has been forked.",
    "In the worker, before it changes its user and before it loads the application.",
)
POST_WORKER_INIT = _hook(
    "post_worker_init",
    "worker",
    "Called just after a worker has initialized the application.",
)
WORKER_INT = _hook("worker_int", "worker", "Called in a worker that received SIGINT or SIGQUIT, before it stops.")
WORKER_ABORT = _hook(
    "worker_abort",
    "worker",
    "Called when a worker received the SIGABRT signal.",
    "This call generally happens on timeout.",
)
PRE_EXEC = _hook(
    "pre_exec",
    "server",
    "Called in the child that becomes the new master process (USR2), before it executes the program.",
)
PRE_REQUEST = _hook(
    "pre_request", "worker, req", "Called just before a worker processes the request.", default=pre_request
)
POST_REQUEST: Setting[AnyHook] = Setting(
    name="post_request",
    kind=PostRequestHook(),
    default=_does_nothing("post_request"),
    default_shown="does nothing",
    section=SECTION,
    help="Called after a worker processes the request.",
    doc="Called as `post_request(worker, req, environ, resp)`; a function of the first three or two is taken as well.",
)
CHILD_EXIT = _hook("child_exit", "server, worker", "Called just after a worker has been exited, in the master process.")
WORKER_EXIT = _hook(
    "worker_exit", "server, worker", "Called just after a worker has been exited, in the worker process."
)
NWORKERS_CHANGED = _hook(
    "nworkers_changed",
    "server, new_value, old_value",
    "Called just after the number of workers has been changed.",
    "The first time `old_value` is None.",
)
ON_EXIT = _hook("on_exit", "server", "Called just before exiting the server.")
