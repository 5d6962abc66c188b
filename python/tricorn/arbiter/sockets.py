"""Addresses and the sockets that listen on them.

HOST  HOST:PORT  [V6]:PORT  tcp://HOST:PORT  unix:PATH  unix://PATH  unix:@NAME (abstract)  fd://N
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import sys
import time
from array import array
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from tricorn.errors import BindError, ConfigError

DEFAULT_PORT = 8000
BIND_ATTEMPTS = 5
FIRST_SYSTEMD_FD = 3


@dataclass(frozen=True, slots=True)
class TcpAddress:
    host: str
    port: int

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    def __str__(self) -> str:
        return str((self.host, self.port))


@dataclass(frozen=True, slots=True)
class UnixAddress:
    path: str
    """A leading NUL makes it abstract: a name in the network namespace and no file."""

    @property
    def abstract(self) -> bool:
        return self.path.startswith("\0")

    def __str__(self) -> str:
        return "unix:" + self.path.replace("\0", "@", 1)


@dataclass(frozen=True, slots=True)
class FdAddress:
    fd: int

    def __str__(self) -> str:
        return f"fd://{self.fd}"


Address = TcpAddress | UnixAddress | FdAddress


@dataclass(slots=True)
class Listener:
    socket: socket.socket
    file: tuple[str, int, int] | None = None
    """Path, device and inode of the unix socket that we made and will remove."""

    def __str__(self) -> str:
        name = self.socket.getsockname()
        match self.socket.family:
            case socket.AF_INET:
                return f"http://{name[0]}:{name[1]}"
            case socket.AF_INET6:
                return f"http://[{name[0]}]:{name[1]}"
            case _:
                text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
                return "unix:" + text.replace("\0", "@", 1)

    def close(self) -> None:
        """Lets no new connection begin, then closes: those that have begun are left to the workers."""
        if self.socket.fileno() >= 0:
            self._refuse_newcomers()
            self.socket.close()

    def _refuse_newcomers(self) -> None:
        """A connection made while the last listener closes is reset, and its request lost. So none may be made.

        A unix socket goes by its name. On TCP a filter drops packets that open a connection, and only those: a
        handshake under way ends well, and who comes now finds the port closed when the packet is sent again.
        """
        if self.socket.family == socket.AF_UNIX:
            self.remove_file()
        elif sys.platform == "linux":
            program = array("B", b"".join(_NO_NEW_CONNECTIONS))
            address, _ = program.buffer_info()
            with suppress(OSError):  # without it a few newcomers may be reset
                self.socket.setsockopt(
                    socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_NO_NEW_CONNECTIONS), address)
                )

    def remove_file(self) -> None:
        """Unlinks the unix socket unless another server has put its own in the place."""
        if self.file is None:
            return
        path, device, inode = self.file
        try:
            found = os.stat(path)
            if (found.st_dev, found.st_ino) == (device, inode):
                os.unlink(path)
        except OSError:
            pass  # nobody can be helped by this on the way out


_SO_ATTACH_FILTER = 26


def _bpf(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


# Classic BPF over a TCP segment (linux/filter.h): drop if SYN is set and ACK is not.
_NO_NEW_CONNECTIONS = (
    _bpf(0x30, 13),  # load the byte with the flags
    _bpf(0x54, 0x12),  # keep SYN and ACK
    _bpf(0x15, 0x02, 0, 1),  # SYN alone?
    _bpf(0x06, 0),  # drop
    _bpf(0x06, 0xFFFFFFFF),  # pass
)


class Log(Protocol):
    def error(self, message: str, /) -> object: ...
    def warning(self, message: str, /) -> object: ...
    def debug(self, message: str, /) -> object: ...


def parse_address(text: str) -> Address:
    """Reads an address; ConfigError says what is wrong with it."""
    scheme, rest = _split_scheme(text.strip())
    if scheme == "unix":
        return UnixAddress(_unix_path(rest, text))
    if scheme == "fd":
        if not rest.isdigit():
            raise ConfigError(f"Invalid address {text!r}: expected fd://N with the number of a descriptor.")
        return FdAddress(int(rest))
    if rest.startswith("["):
        host, bracket, port = rest[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise ConfigError(f"Invalid address {text!r}: expected [V6ADDRESS]:PORT.")
        return TcpAddress(host, _port(port[1:], text))
    if rest.count(":") > 1:
        raise ConfigError(f"Invalid address {text!r}: put a v6 address in brackets, as in [::1]:8000.")
    host, _, port = rest.partition(":")
    return TcpAddress(host or "0.0.0.0", _port(port, text))


def listen(addresses: Iterable[str], *, backlog: int, umask: int, log: Log) -> list[Listener]:
    """Listens on all addresses, or raises and leaves nothing behind."""
    parsed = _inherited(log) or [parse_address(text) for text in addresses]
    listeners: list[Listener] = []
    try:
        for address in parsed:
            listeners.append(_listen_patiently(address, backlog, umask, log))
    except BaseException:
        for listener in listeners:
            listener.close()
            listener.remove_file()
        raise
    return listeners


def _split_scheme(text: str) -> tuple[str, str]:
    scheme, found, rest = text.partition("://")
    if found:
        if scheme not in ("tcp", "unix", "fd"):
            raise ConfigError(f"Invalid address {text!r}: expected tcp://, unix:// or fd://, got {scheme}://.")
        return scheme, rest
    if text.startswith("unix:"):
        return "unix", text[len("unix:") :]
    return "tcp", text


def _unix_path(path: str, text: str) -> str:
    if path.startswith("@"):
        path = "\0" + path[1:]
    if not path.strip("\0"):
        raise ConfigError(f"Invalid address {text!r}: expected a path, as in unix:/run/tricorn.sock.")
    return path


def _port(text: str, address: str) -> int:
    if not text:
        return DEFAULT_PORT
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise ConfigError(f"Invalid address {address!r}: {text!r} is not a valid port number.")
    return int(text)


def _inherited(log: Log) -> list[Address]:
    """Sockets that systemd passes (sd_listen_fds(3)). The variables are for this process and no child."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = os.environ.get("LISTEN_FDS", "")
    for variable in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(variable, None)
    if not count.isdigit() or int(count) == 0:
        return []
    log.debug("Sockets come from systemd; `bind` is not used.")
    return [FdAddress(FIRST_SYSTEMD_FD + number) for number in range(int(count))]


def _listen_patiently(address: Address, backlog: int, umask: int, log: Log) -> Listener:
    """A restart may find the port still held by its predecessor: like gunicorn, tries for five seconds."""
    for attempt in range(1, BIND_ATTEMPTS + 1):
        try:
            return _listen(address, backlog, umask)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                log.error(f"Connection in use: {address}")
            elif error.errno == errno.EADDRNOTAVAIL:
                log.error(f"Invalid address: {address}")
            log.error(f"connection to {address} failed: {error}")
            if error.errno != errno.EADDRINUSE or attempt == BIND_ATTEMPTS:
                break
        log.debug("Retrying in 1 second.")
        time.sleep(1)
    log.error(f"Can't connect to {address}")
    raise BindError(f"Can't connect to {address}")


def _listen(address: Address, backlog: int, umask: int) -> Listener:
    match address:
        case FdAddress(fd):
            listener = Listener(socket.socket(fileno=fd))
        case UnixAddress():
            listener = _bind_unix(address, umask)
        case TcpAddress():
            listener = _bind_tcp(address)
    sock = listener.socket
    if sock.family != socket.AF_UNIX:
        # Accepted sockets inherit it: a response is written whole, and waiting for more only delays it.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            # HTTP clients speak first. The kernel keeps a connection until there is something to read: a
            # worker is woken for a request and not for a handshake, and it is one that is idle by then.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
    sock.setblocking(False)
    sock.set_inheritable(True)  # in the arbiter, for an upgrade; workers take it back
    sock.listen(backlog)
    return listener


def _bind_tcp(address: TcpAddress) -> Listener:
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address.host, address.port))
    except BaseException:
        sock.close()
        raise
    return Listener(sock)


def _bind_unix(address: UnixAddress, umask: int) -> Listener:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if address.abstract:
            sock.bind(address.path)
            return Listener(sock)
        _remove_stale(address.path)
        previous = os.umask(umask)
        try:
            sock.bind(address.path)
        finally:
            os.umask(previous)
        found = os.stat(address.path)
    except BaseException:
        sock.close()
        raise
    # Absolute, since the directory may change before the end.
    return Listener(sock, (os.path.abspath(address.path), found.st_dev, found.st_ino))


def _remove_stale(path: str) -> None:
    """Removes a socket that nobody listens on any more: a kill -9 leaves it, and bind would fail for ever."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise BindError(f"{path!r} exists and is not a socket.")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except OSError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
