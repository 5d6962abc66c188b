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

    on_starting = _hook("server", "Before the server listens: the first hook, in the arbiter.")

    on_reload = _hook(
        "server",
        "In the arbiter on HUP, when the new configuration is in force and no new worker is started.",
    )

    when_ready = _hook("server", "When the server listens, before the first worker is started.")

    pre_fork = _hook(
        "server, worker",
        "In the arbiter, before each fork of a worker.",
        "An exception ends the start or the reload; once workers have served, the worker is forked all the same. The "
        "worker's number is worker.slot.",
    )

    post_fork = _hook(
        "server, worker",
        "In a new worker, as the first thing after its fork.",
        "Before it changes its user and before it loads the application.",
    )

    post_worker_init = _hook(
        "worker",
        "In a worker, when it has loaded the application.",
    )

    worker_int = _hook("worker", "In a worker that got SIGINT or SIGQUIT, before it stops.")

    worker_abort = _hook(
        "worker",
        "In a worker that got SIGABRT.",
        "The arbiter sends it to a worker that `timeout` is over for.",
    )

    pre_exec = _hook(
        "server",
        "In the child that becomes the next server (USR2), before it executes the program.",
    )

    pre_request = _hook(
        "worker, req",
        "In the worker, before a request is handed to the application.",
        default=_log_request,
        shown="logs method and path at debug level",
    )

    post_request = _hook(
        "worker, req, environ, resp",
        "In the worker, after a request was answered.",
        "A function of the first three or two is taken as well.",
        fewest=2,
    )

    child_exit = _hook("server, worker", "In the arbiter, when a worker has ended.")

    worker_exit = _hook("server, worker", "In a worker, as the last thing before it ends.")

    nworkers_changed = _hook(
        "server, new_value, old_value",
        "In the arbiter, when another number of workers is wanted.",
        "The first time `old_value` is None.",
    )

    on_exit = _hook("server", "In the arbiter, as the last thing before it ends.")
