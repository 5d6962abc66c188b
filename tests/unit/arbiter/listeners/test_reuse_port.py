"""Ports that the arbiter reserves and workers listen on, with real sockets and processes."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from pathlib import Path

import pytest
from tricorn.arbiter.listeners import reuse_port, sockets
from tricorn.arbiter.listeners.reuse_port import Reserved
from tricorn.arbiter.listeners.sockets import Listener
from tricorn.errors import BindError

from tests.harness import until
from tests.harness.child import in_child
from tests.unit.arbiter.log import Log

pytestmark = pytest.mark.usefixtures("quick")

LOCAL = ["127.0.0.1:0"]
UNPRIVILEGED = 65534


def reserve(addresses: list[str], log: Log) -> list[Listener]:
    return sockets.listen(addresses, backlog=64, umask=0, log=log, open_one=reuse_port.reserve)


def worker(reserved: list[Listener]) -> list[Listener]:
    """What a worker listens on. It closes its copy of the reservation, which here stays the arbiter's."""
    copies = [Reserved(each.socket.dup()) if isinstance(each, Reserved) else each for each in reserved]
    listeners = reuse_port.open_for_worker(copies)
    reuse_port.start_listening([each.socket.fileno() for each in listeners if each not in copies], 64)
    return listeners


def error_of_connecting(name: tuple[str, int]) -> int:
    with socket.socket() as client:
        return client.connect_ex(name)


class TestReserved:
    def test_nobody_is_connected_to_a_reservation(self, log: Log, opened: list[Listener]) -> None:
        opened += reserve(LOCAL, log)
        name = opened[0].socket.getsockname()
        assert name[1] != 0
        assert str(opened[0]) == f"http://127.0.0.1:{name[1]}"
        assert error_of_connecting(name) == errno.ECONNREFUSED

    def test_nobody_else_gets_the_port(self, log: Log, opened: list[Listener]) -> None:
        opened += reserve(LOCAL, log)
        name = opened[0].socket.getsockname()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(name)
        with pytest.raises(BindError):
            sockets.listen([f"{name[0]}:{name[1]}"], backlog=5, umask=0, log=log, attempts=1)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
    def test_not_even_another_user_who_shares_it(self, log: Log, opened: list[Listener]) -> None:
        opened += reserve(LOCAL, log)
        name = opened[0].socket.getsockname()

        def bind() -> int | None:
            os.setuid(UNPRIVILEGED)
            try:
                sockets.bind_tcp(socket.AF_INET, name, [socket.SO_REUSEADDR, socket.SO_REUSEPORT])
            except OSError as error:
                return error.errno
            return None

        assert in_child(bind) == errno.EADDRINUSE

    def test_a_port_in_use_is_tried_five_times(self, log: Log) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            with pytest.raises(BindError, match="Cannot listen on"):
                reserve([f"127.0.0.1:{port}"], log)
        assert [line.partition(",")[0] for line in log] == [f"Waiting for 127.0.0.1:{port}"]

    def test_nothing_is_left_behind_when_one_of_several_fails(self, log: Log, tmp_path: Path) -> None:
        before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
        with pytest.raises(BindError):
            reserve([*LOCAL, f"unix:{tmp_path}/a.sock", "192.0.2.1:0"], log)
        assert not (tmp_path / "a.sock").exists()
        if before:
            assert len(os.listdir("/proc/self/fd")) == before


class TestWorkers:
    def test_all_listen_on_the_same_port_and_each_is_served(self, log: Log, opened: list[Listener]) -> None:
        reserved = reserve(LOCAL, log)
        opened += reserved
        listeners = [worker(reserved)[0], worker(reserved)[0]]
        opened += listeners
        name = reserved[0].socket.getsockname()
        assert [each.socket.getsockname() for each in listeners] == [name, name]
        clients = [socket.create_connection(name) for _ in range(64)]
        try:
            for client in clients:
                client.sendall(b"GET")
            accepted = [accept_all(each) for each in listeners]
        finally:
            for client in clients:
                client.close()
        assert sum(accepted) == 64
        assert min(accepted) > 0, "the kernel spreads them by a hash of the addresses"

    def test_their_sockets_are_as_without_the_setting(self, log: Log, opened: list[Listener]) -> None:
        opened += reserve(LOCAL, log)
        opened += worker(opened)
        sock = opened[1].socket
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        assert not os.get_blocking(sock.fileno())
        assert not sock.get_inheritable()
        if sys.platform == "linux":
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT) > 0

    def test_the_port_is_kept_while_there_is_no_worker(self, log: Log, opened: list[Listener]) -> None:
        opened += reserve(LOCAL, log)
        name = opened[0].socket.getsockname()
        for _ in range(3):
            first = worker(opened[:1])[0]
            assert error_of_connecting(name) == 0
            first.close()
            assert error_of_connecting(name) == errno.ECONNREFUSED
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(name)

    def test_they_go_on_without_the_arbiter(self, log: Log, opened: list[Listener]) -> None:
        reserved = reserve(LOCAL, log)
        name = reserved[0].socket.getsockname()
        opened += worker(reserved)
        reserved[0].close()
        assert error_of_connecting(name) == 0

    def test_a_forked_worker(self, log: Log, opened: list[Listener]) -> None:
        opened += reserve(LOCAL, log)
        name = opened[0].socket.getsockname()

        def child() -> tuple[int, int]:
            listeners = reuse_port.open_for_worker(opened)
            assert error_of_connecting(listeners[0].socket.getsockname()) == errno.ECONNREFUSED, "it is not ready"
            reuse_port.start_listening([listeners[0].socket.fileno()], 64)
            return error_of_connecting(listeners[0].socket.getsockname()), opened[0].socket.fileno()

        assert in_child(child) == (0, -1)
        assert opened[0].socket.getsockname() == name

    def test_version_6(self, log: Log, opened: list[Listener]) -> None:
        try:
            opened += reserve(["[::1]:0"], log)
        except BindError:
            pytest.skip("no IPv6 here")
        opened += worker(opened)
        assert opened[1].socket.getsockname() == opened[0].socket.getsockname()

    def test_a_name_that_is_lost_is_said(self, log: Log, opened: list[Listener]) -> None:
        """Not by accident: as another user, which is the order of things turned round."""
        opened += sockets.listen(LOCAL, backlog=5, umask=0, log=log)
        lost = Reserved(opened[0].socket.dup())
        with pytest.raises(BindError, match=r"The worker can't listen on http://127.0.0.1:.*: Address already in use."):
            reuse_port.open_for_worker([lost])
        lost.close()


class TestLeaving:
    @pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
    def test_newcomers_go_to_the_others_and_who_was_there_is_served(self, log: Log, opened: list[Listener]) -> None:
        opened += reserve(LOCAL, log)
        opened += [*worker(opened[:1]), *worker(opened[:1])]
        _, leaving, staying = opened
        name = staying.socket.getsockname()
        clients = [socket.create_connection(name) for _ in range(32)]
        for client in clients:
            client.sendall(b"GET")
        reuse_port.refuse_newcomers([leaving.socket.fileno()])
        newcomers = [beginning(name) for _ in range(64)]
        try:
            until(lambda: sum(map(is_connected, newcomers)) > 8, "the other worker's newcomers are connected")
            begun = sum(map(is_connected, newcomers))
            assert begun < 64, "the kernel holds the others back, and tries again"
            for client in filter(is_connected, newcomers):
                client.sendall(b"GET")
            accepted = accept_all(leaving)
            assert 0 < accepted < 32
            assert accepted + accept_all(staying) == 32 + begun
        finally:
            for client in clients + newcomers:
                client.close()

    @pytest.mark.skipif(sys.platform != "linux", reason="the interface is Linux's")
    def test_where_none_listens_any_more_newcomers_are_refused(self, log: Log, opened: list[Listener]) -> None:
        opened += reserve(LOCAL, log)
        opened += [*worker(opened[:1]), *worker(opened[:1])]
        name = opened[1].socket.getsockname()
        for each in opened[1:]:
            reuse_port.refuse_newcomers([each.socket.fileno()], none_listens=True)
        assert {error_of_connecting(name) for _ in range(16)} == {errno.ECONNREFUSED}

    def test_what_is_no_listener_is_left_alone(self) -> None:
        read_end, write_end = os.pipe()
        with socket.socket() as plain, socket.socket(socket.AF_UNIX) as unix:
            reuse_port.refuse_newcomers([read_end, plain.fileno(), unix.fileno(), 9999])
            assert plain.fileno() >= 0
        os.close(read_end)
        os.close(write_end)


def beginning(name: tuple[str, int]) -> socket.socket:
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(name)
    return client


def is_connected(client: socket.socket) -> bool:
    try:
        client.getpeername()
    except OSError:
        return False
    return True


class TestShared:
    def test_a_successor_inherits_what_is_shared(self, log: Log, opened: list[Listener], tmp_path: Path) -> None:
        opened += reserve([*LOCAL, f"unix:{tmp_path}/a.sock"], log)
        assert reuse_port.to_hand_over(opened) == opened[1:]

    def test_and_reserves_the_rest_itself(self, log: Log, opened: list[Listener]) -> None:
        opened += reserve(LOCAL, log)
        host, port = opened[0].socket.getsockname()
        opened += reserve([f"{host}:{port}"], log)

    def test_a_unix_socket_is_shared(self, log: Log, opened: list[Listener], tmp_path: Path) -> None:
        opened += reserve([f"unix:{tmp_path}/a.sock"], log)
        assert stat.S_ISSOCK((tmp_path / "a.sock").stat().st_mode)
        assert worker(opened) == opened
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"{tmp_path}/a.sock")

    def test_an_inherited_one_is_shared(self, log: Log, opened: list[Listener]) -> None:
        given = socket.create_server(("127.0.0.1", 0))
        name = given.getsockname()
        opened += reserve([f"fd://{given.detach()}"], log)
        assert worker(opened) == opened
        assert error_of_connecting(name) == 0


def accept_all(listener: Listener) -> int:
    count = 0
    while True:
        try:
            accepted, _ = listener.socket.accept()
        except BlockingIOError:
            return count
        accepted.close()
        count += 1
