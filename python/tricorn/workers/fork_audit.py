"""Names what a process must not have when workers are forked of it, and the cure.

A fork has one thread, and shares the open files of its parent. So workers would lack threads that the application has
started, all of them would read from the same connection, and an event loop or a GPU would be used by many processes
that know nothing of one another.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tricorn.errors import BootError
from tricorn.record import Record
from tricorn.unpatched import _thread, os, socket, time

if TYPE_CHECKING:
    from threading import Thread


class Parent(Record):
    """The process that is to be forked, in the words of its error."""

    subject: str
    hook: str
    """Hook in which the application can close what must not be there."""
    remedy: str
    """Advice about what cannot be closed."""


MOLD = Parent(
    "The mold (preload_app = mold)",
    "mold_ready",
    "Use it in the hook post_worker_init or later.",
)
REFORK = Parent("The worker (refork)", "before_refork", "Do not set refork with it.")

LIVES_ON = ("datadog.", "ddtrace.", "elasticapm.", "opentelemetry.sdk.", "sentry_sdk.")
"""Modules whose threads may be there: they notice a fork, and start them anew (os.register_at_fork, os.getpid)."""

DATADOG = "ddtrace"
"""Its runtime has threads of tokio and connections to its agent, and pauses them while the process is forked."""

THREADS = "Stop threads in the hook {hook} and start them in post_worker_init: they do not survive a fork."
LOOPS = "Create event loops when the application is called, or close them."
CONNECTIONS = (
    "Close connections in the hook {hook} (SQLAlchemy: session.close(), engine.dispose(); Django: "
    "connections.close_all()), or open them in post_worker_init."
)
LISTENING = "Listen in the hook post_worker_init, or in a process of its own."
GPU = "The contexts of a GPU do not survive a fork. {remedy}"
ENDLESS = "A fork has none of the threads of {library}, and they cannot be stopped. {{remedy}}"
GRPC = "gRPC: close channels in the hook {hook} and create them in post_worker_init. Its threads end with the last one."
KAFKA = "Kafka: close producers and consumers in the hook {hook} and create them in post_worker_init."
VIPS = "libvips: its threads end 15 seconds after the last image, and a fork that comes before may hang. {remedy}"

NATIVE = {
    "polars-": ("polars", ENDLESS.format(library="polars")),
    "rayon": ("rayon", ENDLESS.format(library="rayon")),
    "tokio-runtime": ("tokio", ENDLESS.format(library="tokio")),
    "tokio-rt-worker": ("tokio", ENDLESS.format(library="tokio")),
    "grpc": ("gRPC", GRPC),
    "rdk:": ("librdkafka", KAFKA),
    "libvips": ("libvips", VIPS),
    "cuda": ("CUDA", GPU),
}
"""Beginnings of the names of native threads that do not survive a fork; others, as those of OpenBLAS, do."""

ONCE_ONLY = {
    "psycopg_pool.": "psycopg_pool: close the pool in the hook {hook} and create another in post_worker_init, since a "
    "closed pool cannot be opened again.",
    "pymongo.": "PyMongo: close the client in the hook {hook} and create another in post_worker_init, since a closed "
    "client cannot be used again.",
    "newrelic.": "New Relic reports nothing from a fork of a process that it has registered. {remedy}",
}
"""Modules whose threads have a cure of their own."""

GPUS = ("/dev/nvidia", "/dev/kfd", "/dev/dri/render")

PORTS = {
    80: "http",
    389: "ldap",
    443: "https",
    1433: "sql server",
    1521: "oracle",
    3306: "mysql",
    4222: "nats",
    5432: "postgresql",
    5671: "amqp",
    5672: "amqp",
    6379: "redis",
    6432: "pgbouncer",
    9042: "cassandra",
    9092: "kafka",
    9200: "elasticsearch",
    11211: "memcached",
    27017: "mongodb",
}
"""Services that usually listen there."""

PATHS = {".s.PGSQL.": "postgresql", "mysql": "mysql", "redis": "redis", "mongodb": "mongodb", "memcached": "memcached"}
"""Services whose Unix sockets usually have this in their names."""

PAUSES = (0.1, 0.2, 0.4, 0.8)
"""Seconds for threads that are about to end, as those of a gRPC channel that was closed."""

Finding = tuple[str, str]
"""Its name, and the cure, with the places `{hook}` and `{remedy}`."""


class Audit:
    """Compares with what the process had before the application was loaded.

    A process that has run the application for long has no such state: it says with `own` which descriptors are the
    server's.
    """

    def __init__(self, parent: Parent = MOLD, own: Iterable[int] | None = None) -> None:
        self._parent = parent
        files = open_files()
        self._before = set(files.items()) if own is None else {(each, files[each]) for each in own if each in files}
        self._libraries = set(native_threads()) if own is None else set()

    def check(self, close: Callable[[], object] = lambda: None) -> None:
        """Raises BootError if something would not survive a fork, and does not end soon after `close`."""
        for pause in PAUSES:
            close()
            if not list(self.findings()):
                return
            gc.collect()  # an object that nobody has may have a socket
            time.sleep(pause)
        close()
        if found := list(self.findings()):
            raise BootError(self._error(found))

    def _error(self, found: Iterable[Finding]) -> str:
        names = ", ".join(name for name, _ in found)
        cures = dict.fromkeys(cure.format(hook=self._parent.hook, remedy=self._parent.remedy) for _, cure in found)
        return " ".join((f"{self._parent.subject} cannot be forked: it has {names}.", *cures))

    def findings(self) -> Iterator[Finding]:
        """Names what would not survive."""
        is_green = threading_is_patched()
        if not is_green:
            yield from python_threads()
        libraries = {name: cure for name, cure in native_threads().items() if name not in self._libraries}
        for library, cure in libraries.items():
            yield f"threads of {library}", cure
        loops = list(event_loops())
        for loop in loops:
            yield f"the event loop {loop}", LOOPS
        yield from self._of_files(has_poller=bool(loops or libraries or is_green or DATADOG in sys.modules))
        if has_cuda_context():
            yield "a CUDA context of PyTorch", GPU

    def _of_files(self, has_poller: bool) -> Iterator[Finding]:
        """An open epoll(7) is none of its own if there is a loop, a hub of greenlets or a library that has one."""
        new = dict(set(open_files().items()) - self._before)
        if "anon_inode:[eventpoll]" in new.values() and not has_poller:
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


def python_threads() -> Iterator[Finding]:
    """Names the threads that forks would lack."""
    main = threading.main_thread()
    for thread in threading.enumerate():
        where = _what_runs(thread)
        if thread is not main and not where.startswith(LIVES_ON) and _is_running(thread):
            cure = next((cure for module, cure in ONCE_ONLY.items() if where.startswith(module)), THREADS)
            yield f"the thread {thread.name!r} ({where})", cure


def _what_runs(thread: Thread) -> str:
    target = getattr(thread, "_target", None) or type(thread)
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', type(target).__qualname__)}"


def _is_running(thread: Thread) -> bool:
    """Whether the system has it, too: before 3.13 a thread of a native library that ended stays in the list."""
    number = thread.native_id
    return number is None or os.path.exists(f"/proc/self/task/{number}") or not os.path.exists("/proc/self/task")


def native_threads() -> Mapping[str, str]:
    """Names the libraries whose threads forks would lack, with their cures."""
    found: dict[str, str] = {}
    for name in thread_names():
        found.update(library for prefix, library in NATIVE.items() if name.startswith(prefix))
    if DATADOG in sys.modules:
        found.pop("tokio", None)
    return found


def thread_names() -> Iterator[str]:
    """Names of all threads, of which the system keeps 15 bytes. Empty where there is no /proc."""
    with suppress(OSError):
        for number in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{number}/comm") as file:
                yield file.read().strip()


def has_cuda_context() -> bool:
    cuda: Any = sys.modules.get("torch.cuda")
    return cuda is not None and bool(cuda.is_initialized())


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
        if sock.type not in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
            return
        with suppress(OSError):
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield f"a socket that listens at {_shown(sock.getsockname())}", LISTENING
                return
        with suppress(OSError):
            peer = sock.getpeername()
            if peer and not _is_datadogs(peer):
                yield f"a connection to {_service(peer)}{_shown(peer)}", CONNECTIONS


def _service(address: Any) -> str:
    """Names the usual service, with a space."""
    if isinstance(address, tuple):
        name = PORTS.get(address[1])
    else:
        file = os.fsdecode(address).rpartition("/")[2]
        name = next((service for part, service in PATHS.items() if part in file), None)
    return f"{name} " if name else ""


def _is_datadogs(address: Any) -> bool:
    """Whether it is the agent of Datadog, of which its runtime takes care."""
    if DATADOG not in sys.modules:
        return False
    if not isinstance(address, tuple):
        return "datadog" in os.fsdecode(address)
    url = os.environ.get("DD_TRACE_AGENT_URL", "")
    port = url.rpartition(":")[2].rstrip("/") or os.environ.get("DD_TRACE_AGENT_PORT", "8126")
    return str(address[1]) == port


def _shown(address: Any) -> str:
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return os.fsdecode(address)
