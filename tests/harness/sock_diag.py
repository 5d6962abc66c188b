"""What the kernel says of one TCP socket (sock_diag(7)). Reading /proc/net/tcp, the table of all, takes it 10 ms."""

from __future__ import annotations

import errno
import socket
import struct
from typing import NamedTuple

SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST = 1
NLMSG_ERROR = 2
NETLINK_SOCK_DIAG = 4
ALL_STATES = 0xFFFFFFFF
NO_COOKIE = b"\xff" * 8
ENDED = (4, 5, 6, 7, 9, 11)
"""FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSE, LAST_ACK, CLOSING (include/net/tcp_states.h)."""
HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence, port."""
MESSAGE = struct.Struct("=BBBBHH16s16sI8sIIIII")
"""struct inet_diag_msg: family, state, timer, retrans, the id (ports, addresses, interface, cookie), five numbers."""


class Socket(NamedTuple):
    unread: int
    """Bytes that its process has not read."""
    unacknowledged: int
    """Bytes that the other end has not acknowledged."""
    is_closed: bool
    """No process has it any more; one that waits to be accepted has none yet."""


def find(own: tuple[str, int], peer: tuple[str, int]) -> Socket | None:
    """The IPv4 socket with these two ends, in this network namespace."""
    ends = struct.pack(">HH4s12x4s12x", own[1], peer[1], socket.inet_aton(own[0]), socket.inet_aton(peer[0]))
    request = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, ALL_STATES)
    request += ends + struct.pack("=I", 0) + NO_COOKIE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as asked:
        header = HEADER.pack(HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0)
        asked.send(header + request)
        answer = asked.recv(4096)
    if HEADER.unpack_from(answer)[1] == NLMSG_ERROR:
        (error,) = struct.unpack_from("=i", answer, HEADER.size)
        if -error == errno.ENOENT:
            return None
        raise OSError(-error, "the kernel does not tell of its sockets (CONFIG_INET_DIAG)")
    _family, state, *_, unread, waiting, _uid, inode = MESSAGE.unpack_from(answer, HEADER.size)
    return Socket(unread, waiting, inode == 0 and state in ENDED)
