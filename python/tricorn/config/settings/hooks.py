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
    own: bool = False,
) -> Setting[AnyHook]:
    kind = Hook(arguments, fewest)
    return Setting(flags=(), kind=kind, default=default, default_shown=shown, help=text, doc=doc, own=own)


class Hooks(Section):
    SECTION = "Server Hooks"

    on_starting = _hook("server", "In the arbiter, before the server listens. The first hook.")

    on_reload = _hook(
        "server",
        "In the arbiter on HUP, after the new configuration is loaded and before new workers start.",
    )

    canary_judge = _hook(
        "server, old, new",
        "In the arbiter, once a second while canaries are compared with the old workers (`canary`).",
        "True starts the other new workers, False rolls the reload back, None leaves the verdict to the server. `old` "
        "and `new` have `workers`, `requests`, `failed`, `late`, `bytes_out`, `failing` (the share that failed) and "
        "`percentile(share)` (seconds). An exception counts as None. The arbiter does nothing else meanwhile: return "
        "at once, and let a thread ask other services.",
        own=True,
    )

    on_rollback = _hook(
        "server, reason",
        "In the arbiter, after a reload was rolled back; the old configuration is in force again.",
        "A configuration that cannot be used is refused, and nothing is rolled back then.",
        own=True,
    )

    when_ready = _hook("server", "When the server is listening, before the first worker starts.")

    mold_ready = _hook(
        "server, mold",
        "In the mold (`preload_app = mold`), when it has loaded the application and answered `warmup`, and before it "
        "is looked through.",
        "The place to close connections, and to fill caches that workers share. An exception is a failed start or "
        "reload. `mold` has `pid`, `cfg`, `log` and `app`.",
        own=True,
    )

    before_refork = _hook(
        "server, worker",
        "In a worker that has drained and is about to become the mold (`refork`), before it is looked through.",
        "The place to close what forks must not share. Idle connections of well-known libraries are closed afterwards "
        "([which ones](../guides/refork.md)). An exception keeps it from becoming the mold.",
        own=True,
    )

    pre_fork = _hook(
        "server, worker",
        "In the arbiter, before each fork of a worker.",
        "An exception stops the start or the reload; later, the worker is forked anyway. worker.slot is its number.",
    )

    post_fork = _hook(
        "server, worker",
        "In a new worker, immediately after its fork.",
        "Runs before the worker changes its user and loads the application.",
    )

    post_worker_init = _hook(
        "worker",
        "In a worker, after loading the application.",
    )

    worker_int = _hook("worker", "In a worker that received SIGINT or SIGQUIT, before it exits.")

    worker_abort = _hook(
        "worker",
        "In a worker that received SIGABRT.",
        "The arbiter sends it to workers that exceed `timeout`.",
    )

    pre_exec = _hook(
        "server",
        "In the child process that becomes the successor (USR2), before it executes the program.",
    )

    pre_request = _hook(
        "worker, req",
        "In the worker, before a request is passed to the application.",
        default=_log_request,
        shown="logs method and path at debug level",
    )

    post_request = _hook(
        "worker, req, environ, resp",
        "In the worker, after a request is completed.",
        "A function with only the first two or three arguments is accepted too.",
        fewest=2,
    )

    child_exit = _hook("server, worker", "In the arbiter, after a worker has exited.")

    worker_exit = _hook("server, worker", "In a worker, immediately before it exits.")

    nworkers_changed = _hook(
        "server, new_value, old_value",
        "In the arbiter, when the configured number of workers changes.",
        "At the first call `old_value` is None.",
    )

    on_exit = _hook("server", "In the arbiter, immediately before it exits.")
