"""Functions of the operator's that are called when something happens. Names and arguments are gunicorn's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tricorn.config.lookups import AnyHook, Hook, PostRequestHook
from tricorn.config.setting import Section, Setting


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
        kind=Hook(arguments.count(",") + 1),
        default=default or _does_nothing(name),
        default_shown="does nothing" if default is None else "logs method and path at debug level",
        help=text,
        doc=f"Called as `{name}({arguments})`. {doc}".strip(),
    )


class Hooks(Section):
    SECTION = "Server Hooks"

    on_starting = _hook("on_starting", "server", "Called just before the master process is initialized.")

    on_reload = _hook(
        "on_reload",
        "server",
        "Called during a reload with HUP, when the new configuration is in force and no worker is.",
    )

    when_ready = _hook("when_ready", "server", "Called just after the server is started, before a worker is.")

    pre_fork = _hook(
        "pre_fork",
        "server, worker",
        "Called just before a worker is forked.",
        "An exception ends the start or the reload; once workers have served, the worker is forked all the same. The "
        "worker's number is worker.slot.",
    )

    post_fork = _hook(
        "post_fork",
        "server, worker",
        "Called just after a worker has been forked.",
        "In the worker, before it changes its user and before it loads the application.",
    )

    post_worker_init = _hook(
        "post_worker_init",
        "worker",
        "Called just after a worker has initialized the application.",
    )

    worker_int = _hook("worker_int", "worker", "Called in a worker that received SIGINT or SIGQUIT, before it stops.")

    worker_abort = _hook(
        "worker_abort",
        "worker",
        "Called when a worker received the SIGABRT signal.",
        "This call generally happens on timeout.",
    )

    pre_exec = _hook(
        "pre_exec",
        "server",
        "Called in the child that becomes the new master process (USR2), before it executes the program.",
    )

    pre_request = _hook(
        "pre_request", "worker, req", "Called just before a worker processes the request.", default=pre_request
    )

    post_request: Setting[AnyHook] = Setting(
        kind=PostRequestHook(),
        default=_does_nothing("post_request"),
        default_shown="does nothing",
        help="Called after a worker processes the request.",
        doc="Called as `post_request(worker, req, environ, resp)`; a function of the first three or two is taken as "
        "well.",
    )

    child_exit = _hook(
        "child_exit", "server, worker", "Called just after a worker has been exited, in the master process."
    )

    worker_exit = _hook(
        "worker_exit", "server, worker", "Called just after a worker has been exited, in the worker process."
    )

    nworkers_changed = _hook(
        "nworkers_changed",
        "server, new_value, old_value",
        "Called just after the number of workers has been changed.",
        "The first time `old_value` is None.",
    )

    on_exit = _hook("on_exit", "server", "Called just before exiting the server.")
