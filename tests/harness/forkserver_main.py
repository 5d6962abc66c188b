"""The program of the forkserver: `python forkserver_main.py DESCRIPTOR ALIAS`; see `forkserver.py`.

What it imports the servers have imported, too: only what an arbiter has anyway.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import runpy
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from select import POLLIN, poll
from socket import recv_fds, socket
from types import ModuleType
from typing import Any, NoReturn

LARGEST = 1 << 17
"""Bytes of an order: arguments and an environment."""
UNKNOWN = 255 << 8
"""The wait status that is told of a process which is no child, or was asked for before."""


def import_as_arbiter(alias: str) -> None:
    """What the arbiter has imported by the time at which it forks its first worker; the order is its own."""
    for name in ("tricorn.cli", "tricorn.arbiter.start", "tricorn.workers.native", "resource"):
        import_module(name)
    from tricorn.config import command_line
    from tricorn.config.resolve import resolve
    from tricorn.workers import registry, title

    # argparse imports gettext's catalogue of words when a parser is made.
    config = resolve([command_line.read_arguments(["--worker-class", alias])])
    registry.choose(alias, 1)  # importlib.metadata reads the versions of packages
    registry.load(alias).import_shared(config)
    title.prepare()


def serve(listener: socket) -> None:
    """Forks a server for each order. Returns when the last client has closed its connection, and never in a server."""
    clients: dict[int, socket] = {}
    ready = poll()
    ready.register(listener, POLLIN)
    while True:
        for descriptor, _ in ready.poll():
            if descriptor == listener.fileno():
                client, _ = listener.accept()
                clients[client.fileno()] = client
                ready.register(client, POLLIN)
            elif not obey(clients[descriptor], [listener, *clients.values()]):
                ready.unregister(descriptor)
                clients.pop(descriptor).close()
                if not clients and not ready.poll(0):
                    return


def obey(client: socket, sockets: Sequence[socket]) -> bool:
    """Carries out an order; False when there are no more. A server that is forked has none of the `sockets`.

    A client may be gone before its answer, or without reading one: that is the end of its orders, and of no other's.
    """
    try:
        message, descriptors, *_ = recv_fds(client, LARGEST, 2)
    except OSError:
        return False
    if not message:
        return False
    order = json.loads(message)
    if "ended" in order:
        return answer(client, status_of(order["ended"]))
    pid = os.fork()
    if pid == 0:
        for each in sockets:
            each.close()
        become(order, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return answer(client, pid)


def status_of(pid: int) -> int:
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return UNKNOWN


def answer(client: socket, number: int) -> bool:
    """Whether the client is still there."""
    try:
        client.send(str(number).encode())
    except OSError:
        return False
    return True


def become(order: dict[str, Any], outputs: Sequence[int]) -> None:
    """What `python -m tricorn` or `python -c` finds, with more modules. Leaves with SystemExit, as they do."""
    os.setsid()
    for target, descriptor in enumerate(outputs, 1):
        os.dup2(descriptor, target)
    os.closerange(3, 256)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environ"])
    time.tzset()
    if order["code"] is None:
        run_tricorn(order["argv"], order["cwd"])
    else:
        run_code(order["code"], order["argv"])


def run_code(code: str, arguments: list[str]) -> NoReturn:
    sys.argv = ["-c", *arguments]
    sys.path[0] = ""
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(code, vars(main))
    sys.exit()


def run_tricorn(argv: list[str], cwd: str) -> None:
    sys.orig_argv = [sys.executable, "-m", "tricorn", *argv]
    sys.argv = ["-m", *argv]
    sys.path[0] = cwd
    arbiter = os.getpid()
    try:
        runpy.run_module("tricorn", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if os.getpid() != arbiter or not isinstance(end.code, int):
            raise
        from tricorn.workers.ending import Limits, end_process

        # An interpreter's end frees, and so copies, all it was forked with. Workers and fresh servers have theirs.
        end_process(end.code, Limits(logging, exit_handlers=60.0), abandons=True)


def main() -> None:
    import_as_arbiter(sys.argv[2])
    gc.collect()
    gc.freeze()  # else each server's first collection writes to, and so copies, all memory that it was forked with
    with socket(fileno=int(sys.argv[1])) as listener:
        serve(listener)


if __name__ == "__main__":
    main()
