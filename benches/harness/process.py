"""Servers of this checkout: `tricorn_bench.bench` starts and stops them, here are their cores and paths."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tricorn_bench.bench import process
from tricorn_bench.bench.errors import DidNotServe
from tricorn_bench.bench.process import free_port, pinned, raise_descriptors

__all__ = ["BENCH_PYTHON", "LOAD_CORE", "ROOT", "SERVER_CORE", "DidNotServe", "Server", "free_port", "pinned"]

ROOT = Path(__file__).resolve().parent.parent.parent
SERVER_CORE = 0
LOAD_CORE = min(1, (os.cpu_count() or 1) - 1)
BENCH_PYTHON = ROOT / ".venvs" / "bench" / "bin" / "python"
"""Of the servers that are compared."""


def ending_with_this() -> None:
    """For `preexec_fn`: the kernel tells the child when this process has ended, however it ended (prctl(2))."""
    pinned(*os.sched_getaffinity(0))


def become_generator() -> None:
    """This process makes the load: on its core, with as many connections as the system lets it have."""
    os.sched_setaffinity(0, {LOAD_CORE})
    raise_descriptors()


def before_other_work() -> None:
    """This process and all its children run before anything else on the machine: a shared one is then nearly quiet."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        sys.exit("only root may run before other work")


def python_path(tree: Path = ROOT / "python") -> list[str]:
    """What `PYTHONPATH` begins with, so that the distributions of a checkout are imported from it."""
    return [str(path) for path in (ROOT, tree, *sorted((tree.parent / "packages").glob("tricorn-*")))]


class Server(process.Server):
    """One that has this checkout on its path."""

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        environment: Mapping[str, str] | None = None,
        cores: Iterable[int] = (SERVER_CORE,),
        *,
        secure: bool = False,
    ) -> None:
        path = {"PYTHONPATH": os.pathsep.join(python_path())}
        super().__init__(command, port, {**path, **(environment or {})}, cores, ROOT, secure=secure)

    def said(self) -> str:
        return super().said().replace(f"{ROOT}/", "")
