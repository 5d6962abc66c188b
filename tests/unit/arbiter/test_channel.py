"""The channel between the workers, with real sockets: what it is made of, and what becomes of what is not taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from tricorn.arbiter.channel import Channel, SharedChannel, open_channel
from tricorn.unpatched import os, socket

MESSAGE = b"opaque" * 1000
"""What workers write there is none of the arbiter's business."""


@pytest.fixture
def channel() -> Iterator[Channel]:
    channel = open_channel()
    assert channel is not None
    yield channel
    channel.close()


def connection() -> tuple[socket.socket, socket.socket]:
    """A client's end, and a server's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname(), timeout=10)
        return client, listener.accept()[0]


def send(channel: Channel, *descriptors: int) -> None:
    """As a worker does: what is sent is then closed there."""
    socket.send_fds(channel.sender, [MESSAGE], list(descriptors))
    for each in descriptors:
        os.close(each)


def heard(client: socket.socket) -> bytes:
    """All that comes until the end."""
    with client:
        return b"".join(iter(lambda: client.recv(4096), b""))


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


class TestMaking:
    def test_nothing_of_it_blocks_or_is_inherited(self, channel: Channel) -> None:
        for descriptor in (channel.receiver.fileno(), channel.sender.fileno(), channel.bell):
            assert not os.get_blocking(descriptor)
            assert not os.get_inheritable(descriptor)

    def test_messages_keep_their_borders(self, channel: Channel) -> None:
        channel.sender.send(b"one")
        channel.sender.send(b"two")
        assert [channel.receiver.recv(100), channel.receiver.recv(100)] == [b"one", b"two"]

    def test_it_holds_more_than_by_default(self, channel: Channel) -> None:
        default = channel.receiver.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        assert channel.sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > default

    def test_the_bell_rings(self, channel: Channel) -> None:
        with pytest.raises(BlockingIOError):
            os.eventfd_read(channel.bell)
        os.eventfd_write(channel.bell, 1)
        assert os.eventfd_read(channel.bell) == 1

    def test_where_there_are_no_such_sockets_there_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(socket, "SOCK_SEQPACKET")
        assert open_channel() is None

    def test_channel_without_a_bell(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(os, "eventfd")
        assert open_channel() is None

    def test_where_the_system_refuses_there_is_none_and_nothing_stays_open(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[socket.socket] = []
        pair = socket.socketpair

        def remembered(*arguments: int) -> tuple[socket.socket, socket.socket]:
            made.extend(pair(*arguments))
            return made[0], made[1]

        def refused(*_: int) -> int:
            raise OSError("too many open files")

        monkeypatch.setattr(socket, "socketpair", remembered)
        monkeypatch.setattr(os, "eventfd", refused)
        assert open_channel() is None
        assert [end.fileno() for end in made] == [-1, -1]

    def test_the_common_page_is_shared_with_what_is_forked(self) -> None:
        group = SharedChannel(None).group
        pid = os.fork()
        if pid == 0:
            group[:4] = b"told"
            os._exit(0)
        os.waitpid(pid, 0)
        assert bytes(group[:4]) == b"told"
        assert len(group) == 4096


class TestHandingOver:
    def test_who_has_the_numbers_has_the_descriptors(self) -> None:
        channel = open_channel()
        assert channel is not None
        numbers = channel.hand_over()
        channel.close()
        assert all(map(is_open, numbers))
        for number in numbers:
            os.close(number)

    def test_what_is_not_handed_over_is_closed(self) -> None:
        channel = open_channel()
        assert channel is not None
        numbers = [channel.receiver.fileno(), channel.sender.fileno(), channel.bell]
        channel.close()
        assert not any(map(is_open, numbers))
        channel.close()


class TestTurningAway:
    def test_nothing_to_answer(self, channel: Channel) -> None:
        assert channel.turn_away() == 0

    @pytest.mark.timeout(20)
    def test_a_worker_that_has_made_it_blocking_is_not_waited_for(self, channel: Channel) -> None:
        """The flag belongs to the open file, which all processes share."""
        for end in (channel.receiver, channel.sender):
            os.set_blocking(end.fileno(), True)
        client, connection_ = connection()
        send(channel, connection_.detach())
        assert channel.turn_away() == 1
        assert heard(client).startswith(b"HTTP/1.1 503 ")

    def test_each_client_hears_that_it_may_try_again_and_the_end(self, channel: Channel) -> None:
        clients = []
        for _ in range(3):
            client, served = connection()
            send(channel, served.detach())
            clients.append(client)
        assert channel.turn_away() == 3
        for client in clients:
            head, _, body = heard(client).partition(b"\r\n\r\n")
            status, *fields = head.split(b"\r\n")
            assert status == b"HTTP/1.1 503 Service Unavailable"
            assert {b"Retry-After: 1", b"Connection: close", b"Content-Length: 0"} <= set(fields)
            assert sum(field.startswith(b"Date: ") and field.endswith(b" GMT") for field in fields) == 1
            assert body == b"", "the request may be one of HEAD"
        assert channel.turn_away() == 0

    def test_nothing_is_left_open(self, channel: Channel) -> None:
        before = os.listdir("/proc/self/fd")
        client, served = connection()
        reader, writer = os.pipe()
        send(channel, served.detach(), writer)
        assert channel.turn_away() == 1
        assert os.read(reader, 1) == b"", "what came with the connection"
        os.close(reader)
        client.close()
        assert os.listdir("/proc/self/fd") == before

    def test_what_the_client_has_sent_besides_does_not_cost_it_the_answer(self, channel: Channel) -> None:
        client, served = connection()
        client.sendall(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        send(channel, served.detach())
        assert channel.turn_away() == 1
        assert heard(client).startswith(b"HTTP/1.1 503 ")

    def test_a_unix_socket_is_answered_as_well(self, channel: Channel) -> None:
        client, served = socket.socketpair()
        send(channel, served.detach())
        assert channel.turn_away() == 1
        assert heard(client).startswith(b"HTTP/1.1 503 ")

    def test_a_client_that_has_left_is_in_nobodys_way(self, channel: Channel) -> None:
        gone, served = connection()
        send(channel, served.detach())
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        gone.close()
        client, served = connection()
        send(channel, served.detach())
        assert channel.turn_away() == 2
        assert heard(client).startswith(b"HTTP/1.1 503 ")

    def test_a_client_that_takes_nothing_is_not_waited_for(self, channel: Channel) -> None:
        client, served = socket.socketpair()
        served.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                served.send(b"x" * 65536)
        send(channel, served.detach())
        assert channel.turn_away() == 1
        client.close()

    def test_what_is_no_connection_is_closed(self, channel: Channel) -> None:
        reader, writer = os.pipe()
        send(channel, writer)
        assert channel.turn_away() == 1
        assert os.read(reader, 1) == b""
        os.close(reader)

    def test_a_message_about_no_connection_hides_none(self, channel: Channel) -> None:
        channel.sender.send(MESSAGE)
        client, served = connection()
        send(channel, served.detach())
        assert channel.turn_away() == 1
        assert heard(client).startswith(b"HTTP/1.1 503 ")
