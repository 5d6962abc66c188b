"""Messages with descriptors over a unix socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
from tricorn.descriptors import receive

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        yield one, other


def test_they_come_with_their_message_and_are_not_inherited(pair: Pair) -> None:
    reader, writer = os.pipe()
    socket.send_fds(pair[0], [b"two of them"], [reader, writer])
    socket.send_fds(pair[0], [b"none"], [])
    data, received = receive(pair[1], 64, 4, socket.MSG_CMSG_CLOEXEC)
    assert (data, len(received)) == (b"two of them", 2)
    assert not any(map(os.get_inheritable, received))
    os.write(received[1], b"x")
    assert os.read(reader, 1) == b"x"
    assert receive(pair[1], 64, 4, 0) == (b"none", [])
    for each in (reader, writer, *received):
        os.close(each)


@pytest.mark.timeout(20)
def test_the_flags_count_on_a_socket_that_blocks(pair: Pair) -> None:
    pair[1].setblocking(True)
    with pytest.raises(BlockingIOError):
        receive(pair[1], 64, 4, socket.MSG_DONTWAIT)
