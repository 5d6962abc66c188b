"""The native core in this process, on a thread of its own: for what needs no arbiter and no configuration."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tricorn._core import Core, WsgiGateway
from tricorn.gateway.wsgi import FileWrapper

from tests.harness.deadline import until
from tests.harness.wire import Address, Wire

PAGE = 1 << 16
"""More than a worker's page of the scoreboard takes."""

BASE_ENVIRON: dict[str, object] = {
    "wsgi.version": (1, 0),
    "wsgi.errors": None,
    "wsgi.multithread": False,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
    "wsgi.file_wrapper": FileWrapper,
    "wsgi.input_terminated": True,
    "SERVER_SOFTWARE": "tricorn/test",
    "SCRIPT_NAME": "",
}

OPTIONS: dict[str, object] = {
    "threads": 1,
    "siblings": False,
    "worker_connections": 1000,
    "max_connections": 0,
    "keepalive": 5.0,
    "header_timeout": 10.0,
    "head_buffer_total": 64 << 20,
    "body_timeout": 30.0,
    "body_min_rate": 500,
    "write_timeout": 30.0,
    "body_buffer_size": 1 << 20,
    "body_buffer_total": 64 << 20,
    "response_buffer_size": 256 << 10,
    "response_buffer_total": 64 << 20,
    "response_disk_size": 128 << 20,
    "response_disk_total": 1 << 30,
    "limit_request_line": 4094,
    "limit_request_fields": 100,
    "limit_request_field_size": 8190,
    "permit_obsolete_folding": False,
    "strip_header_spaces": False,
    "permit_unconventional_http_method": False,
    "permit_unconventional_http_version": False,
    "casefold_http_method": False,
    "header_map": "drop",
    "forwarder_headers": ["SCRIPT_NAME", "PATH_INFO"],
    "forwarded_allow_ips": "127.0.0.1,::1",
    "secure_scheme_headers": {"X-FORWARDED-PROTOCOL": "ssl", "X-FORWARDED-PROTO": "https", "X-FORWARDED-SSL": "on"},
    "access_log": None,
    "access_log_format": "",
    "sendfile": True,
    "server": "tricorn",
    "date": True,
    "standing_fields": [],
    "pid": 0,
}


def _listener() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0), backlog=64)
    sock.setblocking(False)
    return sock


@dataclass
class Serving:
    """A core that serves."""

    core: Core
    address: Address
    page: mmap.mmap
    admin: Address | None = None
    errors: list[tuple[str, BaseException]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    workers: list[threading.Thread] = field(default_factory=list)

    def wire(self, **options: Any) -> Wire:
        return Wire(self.address, **options)

    def word(self, index: int) -> int:
        """A word of the scoreboard."""
        return int.from_bytes(self.page[index * 8 : index * 8 + 8], "little")


@contextmanager
def serving(
    application: Any, *, threads: int = 1, admin: bool = False, before: Any = None, after: Any = None, **options: Any
) -> Iterator[Serving]:
    """Serves `application` with these core options until the block is left; drains, and fails if that takes long."""
    listener = _listener()
    address: Address = listener.getsockname()
    page = mmap.mmap(-1, PAGE)
    given = OPTIONS | {"threads": threads, "pid": os.getpid()} | options
    admin_address: Address | None = None
    if admin:
        door = _listener()
        admin_address = door.getsockname()
        given["admin_listeners"] = [door.detach()]
    core = Core([listener.detach()], given, page)
    running = Serving(core, address, page, admin_address)
    gateway = WsgiGateway(
        application,
        BASE_ENVIRON | {"wsgi.multithread": threads > 1},
        lambda message, error: running.errors.append((message, error)),
        lambda _, text: running.notices.append(text),
        before,
        after,
    )
    core.start()
    running.workers = [threading.Thread(target=core.serve, args=(gateway,), daemon=True) for _ in range(threads)]
    for worker in running.workers:
        worker.start()
    try:
        yield running
    finally:
        core.stop()
        until(lambda: not any(worker.is_alive() for worker in running.workers), "the core's threads end")
        core.close()
