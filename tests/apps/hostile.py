"""A worker that was taken over: what it writes into the pipe to its arbiter, by path."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable
from typing import Any

DIGITS = b"9" * 400


def pipes() -> list[int]:
    """Those that it may write to, but for its standard streams."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            is_pipe = stat.S_ISFIFO(os.fstat(number).st_mode)
            writes = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
        except OSError:
            continue
        if number > 2 and is_pipe and writes:
            found.append(number)
    return found


LINES = {
    "/age": b"stuck timeout 1 " + DIGITS + b" GET /\n",
    "/slot": b"stuck-end " + DIGITS + b"\n",
    "/code": b"boot-failed " + DIGITS + b" because\n",
    "/stall": b'stall {"duration": ' + DIGITS + b', "line": 1e999, "delayed": -1}\n',
    "/deep": b"libraries " + b"[" * 3000 + b"\n",
    "/bytes": bytes(range(256)).replace(b"\n", b"") + b"\n",
    "/notice": b"notice error - \x1b]0;title\x07\n",
}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/flood":
        while True:
            for number in pipes():
                os.set_blocking(number, True)
                os.write(number, b"parted\n" * 500)
    for number in pipes() if path in LINES else ():
        os.write(number, LINES[path])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
