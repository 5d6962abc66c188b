"""Every hook is called; test_hooks.py has the rest."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.compat.effects.shared import HERE, shared
from tests.harness import Site, until
from tests.harness.site import replaced

ARGUMENTS = {
    "on_starting": "server",
    "on_reload": "server",
    "when_ready": "server",
    "canary_judge": "server, old, new",
    "on_rollback": "server, reason",
    "mold_ready": "server, mold",
    "before_refork": "server, worker",
    "pre_fork": "server, worker",
    "post_fork": "server, worker",
    "post_worker_init": "worker",
    "worker_int": "worker",
    "worker_abort": "worker",
    "pre_exec": "server",
    "pre_request": "worker, req",
    "post_request": "worker, req, environ, resp",
    "child_exit": "server, worker",
    "worker_exit": "server, worker",
    "nworkers_changed": "server, new, old",
    "on_exit": "server",
}
HOOKS = list(ARGUMENTS)
REPLACING: dict[str, Callable[[Site], object]] = {
    "on_reload": lambda server: server.signal(signal.SIGHUP),
    "worker_int": lambda server: os.kill(server.worker_pid(), signal.SIGINT),
    "worker_abort": lambda server: os.kill(server.worker_pid(), signal.SIGABRT),
    "child_exit": lambda server: os.kill(server.worker_pid(), signal.SIGKILL),
    "worker_exit": lambda server: os.kill(server.worker_pid(), signal.SIGTERM),
}
"""Causes after which another worker serves."""


def marking(name: str) -> str:
    """A hook that leaves a file of its name."""
    return f"def {name}({ARGUMENTS[name]}):\n    open(f'{{here}}/{name}', 'w').close()\n"


@shared
def hooked() -> Site:
    return Site(HERE + "".join(map(marking, HOOKS)))


def hook(name: str) -> Callable[..., None]:
    """The effect of a hook: it is called."""
    if name in ENDING:
        return ENDING[name]

    def sees(hooked: Site) -> None:
        assert hooked.get("/hello").status == 200
        mark = hooked.directory / name
        if name in REPLACING:
            mark.unlink(missing_ok=True)
            replaced(hooked, lambda: REPLACING[name](hooked))
        until(mark.exists, f"{name} is called")

    return sees


def sees_on_exit(directory: Path) -> None:
    with Site(f"here = {str(directory)!r}\n{marking('on_exit')}") as server:
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert (directory / "on_exit").exists()


def sees_pre_exec(directory: Path) -> None:
    pidfile = directory / "pid"
    successor = Path(f"{pidfile}.2")
    with Site(f"pidfile = {str(pidfile)!r}\nhere = {str(directory)!r}\n{marking('pre_exec')}") as server:
        server.signal(signal.SIGUSR2)
        until((directory / "pre_exec").exists, "pre_exec is called")
        until(successor.exists, "the successor")
        server.log.wait("Booting worker", count=2)
        os.kill(int(successor.read_text()), signal.SIGTERM)
        until(lambda: not successor.exists(), "the successor is gone")


def sees_mold_ready(directory: Path) -> None:
    with Site(f"preload_app = 'mold'\nhere = {str(directory)!r}\n{marking('mold_ready')}") as server:
        assert server.get("/hello").status == 200
        assert (directory / "mold_ready").exists()


def sees_before_refork(directory: Path) -> None:
    config = f"preload_app = 'mold'\nrefork = 1\nhere = {str(directory)!r}\n{marking('before_refork')}"
    with Site(config) as server:
        until(lambda: server.get("/hello").status == 200 and (directory / "before_refork").exists(), "it is called")


def sees_canary_judge(directory: Path) -> None:
    config = f"workers = 2\ncanary = 1\ncanary_time = 3600\nhere = {str(directory)!r}\n"
    hook = f"{marking('canary_judge')}    return old.workers == 2 and new.workers == 1\n"
    with Site(config + hook, workers=2) as server:
        server.log.wait("Ready: ")
        replaced(server, lambda: server.signal(signal.SIGHUP), workers=2)
        assert server.log.matching("Canary: the hook canary_judge returned True")
        assert (directory / "canary_judge").exists()


def sees_on_rollback(directory: Path) -> None:
    judge = "def canary_judge(server, old, new):\n    return False\n"
    with Site(f"canary = 1\nhere = {str(directory)!r}\n{judge}{marking('on_rollback')}") as server:
        server.log.wait("Ready: ")
        server.signal(signal.SIGHUP)
        server.log.wait("the hook canary_judge returned False")
        until((directory / "on_rollback").exists, "on_rollback is called")


ENDING = {
    "on_exit": sees_on_exit,
    "pre_exec": sees_pre_exec,
    "mold_ready": sees_mold_ready,
    "before_refork": sees_before_refork,
    "canary_judge": sees_canary_judge,
    "on_rollback": sees_on_rollback,
}
"""Hooks at the end of a server, of its second life, or of one with a mold or canaries: it cannot be shared."""
