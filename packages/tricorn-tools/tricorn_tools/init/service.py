"""Service: a server's configuration, and what follows from it, as the templates use it."""

from __future__ import annotations

import math
import os
import re

from tricorn.config.addresses import FdAddress, TcpAddress, UnixAddress, parse
from tricorn.config.config import DEFAULT, Config
from tricorn.config.registry import BY_NAME
from tricorn.config.sizing import ARBITER_MEMORY, GENERATIONS, MIB
from tricorn.config.validators import Bytes
from tricorn.record import Record

LOOPBACK = re.compile(r"127\.\d+\.\d+\.\d+|::1|localhost", re.IGNORECASE)
COMMON = frozenset(("main", "app", "application", "wsgi", "asgi", "server", "run", "api"))
"""Names of modules that tell nothing of the application; then its directory names the service."""

END_OF_WORKERS = 5
"""Seconds for what follows `graceful_timeout`: two until workers are killed, and the arbiter's own end."""


class Service(Record):
    config: Config
    words: tuple[str, ...]
    """The command line behind `tricorn`."""
    variables: tuple[tuple[str, str], ...]
    """Variables of this shell that the configuration depends on."""
    directory: str
    """Working directory of the server."""
    python: str
    """The interpreter, as a path."""
    version: str
    """Python version, such as `3.13`."""

    @property
    def name(self) -> str:
        """Name of files and units: `proc_name`, or else the module, or else the directory."""
        config = self.config
        if not config.is_default("proc_name"):
            return slug(str(config.proc_name))
        first = (config.wsgi_app or "").partition(":")[0].partition(".")[0]
        if not first or first in COMMON or os.sep in first:
            first = os.path.basename(self.directory)
        return slug(first)

    def says(self, *names: str) -> str:
        """`timeout = 30 (default), workers = 4 (--workers)`: for the comment beside what follows from settings."""
        return one_line(", ".join(f"{name} = {self._shown(name)} ({self.config.origin(name)})" for name in names))

    def _shown(self, name: str) -> object:
        value = self.config.value(name)
        if name == "workers" and self.config.sizing:
            return "auto"
        if isinstance(value, tuple):
            return ",".join(map(str, value)) or "none"
        if isinstance(BY_NAME[name].kind, Bytes) and isinstance(value, int) and value >= MIB and value % MIB == 0:
            return f"{value // MIB} MiB"
        return format(value, "g") if isinstance(value, float) else value

    # Addresses

    @property
    def addresses(self) -> list[TcpAddress | UnixAddress | FdAddress]:
        return [door.address for door in self.config.doors]

    @property
    def in_the_clear(self) -> list[TcpAddress | UnixAddress | FdAddress]:
        """Addresses without TLS, at which a proxy speaks HTTP."""
        return self.speaking("")

    def speaking(self, protocol: str) -> list[TcpAddress | UnixAddress | FdAddress]:
        """Addresses without TLS, at which a front end speaks this protocol. Empty: HTTP."""
        return [door.address for door in self.config.doors if not door.tls and door.protocol == protocol]

    @property
    def tcp(self) -> list[TcpAddress]:
        return [address for address in self.addresses if isinstance(address, TcpAddress)]

    @property
    def reachable(self) -> list[TcpAddress]:
        """Addresses that are reachable from outside the network namespace."""
        return [address for address in self.tcp if not is_loopback(address)]

    @property
    def sockets(self) -> list[UnixAddress]:
        """Unix sockets that are files."""
        found = [address for address in self.addresses if isinstance(address, UnixAddress)]
        return [address for address in found if not address.abstract]

    @property
    def admin(self) -> list[TcpAddress]:
        found = [parse(text) for text in self.config.admin_bind]
        return [address for address in found if isinstance(address, TcpAddress)]

    @property
    def low_ports(self) -> list[int]:
        """Ports that need a capability."""
        return [address.port for address in (*self.tcp, *self.admin) if 0 < address.port < 1024]

    # Times and sizes

    @property
    def grace(self) -> int:
        """Seconds from TERM to the latest end of the last process."""
        return math.ceil(self.config.drain_delay + self.config.graceful_timeout) + END_OF_WORKERS

    @property
    def memory(self) -> int | None:
        """Bytes that the server takes at most, by `max_worker_memory`: two generations while it reloads.

        None: nothing limits it, or `workers = auto` goes by the limit of the place where the server will run.
        """
        each = self.config.max_worker_memory
        if not each or self.config.sizing:
            return None
        return GENERATIONS * self.config.workers * each + ARBITER_MEMORY

    @property
    def without_memory(self) -> str:
        """Settings that are missing if `memory` is None."""
        return "a number of workers and max_worker_memory" if self.config.sizing else "max_worker_memory"

    @property
    def spool(self) -> int | None:
        """Bytes of bodies on disk at most; None: there is no limit, or it depends on `workers = auto`."""
        bodies = self.config.body_disk_total
        if not bodies or (self.config.sizing and self.config.response_disk_total):
            return None
        return bodies + self.config.workers * self.config.response_disk_total

    @property
    def has_control(self) -> bool:
        return not self.config.control_socket_disable

    def writes(self) -> list[str]:
        """Directories in which the server writes files that settings name, absolute."""
        config = self.config
        base = config.chdir or self.directory
        files = [config.pidfile, config.errorlog, config.accesslog]
        if config.control_socket != "auto" and self.has_control:
            files.append(config.control_socket)
        files += [address.path for address in self.sockets]
        found = [os.path.dirname(os.path.join(base, file)) for file in files if file and file != "-"]
        if config.tmp_upload_dir:
            found.append(os.path.join(base, config.tmp_upload_dir))
        if metrics := dict(config.raw_env).get("PROMETHEUS_MULTIPROC_DIR"):
            found.append(os.path.join(base, metrics))
        return sorted({os.path.normpath(path) for path in found})

    def is_set(self, name: str) -> bool:
        return self.config.origin(name) != DEFAULT


class File(Record):
    name: str
    text: str


class Rendered(Record):
    files: tuple[File, ...]
    notes: tuple[str, ...] = ()
    """Advice beside the files, a sentence or two each."""


def is_loopback(address: TcpAddress) -> bool:
    return LOOPBACK.fullmatch(address.host) is not None


def slug(text: str) -> str:
    """Returns a valid name of units, containers and Kubernetes objects: lower case, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].strip("-") or "tricorn"


def mebibytes(count: int) -> int:
    return math.ceil(count / MIB)


def one_line(text: str) -> str:
    """Escapes line ends and control characters as Python does, for a comment."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
