"""Functions of the operator's that are called when something happens. Names and arguments are gunicorn's."""

from __future__ import annotations

from typing import Any

from tricorn.config.lookups import AnyHook, Hook
from tricorn.config.setting import Section, Setting


def _nothing(*_: object) -> None:
    pass


def _log_request(worker: Any, req: Any) -> None:
    worker.log.debug("%s %s", req.method, req.path)


def _hook(
    arguments: str,
    text: str,
    doc: str = "",
    default: AnyHook = _nothing,
    shown: str = "does nothing",
    fewest: int | None = None,
) -> Setting[AnyHook]:
    return Setting(flags=(), kind=Hook(arguments, fewest), default=default, default_shown=shown, help=text, doc=doc)


class Hooks(Section):
    SECTION = "Server Hooks"

    on_starting = _hook("server", "Called just before the master process is initialized.")

    on_reload = _hook(
        "server",
        "Called during a reload with HUP, when the new configuration is in force and no worker is.",
    )

    when_ready = _hook("server", "Called just after the server is started, before a worker is.")

    pre_fork = _hook(
        "server, worker",
        "Called just before a worker is forked.",
        "An exception ends the start or the reload; once workers have served, the worker is forked all the same. The "
        "worker's number is worker.slot.",
    )

    post_fork = _hook(
        "server, worker",
        "Called just after a worker has been forked.",
        "In the worker, before it changes its user and before it loads the application.",
    )

    post_worker_init = _hook(
        "worker",
        "Called just after a worker has initialized the application.",
    )

    worker_int = _hook("worker", "Called in a worker that received SIGINT or SIGQUIT, before it stops.")

    worker_abort = _hook(
        "worker",
        "Called when a worker received the SIGABRT signal.",
        "This call generally happens on timeout.",
    )

    pre_exec = _hook(
        "server",
        "Called in the child that becomes the new master process (USR2), before it executes the program.",
    )

    pre_request = _hook(
        "worker, req",
        "Called just before a worker processes the request.",
        default=_log_request,
        shown="logs method and path at debug level",
    )

    post_request = _hook(
        "worker, req, environ, resp",
        "Called after a worker processes the request.",
        "A function of the first three or two is taken as well.",
        fewest=2,
    )

    child_exit = _hook("server, worker", "Called just after a worker has been exited, in the master process.")

    worker_exit = _hook("server, worker", "Called just after a worker has been exited, in the worker process.")

    nworkers_changed = _hook(
        "server, new_value, old_value",
        "Called just after the number of workers has been changed.",
        "The first time `old_value` is None.",
    )

    on_exit = _hook("server", "Called just before exiting the server.")
