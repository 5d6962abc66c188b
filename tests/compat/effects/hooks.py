"""Every hook is called; test_hooks.py has the rest."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.harness import Site, until


def hook(name: str) -> Callable[[Path], None]:
    """It is called; test_hooks.py has the rest."""
    arguments = {
        "pre_fork": "server, worker",
        "post_fork": "server, worker",
        "pre_request": "worker, req",
        "post_request": "worker, req, environ, resp",
        "child_exit": "server, worker",
        "worker_exit": "server, worker",
        "nworkers_changed": "server, new, old",
    }.get(name, "subject")
    causes: dict[str, Callable[[Site], object]] = {
        "on_reload": lambda server: server.signal(signal.SIGHUP),
        "worker_int": lambda server: os.kill(server.worker_pid(), signal.SIGINT),
        "worker_abort": lambda server: os.kill(server.worker_pid(), signal.SIGABRT),
        "child_exit": lambda server: os.kill(server.worker_pid(), signal.SIGKILL),
        "worker_exit": lambda server: os.kill(server.worker_pid(), signal.SIGTERM),
        "on_exit": lambda server: server.signal(signal.SIGTERM),
        "pre_exec": lambda server: server.signal(signal.SIGUSR2),
    }

    def sees(directory: Path) -> None:
        mark, pidfile = directory / "mark", directory / "pid"
        config = f"pidfile = '{pidfile}'\ndef {name}({arguments}):\n    open('{mark}', 'w').close()\n"
        with Site(config) as server:
            assert server.get("/hello").status == 200
            if name in causes:
                assert not mark.exists()
                causes[name](server)
            until(mark.exists, f"{name} is called")
            if name == "pre_exec":
                successor = Path(f"{pidfile}.2")
                until(successor.exists, "the successor")
                server.log.wait("Booting worker", count=2)
                os.kill(int(successor.read_text()), signal.SIGTERM)
                until(lambda: not successor.exists(), "the successor is gone")

    return sees
