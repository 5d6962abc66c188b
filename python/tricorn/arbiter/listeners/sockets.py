"""The sockets that listen on addresses (`config.addresses`)."""

from __future__ import annotations

import errno
import stat
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from tricorn.arbiter.listeners import port_holder
from tricorn.config import doors as grammar
from tricorn.config.addresses import Address, FdAddress, TcpAddress, UnixAddress
from tricorn.config.doors import Door, plain
from tricorn.errors import BindError
from tricorn.log.types import Log
from tricorn.unpatched import os, socket, time
from tricorn.workers import privileges

Socket = socket.socket

BIND_ATTEMPTS = 5
FIRST_SYSTEMD_FD = 3


class Listener:
    """A listening socket. Everything that is not here is the socket's: hooks call `getsockname()` and the like.

    Generations that have the same socket have a listener each if they speak something else there.
    """

    def __init__(
        self,
        socket: socket.socket,
        file: tuple[str, int, int] | None = None,
        door: Door | None = None,
        *,
        shared: bool = False,
        foreign: bool = False,
    ) -> None:
        self.socket = socket
        self.file = file
        """Path, device and inode of the unix socket that we made and will remove."""
        self.door = door
        """The configuration's door; None: it came from elsewhere, and the configuration does not name it."""
        self.shared = shared
        """The service manager, a predecessor or a successor listens on it too: it must stay as it is when we close."""
        self.foreign = foreign
        """It came by number (fd://): who passed it may listen on it when we are gone."""
        self._address: Any = None
        """Bound address, once the core has the socket or it is closed."""

    def hand_over(self) -> int:
        """The descriptor, which the caller owns from now on: no Python object closes it behind the core's back."""
        self._address = self.socket.getsockname()
        return self.socket.detach()

    def take_back(self, descriptor: int) -> None:
        """Gets the socket again, after `hand_over`."""
        self.socket = socket.socket(fileno=descriptor)
        self._address = None

    def getsockname(self) -> Any:
        """Returns the bound address, also in a worker, where hooks may ask for it."""
        return self._address if self._address is not None else self.socket.getsockname()

    def is_at(self, addresses: Iterable[Address]) -> bool:
        """Whether one of the configured addresses is this one's."""
        name = self.socket.getsockname()
        for address in addresses:
            match address:
                case TcpAddress(host, port) if name[:2] == (host, port):
                    return True
                case UnixAddress(path) if self.socket.family == socket.AF_UNIX and path == os.fsdecode(name):
                    return True
                case FdAddress(fd) if self.socket.fileno() == fd:
                    return True
        return False

    def speaking(self, door: Door) -> Listener:
        """Returns this listener with another protocol configuration."""
        if self.door == door:
            return self
        made = type(self)(self.socket, self.file, door, shared=self.shared, foreign=self.foreign)
        made._address = self._address
        return made

    @property
    def tls(self) -> bool:
        return self.door is not None and bool(self.door.tls)

    @property
    def cfg_addr(self) -> Any:  # gunicorn's name
        """The address as the configuration has it."""
        return self.getsockname() if self.door is None else self.door.address.as_gunicorn

    @property
    def FAMILY(self) -> int:  # gunicorn's name
        """Arguments with which worker classes that patch make another socket of the same descriptor."""
        return self.socket.family

    @property
    def sock(self) -> Socket:
        """gunicorn's name for it."""
        return self.socket

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "socket"), name)

    def __str__(self) -> str:
        name, scheme = self.getsockname(), (self.door and self.door.scheme) or "http"
        match self.socket.family:
            case socket.AF_INET:
                return f"{scheme}://{name[0]}:{name[1]}"
            case socket.AF_INET6:
                return f"{scheme}://[{name[0]}]:{name[1]}"
            case _:
                text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
                return ("unix:" if scheme == "http" else f"{scheme}+unix:") + text.replace("\0", "@", 1)

    def close(self) -> None:
        """Lets no new connection begin, then closes: those that have begun are left to the workers."""
        if self.socket.fileno() >= 0:
            if not (self.shared or self.foreign):
                if self.socket.family == socket.AF_UNIX:
                    self.remove_file()  # a unix socket goes by its name
                else:
                    refuse_newcomers(self.socket)
            self._address = self.socket.getsockname()  # what is told of a server that stops names it
            self.socket.close()

    def remove_file(self) -> None:
        """Unlinks the unix socket unless another server has put its own in the place."""
        if self.file is None or self.shared:
            return
        path, device, inode = self.file
        try:
            found = os.stat(path)
            if (found.st_dev, found.st_ino) == (device, inode):
                os.unlink(path)
        except OSError:
            pass  # it is gone, or may not be removed; the process ends either way


def refuse_newcomers(sock: socket.socket, *, none_listens: bool = True) -> None:
    """A connection made while the last listener closes is reset, and its request lost. So none may be made.

    On TCP the listener is bound to an interface that there is not, unless others listen at its address. No packet finds
    it then, and one that opens a connection is answered as for a closed port (RST): clients and load balancers go
    elsewhere at once. A handshake under way ends well, since it has a socket of its own in the kernel.

    Packets that find it all the same are dropped by a filter if they open a connection, and only those: one that is
    sent again, after a second, finds the port closed, or another listener. That is so where the kernel does not let us
    bind it (SO_BINDTOIFINDEX wants root before Linux 5.7, and where the socket has an interface already), and in groups
    of SO_REUSEPORT, whose members the kernel takes by turns, whatever they are bound to.
    """
    if sys.platform == "linux":
        if none_listens:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, _NOWHERE)
        program = array("B", b"".join(_NO_NEW_CONNECTIONS))
        address, _ = program.buffer_info()
        with suppress(OSError):  # without it a few newcomers may be reset
            sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_NO_NEW_CONNECTIONS), address))


_SO_ATTACH_FILTER = 26
_SO_BINDTOIFINDEX = 62
_NOWHERE = 0x7FFFFFFF
"""The index of no interface: the kernel gives them from 1 on, and does not ask whether there is one."""


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


def listen(
    addresses: Iterable[Door | str],
    *,
    backlog: int,
    umask: int,
    log: Log,
    owner: tuple[int, int] | None = None,
    attempts: int = BIND_ATTEMPTS,
    open_one: Callable[[Address, int, int], Listener] | None = None,
) -> list[Listener]:
    """Listens on all addresses, or raises and leaves nothing behind.

    `owner`: user and group that unix sockets are given to. As in gunicorn, descriptors (fd://) stand alone. `open_one`
    makes the listener of an address, a backlog and a umask; `listen_on`, if it is not given.
    """
    open_one = open_one or listen_on
    doors = [grammar.parse(each) if isinstance(each, str) else each for each in addresses]
    given = [door for door in doors if isinstance(door.address, FdAddress)]
    listeners: list[Listener] = []
    try:
        for door in given or doors:
            listener = _open_patiently(door.address, partial(open_one, door.address, backlog, umask), attempts, log)
            listener.door = door
            listeners.append(listener)
            if listener.file is not None and owner not in (None, (os.geteuid(), os.getegid())):
                privileges.chown(listener.file[0], *owner)
    except BaseException:
        for listener in listeners:
            listener.close()
            listener.remove_file()
        raise
    return listeners


def inherit(fds: Iterable[int]) -> list[Listener]:
    """Listeners that are open already: from the service manager, or from the server this one replaces."""
    listeners = []
    for fd in fds:
        try:
            listener = listen_on(FdAddress(fd), socket.SOMAXCONN, 0)
        except OSError as error:
            raise BindError(f"The inherited descriptor {fd} is not a listening socket: {error.strerror}.") from None
        listener.shared = True
        listener.file = _file_of(listener.socket)
        listeners.append(listener)
    return listeners


def with_doors(
    listeners: Sequence[Listener], doors: Sequence[Door], *, tls: bool, protocol: str = ""
) -> list[Listener]:
    """Inherited listeners with what the configuration says of their addresses; `tls`, `protocol`: of those that it does
    not name.

    A socket does not tell what its address was called (localhost, port 0): where as many sockets as doors are left
    over, they belong together in their order.
    """
    named = {id(each): door for door in doors for each in listeners if each.is_at([door.address])}
    others = [each for each in listeners if id(each) not in named]
    left = [door for door in doors if door not in named.values()]
    if len(others) == len(left):
        named |= {id(each): door for each, door in zip(others, left, strict=True)}
    unnamed = partial(plain, tls=tls, protocol=protocol)
    return [each.speaking(named.get(id(each)) or unnamed(_address_of(each))) for each in listeners]


def _address_of(listener: Listener) -> Address:
    name = listener.getsockname()
    if listener.socket.family == socket.AF_UNIX:
        return UnixAddress(os.fsdecode(name))
    return TcpAddress(name[0], name[1])


def beyond(listeners: Iterable[Listener], kept: Iterable[Listener]) -> list[Listener]:
    """Lists the listeners whose sockets none of `kept` has."""
    sockets = {each.socket for each in kept}
    return [each for each in listeners if each.socket not in sockets]


def _file_of(sock: socket.socket) -> tuple[str, int, int] | None:
    """Identifies the file of a unix socket, which the last server that listens on it removes."""
    path = sock.getsockname() if sock.family == socket.AF_UNIX else ""
    if not isinstance(path, str) or not os.path.isabs(path):
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return path, found.st_dev, found.st_ino


def passed_by_systemd(log: Log) -> list[int]:
    """Descriptors of sockets that systemd passes (sd_listen_fds(3)). The variables are for us and no child."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = os.environ.get("LISTEN_FDS", "")
    for variable in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(variable, None)
    if not count.isdigit() or int(count) == 0:
        return []
    log.debug("Using sockets from systemd; ignoring `bind`.")
    return [FIRST_SYSTEMD_FD + number for number in range(int(count))]


def _open_patiently(address: Address, open_one: Callable[[], Listener], attempts: int, log: Log) -> Listener:
    """A restart may find the port still held by its predecessor: like gunicorn, tries for five seconds."""
    attempt = 1
    while True:
        try:
            return open_one()
        except OSError as error:
            refused = _refused(address, error)
            if not isinstance(refused, InUse) or attempt >= attempts:
                raise refused from None
            if attempt == 1:
                listener = refused.holder or "another process"
                log.warning(f"Waiting for {address}, held by {listener}; retrying for {attempts - 1} seconds.")
        time.sleep(1)
        attempt += 1


class InUse(BindError):
    """Another process listens there."""

    holder: port_holder.Holder | None = None

    @property
    def by(self) -> str:
        return f", by {self.holder}" if self.holder else ""

    def by_a_server(self, title_prefix: str) -> bool:
        """Whether a server with such titles listens there: it is reloaded, and needs no address of its own."""
        return self.holder is not None and self.holder.title.startswith(f"{title_prefix}: master")


def _refused(address: Address, error: OSError) -> BindError:
    """Says what was tried, why it did not work, and what to do."""
    if error.errno != errno.EADDRINUSE:
        remedy = REMEDIES.get((error.errno or 0, type(address)), "")
        return BindError(f"Cannot listen on {address}: {_lowered(error.strerror or str(error))}.{remedy}")
    holder = port_holder.find(address.port) if isinstance(address, TcpAddress) else None
    remedy = f"Stop that process (kill {holder.pid})" if holder else "Stop the process that listens there"
    by = f" by {holder}" if holder else ""
    refused = InUse(
        f"Cannot listen on {address}: address already in use{by}. {remedy}, or bind another address (--bind)."
    )
    refused.holder = holder
    return refused


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


REMEDIES: dict[tuple[int, type[Address]], str] = {
    (
        errno.EACCES,
        TcpAddress,
    ): " Ports below 1024 need root or CAP_NET_BIND_SERVICE; or bind another address (--bind).",
    (errno.EACCES, UnixAddress): " The user of the server must be able to write to the directory of the socket.",
    (errno.EADDRNOTAVAIL, TcpAddress): " This machine has no such address: bind 0.0.0.0 for all that it has (--bind).",
    (errno.ENOENT, UnixAddress): " The directory of the socket does not exist.",
}


def check(text: str) -> None:
    """Raises what `listen` would, as far as it can be known without listening; leaves nothing behind."""
    address = grammar.parse(text).address
    try:
        match address:
            case TcpAddress():
                bind_tcp(family(address), (address.host, address.port)).close()
            case UnixAddress() if not address.abstract:
                _check_unix(address.path)
    except OSError as error:
        raise _refused(address, error) from None


def _check_unix(path: str) -> None:
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if not os.access(directory, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    _check_free(path)


def _check_free(path: str) -> bool:
    """Whether a socket is there that has no listener any more."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise BindError(f"{path!r} exists and is not a socket.")
    except FileNotFoundError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except OSError:
            return True
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def listen_on(address: Address, backlog: int, umask: int) -> Listener:
    """A socket that listens on one address. OSError when that is not possible now, BindError when it never is."""
    match address:
        case FdAddress(fd):
            listener = Listener(socket.socket(fileno=fd), foreign=True)
        case UnixAddress():
            listener = _bind_unix(address, umask)
        case TcpAddress():
            listener = Listener(bind_tcp(family(address), (address.host, address.port)))
    start_listening(listener.socket, backlog)
    return listener


def family(address: TcpAddress) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address.host else socket.AF_INET


def start_listening(sock: socket.socket, backlog: int) -> None:
    """Makes a bound socket a listening one, with the options that accepted sockets inherit."""
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


def bind_tcp(family: int, name: Any, options: Iterable[int] = (socket.SO_REUSEADDR,)) -> socket.socket:
    """A socket that is bound to `name`, as getsockname() writes it, and does not listen; with `options` set."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        for option in options:
            sock.setsockopt(socket.SOL_SOCKET, option, 1)
        sock.bind(name)
    except BaseException:
        sock.close()
        raise
    return sock


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
    """Removes a socket that has no listener any more: a kill -9 leaves it, and bind would fail for ever."""
    if _check_free(path):
        os.unlink(path)
