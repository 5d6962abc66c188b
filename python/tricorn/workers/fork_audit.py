"""Names what a process must not have when workers are forked of it, and the cure.

A fork has one thread, and shares the open files of its parent. So workers would lack threads that the application has
started, all of them would read from the same connection, and an event loop or a GPU would be used by many processes
that know nothing of one another.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tricorn.errors import BootError
from tricorn.unpatched import _thread, os, socket

if TYPE_CHECKING:
    from threading import Thread

LIVES_ON = ("ddtrace.", "opentelemetry.sdk.", "sentry_sdk.")
"""Modules whose threads may be there: they notice a fork, and start them anew (os.register_at_fork, os.getpid)."""

NATIVE = {
    "polars-": "polars",
    "rayon": "rayon",
    "tokio-runtime": "tokio",
    "grpc": "gRPC",
    "cuda": "CUDA",
}
"""Beginnings of the names of native threads that do not survive a fork; others, as those of OpenBLAS, do."""

GPUS = ("/dev/nvidia", "/dev/kfd", "/dev/dri/render")

THREADS = "Start threads in the hook post_worker_init: they do not survive a fork."
LOOPS = "Create event loops when the application is called, or close them."
CONNECTIONS = (
    "Close connections when the application is loaded (SQLAlchemy: engine.dispose(), Django: connections.close_all()), "
    "or open them in the hook post_worker_init."
)
LISTENING = "Listen in the hook post_worker_init, or in a process of its own."
GPU = "Use the GPU in the hook post_worker_init or later: its contexts do not survive a fork."

Finding = tuple[str, str]
"""Its name, and the cure."""


class Audit:
    """Compares with what the process had before the application was loaded."""

    def __init__(self) -> None:
        self._before = set(open_files().items())
        self._libraries = set(native_threads())

    def check(self) -> None:
        """Raises BootError if something would not survive a fork."""
        found = list(self.findings())
        if not found:
            return
        cures = dict.fromkeys(cure for _, cure in found)
        names = ", ".join(name for name, _ in found)
        sentence = f"The mold (preload_app = mold) cannot be forked: it has {names}."
        raise BootError(" ".join((sentence, *cures)))

    def findings(self) -> Iterator[Finding]:
        is_green = threading_is_patched()
        if not is_green:
            for thread in python_threads():
                yield f"the thread {thread}", THREADS
        for library in native_threads():
            if library not in self._libraries:
                yield f"threads of {library}", THREADS
        loops = list(event_loops())
        for loop in loops:
            yield f"the event loop {loop}", LOOPS
        new = dict(set(open_files().items()) - self._before)
        if "anon_inode:[eventpoll]" in new.values() and not loops and not is_green:  # a hub of greenlets has one
            yield "an open epoll(7), as of an event loop", LOOPS
        for descriptor, target in sorted(new.items()):
            if target.startswith("socket:"):
                yield from _of_socket(descriptor)
        for device in dict.fromkeys(target for target in new.values() if target.startswith(GPUS)):
            yield f"the GPU open ({device})", GPU


def open_files() -> Mapping[int, str]:
    """Files behind the descriptors of this process. Empty where there is no /proc."""
    found = {}
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return found


def threading_is_patched() -> bool:
    """Whether threads are greenlets, which a fork does not end."""
    own: Any = threading
    start = getattr(own, "_start_joinable_thread", None) or own._start_new_thread
    return start not in (getattr(_thread, "start_joinable_thread", None), _thread.start_new_thread)


def python_threads() -> Iterator[str]:
    """Names the threads that forks would lack."""
    main = threading.main_thread()
    for thread in threading.enumerate():
        where = _what_runs(thread)
        if thread is not main and not where.startswith(LIVES_ON):
            yield f"{thread.name!r} ({where})"


def _what_runs(thread: Thread) -> str:
    target = getattr(thread, "_target", None) or type(thread)
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', type(target).__qualname__)}"


def native_threads() -> Iterable[str]:
    """Names the libraries whose threads forks would lack."""
    found: dict[str, None] = {}
    with suppress(OSError):
        for number in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{number}/comm") as file:
                name = file.read().strip()
                found.update({library: None for prefix, library in NATIVE.items() if name.startswith(prefix)})
    return found


def event_loops() -> Iterator[str]:
    events: Any = sys.modules.get("asyncio.events")
    if events is None:
        return
    for each in gc.get_objects():
        if issubclass(type(each), events.AbstractEventLoop) and _is_open(each):
            yield f"{type(each).__module__}.{type(each).__qualname__}"


def _is_open(loop: Any) -> bool:
    try:
        return not loop.is_closed()
    except Exception:  # a class of the application's, or one that is not complete
        return False


def _of_socket(descriptor: int) -> Iterator[Finding]:
    """Connections and listeners; datagrams of many processes do not mix, and a pair without a name is no connection."""
    try:
        sock = socket.socket(fileno=os.dup(descriptor))
    except OSError:
        return
    with sock:
        if sock.type == socket.SOCK_DGRAM:
            return
        with suppress(OSError):
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield f"a socket that listens at {_shown(sock.getsockname())}", LISTENING
                return
        with suppress(OSError):
            if peer := sock.getpeername():
                yield f"a connection to {_shown(peer)}", CONNECTIONS


def _shown(address: Any) -> str:
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return os.fsdecode(address)
