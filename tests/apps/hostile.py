"""A worker that was taken over: what it does to its arbiter by each of the ways that lead there, by path."""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import random
import re
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

DIGITS = b"9" * 400


def pipes() -> list[int]:
    """Write ends of the arbiter's pipes: neither standard streams nor pipes of its own, each once."""
    ends: dict[int, dict[int, int]] = {os.O_RDONLY: {}, os.O_WRONLY: {}, os.O_RDWR: {}}
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        with suppress(OSError):
            status = os.fstat(number)
            if stat.S_ISFIFO(status.st_mode):
                ends[fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE][status.st_ino] = number
    log = {os.fstat(number).st_ino for number in (1, 2)}
    return [number for pipe, number in ends[os.O_WRONLY].items() if pipe not in log and pipe not in ends[os.O_RDONLY]]


LINES = {
    "/age": b"stuck timeout 1 " + DIGITS + b" GET /\n",
    "/slot": b"stuck-end " + DIGITS + b"\n",
    "/code": b"boot-failed " + DIGITS + b" because\n",
    "/stall": b'stall {"duration": ' + DIGITS + b', "line": 1e999, "delayed": -1}\n',
    "/deep": b"libraries " + b"[" * 3000 + b"\n",
    "/bytes": bytes(range(256)).replace(b"\n", b"") + b"\n",
    "/mold": b"mold\n",
    "/no-mold": b"no-mold because\n",
    "/notice": b"notice error - \x1b]0;title\x07\n",
}


def descriptors() -> Iterator[tuple[int, str]]:
    """Those beyond the standard streams, and where they lead."""
    for name in sorted(os.listdir("/proc/self/fd"), key=int):
        with suppress(OSError):
            if int(name) > 2:
                yield int(name), os.readlink(f"/proc/self/fd/{name}")


def shared_memory() -> None:
    """Rubbish in every page that it shares: its scoreboard and those of its siblings, the group's words, the ledger."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        found = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw-s .*memfd", maps.read(), re.MULTILINE)
    assert found
    for start, end in found:
        at, size = int(start, 16), int(end, 16) - int(start, 16)
        ctypes.memmove(at, random.Random(at).randbytes(size), size)


def flags() -> None:
    """What it shares blocks from now on, appends, and is full."""
    for number, leads_to in descriptors():
        with suppress(OSError):
            fcntl.fcntl(number, fcntl.F_SETFL, os.O_APPEND)
            if "eventfd" in leads_to:
                os.set_blocking(number, False)
                os.write(number, (2**64 - 2).to_bytes(8, "little"))
                os.set_blocking(number, True)


def files() -> None:
    """The files in which it tells of its threads are enormous and full of rubbish."""
    for number, leads_to in descriptors():
        if "memfd" in leads_to:
            for size in (0, 1 << 40):
                with suppress(OSError):
                    os.ftruncate(number, size)
            with suppress(OSError):
                os.pwrite(number, os.urandom(1 << 20), 0)


def channel() -> None:
    """Messages that no worker sends, with files that do not hold what is announced; then the channel is shut."""
    memory = os.memfd_create("hostile")
    os.ftruncate(memory, 1 << 33)
    for number, leads_to in list(descriptors()):
        if not leads_to.startswith("socket:"):
            continue
        with socket.socket(fileno=os.dup(number)) as sock:
            if sock.type != socket.SOCK_SEQPACKET:
                continue
            for size in (0, 1, 136, 136, 4096):
                rights = array.array("i", [memory] * 3)
                # A version and flags that are right, and lengths that are not.
                data = (b"\x02\x00\x0c" + b"\xff" * 4096)[:size]
                with suppress(OSError):
                    sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)], socket.MSG_DONTWAIT)


def shut() -> None:
    """The sockets that it shares with its siblings, but for the listeners, are shut."""
    for number, leads_to in list(descriptors()):
        if leads_to.startswith("socket:"):
            with suppress(OSError), socket.socket(fileno=os.dup(number)) as sock:
                if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and sock.family == socket.AF_UNIX:
                    sock.shutdown(socket.SHUT_RDWR)


WAYS: dict[str, Callable[[], None]] = {f"/{way.__name__}": way for way in (shared_memory, flags, files, channel, shut)}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/flood":
        numbers, full_pipe = pipes(), b"parted\n" * 9000
        for number in numbers:
            os.set_blocking(number, True)
        while True:
            for number in numbers:
                os.write(number, full_pipe)
    if path in WAYS:
        WAYS[path]()
    for number in pipes() if path in LINES else ():
        os.write(number, LINES[path])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
