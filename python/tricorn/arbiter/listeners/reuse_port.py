"""`--reuse-port`: every worker listens with TCP sockets of its own, and the kernel spreads connections over them.

    arbiter   reserve: binds, and does not listen
    worker    open_for_worker: binds the same name again
              start_listening: when the application is loaded; a connection must not wait for that, or die with it

The arbiter listens nowhere, so no connection waits in a queue that no worker serves. Its sockets are there so that
mistakes in `bind` are found before anything is forked, port 0 is the same port in all workers, and a restart of the
only worker lets no other program take the port. All who bind it must be of one user: workers do so before they drop
their privileges.

A worker that leaves closes its listeners, with all that waits there. So it lets no new connection begin first; the
kernel gives a connection that is tried again to another worker. When the server as a whole leaves it is refused.

A unix socket or an inherited one cannot be bound twice; those are shared as without the setting.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from tricorn.arbiter.listeners import sockets
from tricorn.arbiter.listeners.sockets import Listener
from tricorn.config.addresses import Address, TcpAddress
from tricorn.errors import BindError
from tricorn.unpatched import socket


class Reserved(Listener):
    """The arbiter's: bound, not listening."""

    def close(self) -> None:
        """Gives the name up; workers that listen go on."""
        self.socket.close()  # and no filter: no packet comes here


def reserve(address: Address, backlog: int, umask: int) -> Listener:
    """Does what `sockets.listen_on` does, with a Reserved in the place of a TCP listener."""
    if not isinstance(address, TcpAddress):
        return sockets.listen_on(address, backlog, umask)
    name = (address.host, address.port)
    try:
        # Without SO_REUSEADDR, since that would share the name with everybody who sets it and does not listen yet.
        return Reserved(sockets.bind_tcp(sockets.family(address), name, (socket.SO_REUSEPORT,)))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
    # What may be in the way is only what connections of a server without the setting have left (TIME_WAIT).
    return Reserved(sockets.bind_tcp(sockets.family(address), name, _BOTH))


def open_for_worker(reserved: Iterable[Listener]) -> list[Listener]:
    """Opens a worker's own sockets for reserved addresses. Called in a worker before it drops privileges.

    Its own do not listen yet. Closes this process's copies of the Reserved ones. BindError if the name has been lost
    in spite of them.
    """
    return [_open(each) if isinstance(each, Reserved) else each for each in reserved]


def start_listening(fds: Iterable[int], backlog: int) -> None:
    """Listens with a worker's own sockets, which go by number by now, when it is about to serve."""
    for fd in fds:
        sock = socket.socket(fileno=fd)
        try:
            sockets.start_listening(sock, backlog)
            sock.set_inheritable(False)  # a program that the application starts must not hold the port
        except OSError as error:
            raise BindError(f"The worker can't listen on {Listener(sock)}: {error.strerror}.") from None
        finally:
            sock.detach()


def refuse_newcomers(fds: Iterable[int], *, none_listens: bool = False) -> None:
    """Stops new connections on a worker's own listeners, so that other workers accept them. Called at its shutdown.

    By number, since the core owns them; one that it has closed already is left alone.
    """
    for fd in fds:
        try:
            sock = socket.socket(fileno=fd)
        except OSError:
            continue
        try:
            if sock.family != socket.AF_UNIX and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                sockets.refuse_newcomers(sock, none_listens=none_listens)
        except OSError:
            pass
        finally:
            sock.detach()


def to_hand_over(listeners: Iterable[Listener]) -> list[Listener]:
    """Lists what a successor (USR2) inherits: it reserves on its own, and a reservation must not be listened on."""
    return [each for each in listeners if not isinstance(each, Reserved)]


def _open(reserved: Reserved) -> Listener:
    try:
        sock = sockets.bind_tcp(reserved.socket.family, reserved.socket.getsockname(), _BOTH)
    except OSError as error:
        raise BindError(f"The worker can't listen on {reserved}: {error.strerror}.") from None
    reserved.close()
    return Listener(sock, door=reserved.door)


_BOTH = (socket.SO_REUSEADDR, socket.SO_REUSEPORT)
