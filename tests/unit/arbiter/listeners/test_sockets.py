"""The grammar of addresses, and what a listening socket is like."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from pathlib import Path

import pytest
from tricorn.arbiter.listeners import port_holder, sockets
from tricorn.arbiter.listeners.sockets import Listener
from tricorn.config import doors
from tricorn.config.addresses import FdAddress, TcpAddress, UnixAddress
from tricorn.errors import BindError

from tests.harness.deadline import until
from tests.unit.arbiter.log import Log

pytestmark = pytest.mark.usefixtures("quick")


class TestTcp:
    def test_it_listens_without_blocking(self, log: Log, opened: list[Listener]) -> None:
        opened += sockets.listen(["127.0.0.1:0"], backlog=5, umask=0, log=log)
        sock = opened[0].socket
        assert str(opened[0]) == f"http://127.0.0.1:{sock.getsockname()[1]}"
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        assert sock.get_inheritable()
        assert not sock.getblocking()

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux defers")
    def test_a_connection_is_handed_over_when_there_is_something_to_read(
        self, log: Log, opened: list[Listener]
    ) -> None:
        opened += sockets.listen(["127.0.0.1:0"], backlog=5, umask=0, log=log)
        sock = opened[0].socket
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT) > 0
        with socket.create_connection(sock.getsockname()) as client:
            with pytest.raises(BlockingIOError):
                sock.accept()
            client.sendall(b"GET")
            accepted, _ = sock.accept()
            accepted.close()

    def test_a_port_in_use_is_tried_five_times_and_told_once_with_its_holder(
        self, log: Log, opened: list[Listener], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waits: list[float] = []
        monkeypatch.setattr("tricorn.arbiter.listeners.sockets.time.sleep", waits.append)
        opened += sockets.listen(["127.0.0.1:0"], backlog=5, umask=0, log=log)
        port = opened[0].socket.getsockname()[1]
        with pytest.raises(BindError) as caught:
            sockets.listen([f"127.0.0.1:{port}"], backlog=5, umask=0, log=log)
        assert waits == [1] * 4
        holder = port_holder.find(port)
        by = f" by {holder}" if holder else ""
        told, remedy = str(caught.value).split(". ", 1)
        assert told == f"Cannot listen on 127.0.0.1:{port}: address already in use{by}"
        assert remedy.endswith("or bind another address (--bind).")
        assert holder is None or f"kill {holder.pid}" in remedy
        who = holder or "another process"
        assert log == [f"Waiting for 127.0.0.1:{port}, held by {who}; retrying for 4 seconds."]

    def test_a_reload_does_not_wait_for_a_port(self, log: Log, opened: list[Listener]) -> None:
        opened += sockets.listen(["127.0.0.1:0"], backlog=5, umask=0, log=log)
        port = opened[0].socket.getsockname()[1]
        with pytest.raises(BindError):
            sockets.listen([f"127.0.0.1:{port}"], backlog=5, umask=0, log=log, attempts=1)
        assert log == []

    def test_an_address_that_is_not_ours_is_tried_once(self, log: Log) -> None:
        with pytest.raises(
            BindError, match=r"Cannot listen on 192.0.2.1:0: cannot assign requested address\. .*0\.0\.0\.0"
        ):
            sockets.listen(["192.0.2.1:0"], backlog=5, umask=0, log=log)
        assert log == []

    def test_nothing_is_left_behind_when_one_of_several_fails(self, log: Log, tmp_path: Path) -> None:
        path = tmp_path / "a.sock"
        with pytest.raises(BindError):
            sockets.listen([f"unix:{path}", "192.0.2.1:0"], backlog=5, umask=0, log=log)
        assert not path.exists()


class TestCheck:
    """What a start would refuse is refused in the same words, and nothing is left behind."""

    def test_what_is_free_stays_free(self, log: Log, opened: list[Listener], tmp_path: Path) -> None:
        opened += sockets.listen(["127.0.0.1:0"], backlog=5, umask=0, log=log)
        port = opened[0].socket.getsockname()[1]
        opened.pop().close()
        for address in (f"127.0.0.1:{port}", f"unix:{tmp_path}/a.sock", "unix:@abstract"):
            sockets.check(address)
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("what", ["port", "unix", "file", "nowhere", "not ours"])
    def test_it_says_what_a_start_says(self, what: str, log: Log, opened: list[Listener], tmp_path: Path) -> None:
        opened += sockets.listen(["127.0.0.1:0", f"unix:{tmp_path}/a.sock"], backlog=5, umask=0, log=log)
        (tmp_path / "file").write_text("precious")
        address = {
            "port": f"127.0.0.1:{opened[0].socket.getsockname()[1]}",
            "unix": f"unix:{tmp_path}/a.sock",
            "file": f"unix:{tmp_path}/file",
            "nowhere": f"unix:{tmp_path}/no/a.sock",
            "not ours": "192.0.2.1:0",
        }[what]
        with pytest.raises(BindError) as start:
            sockets.listen([address], backlog=5, umask=0, log=log, attempts=1)
        with pytest.raises(BindError) as check:
            sockets.check(address)
        assert str(check.value) == str(start.value)
        assert isinstance(check.value, sockets.InUse) == (what in ("port", "unix"))

    def test_a_server_with_these_titles_is_one_that_is_reloaded(self) -> None:
        used = sockets.InUse()
        assert not used.by_a_server("tricorn")
        used.holder = port_holder.Holder(1, "python3", "tricorn: master [main:app]")
        assert used.by_a_server("tricorn")
        assert not used.by_a_server("shop")


class TestUnix:
    def listen(self, path: Path | str, log: Log, umask: int = 0) -> Listener:
        return sockets.listen([f"unix:{path}"], backlog=5, umask=umask, log=log)[0]

    @pytest.mark.parametrize(("umask", "mode"), [(0, 0o777), (0o22, 0o755), (0o177, 0o600)])
    def test_its_mode_is_the_umasks(
        self, umask: int, mode: int, log: Log, opened: list[Listener], tmp_path: Path
    ) -> None:
        opened.append(self.listen(tmp_path / "a.sock", log, umask))
        assert stat.S_IMODE((tmp_path / "a.sock").stat().st_mode) == mode
        assert str(opened[0]) == f"unix:{tmp_path}/a.sock"

    def test_a_stale_one_is_replaced(self, log: Log, opened: list[Listener], tmp_path: Path) -> None:
        self.listen(tmp_path / "a.sock", log).close()
        opened.append(self.listen(tmp_path / "a.sock", log))

    def test_a_unix_socket_in_use_is_not_removed(self, log: Log, opened: list[Listener], tmp_path: Path) -> None:
        opened.append(self.listen(tmp_path / "a.sock", log))
        with pytest.raises(BindError, match="Cannot listen on unix:"):
            self.listen(tmp_path / "a.sock", log)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "a.sock"))

    def test_a_file_that_is_no_socket_is_left_alone(self, log: Log, tmp_path: Path) -> None:
        (tmp_path / "a.sock").write_text("precious")
        with pytest.raises(BindError, match="is not a socket"):
            self.listen(tmp_path / "a.sock", log)
        assert (tmp_path / "a.sock").read_text() == "precious"

    def test_it_is_removed_at_the_end(self, log: Log, tmp_path: Path) -> None:
        listener = self.listen(tmp_path / "a.sock", log)
        listener.close()
        listener.remove_file()
        assert not (tmp_path / "a.sock").exists()

    def test_but_not_if_it_is_somebody_elses_by_then(self, log: Log, opened: list[Listener], tmp_path: Path) -> None:
        ours = self.listen(tmp_path / "a.sock", log)
        (tmp_path / "a.sock").rename(tmp_path / "kept")  # keeps the inode from being used again
        opened.append(self.listen(tmp_path / "a.sock", log))
        ours.close()
        ours.remove_file()
        assert (tmp_path / "a.sock").exists()

    @pytest.mark.skipif(sys.platform != "linux", reason="abstract names are Linux's")
    def test_an_abstract_one_is_no_file(self, log: Log, opened: list[Listener]) -> None:
        name = f"@tricorn-test-{os.getpid()}"
        opened.append(self.listen(name, log))
        assert str(opened[0]) == f"unix:{name}"
        assert opened[0].file is None


@pytest.mark.skipif(sys.platform != "linux", reason="the interface and the filter are Linux's")
class TestLeaving:
    @pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0"])
    def test_newcomers_are_refused_at_once_and_who_was_there_is_served(self, log: Log, address: str) -> None:
        """While a worker listens on: that is when connections would be made that it never takes."""
        (listener,) = sockets.listen([address], backlog=64, umask=0, log=log)
        worker, name = listener.socket.dup(), listener.socket.getsockname()
        # Of some the request is there; others have shaken hands (TCP_DEFER_ACCEPT: the kernel keeps them).
        clients = [socket.create_connection(name[:2], timeout=30) for _ in range(8)]
        for client in clients[:4]:
            client.sendall(b"GET")
        listener.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(name[:2], timeout=30)
        for client in clients[4:]:
            client.sendall(b"GET")
        worker.settimeout(30)
        with worker:
            for _ in clients:
                connection, _ = worker.accept()
                with connection:
                    assert connection.recv(3) == b"GET"
                    connection.sendall(b"200")
        for client in clients:
            assert client.recv(3) == b"200"
            client.close()

    def test_where_the_kernel_has_no_such_option_they_are_held_back(
        self, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sockets, "_SO_BINDTOIFINDEX", 9999)
        (listener,) = sockets.listen(["127.0.0.1:0"], backlog=64, umask=0, log=log)
        worker, name = listener.socket.dup(), listener.socket.getsockname()
        listener.close()
        with socket.socket() as client:
            client.setblocking(False)
            assert client.connect_ex(name) == errno.EINPROGRESS
            worker.close()
            until(lambda: client.connect_ex(name) == errno.ECONNREFUSED, "the packet is sent again")


class TestInherited:
    def test_a_descriptor_is_listened_on(self, log: Log, opened: list[Listener]) -> None:
        given = socket.socket()
        given.bind(("127.0.0.1", 0))
        name = given.getsockname()
        opened += sockets.listen([f"fd://{given.detach()}"], backlog=5, umask=0, log=log)
        assert opened[0].socket.getsockname() == name

    def test_descriptors_stand_alone(self, log: Log, opened: list[Listener]) -> None:
        given = socket.socket()
        given.bind(("127.0.0.1", 0))
        fd = given.detach()
        opened += sockets.listen(["192.0.2.1:0", f"fd://{fd}"], backlog=5, umask=0, log=log)
        assert [str(listener.door) for listener in opened] == [f"fd://{fd}"]

    def test_systemds_sockets(self, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", "2")
        assert sockets.passed_by_systemd(log) == [3, 4]
        assert "LISTEN_FDS" not in os.environ

    def test_but_only_those_meant_for_this_process(self, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LISTEN_PID", "1")
        monkeypatch.setenv("LISTEN_FDS", "1")
        assert sockets.passed_by_systemd(log) == []

    def test_what_others_listen_on_too_is_left_as_it_was(self, opened: list[Listener]) -> None:
        """The filter that refuses newcomers belongs to the socket, and would refuse those of the others."""
        with socket.socket() as theirs:
            theirs.bind(("127.0.0.1", 0))
            theirs.listen(5)
            (ours,) = sockets.inherit([theirs.dup().detach()])
            assert ours.is_at([TcpAddress("127.0.0.1", theirs.getsockname()[1])])
            assert not ours.is_at([TcpAddress("127.0.0.1", 1), UnixAddress("/tmp/x"), FdAddress(0)])
            ours.close()
            with socket.create_connection(theirs.getsockname(), timeout=5):
                pass

    def test_a_descriptor_is_left_as_it_was_for_its_owner(self, log: Log) -> None:
        with socket.create_server(("127.0.0.1", 0)) as theirs:
            (ours,) = sockets.listen([f"fd://{theirs.dup().detach()}"], backlog=5, umask=0, log=log)
            ours.close()
            with socket.create_connection(theirs.getsockname(), timeout=5):
                pass

    def test_its_address_is_known_when_the_core_has_it(self, log: Log) -> None:
        (listener,) = sockets.listen(["127.0.0.1:0"], backlog=5, umask=0, log=log)
        name = listener.getsockname()
        fd = listener.hand_over()
        assert listener.getsockname() == name
        assert str(listener) == f"http://127.0.0.1:{name[1]}"
        os.close(fd)

    def test_what_is_no_socket_is_named(self) -> None:
        read_end, write_end = os.pipe()
        with pytest.raises(BindError, match=f"The inherited descriptor {read_end} is not a listening socket"):
            sockets.inherit([read_end])
        os.close(read_end)
        os.close(write_end)


class TestDoors:
    """What is spoken at a listener."""

    def test_it_is_told_with_the_scheme(self, log: Log, opened: list[Listener], tmp_path: Path) -> None:
        texts = ["https://127.0.0.1:0", f"https+unix:{tmp_path}/a", f"unix:{tmp_path}/b"]
        opened += sockets.listen(texts, backlog=5, umask=0, log=log)
        port = opened[0].getsockname()[1]
        shown = [f"https://127.0.0.1:{port}", f"https+unix:{tmp_path}/a", f"unix:{tmp_path}/b"]
        assert [str(listener) for listener in opened] == shown
        assert [listener.tls for listener in opened] == [True, True, False]
        assert [listener.cfg_addr for listener in opened] == [("127.0.0.1", 0), f"{tmp_path}/a", f"{tmp_path}/b"]

    def test_another_scheme_keeps_the_socket(self, log: Log, opened: list[Listener]) -> None:
        opened += sockets.listen(["http://127.0.0.1:0"], backlog=5, umask=0, log=log)
        before = opened[0]
        door = doors.parse("https://127.0.0.1:0?proxy_protocol=v1")
        after = before.speaking(door)
        assert (after.socket, after.door, before.tls) == (before.socket, door, False)
        assert before.speaking(doors.parse("http://127.0.0.1:0")) is before
        assert sockets.beyond([before], [after]) == []
        assert sockets.beyond([before], []) == [before]

    def test_what_is_inherited_speaks_what_is_said_of_its_address(self, log: Log, opened: list[Listener]) -> None:
        opened += sockets.listen(["127.0.0.1:0", "127.0.0.1:0"], backlog=5, umask=0, log=log)
        first, second = (listener.getsockname()[1] for listener in opened)
        said = doors.decided([f"https://127.0.0.1:{second}", f"http://127.0.0.1:{first}"], tls=True)
        inherited = sockets.with_doors([Listener(each.socket) for each in opened], said, tls=True)
        assert [listener.tls for listener in inherited] == [False, True]

    @pytest.mark.parametrize("tls", [False, True])
    def test_what_is_not_named_speaks_what_addresses_without_a_scheme_speak(
        self, tls: bool, log: Log, opened: list[Listener]
    ) -> None:
        opened += sockets.listen(["127.0.0.1:0", "127.0.0.1:0"], backlog=5, umask=0, log=log)
        said = doors.decided(["http://127.0.0.1:1"], tls=tls)
        inherited = sockets.with_doors([Listener(each.socket) for each in opened], said, tls=tls)
        assert [listener.tls for listener in inherited] == [tls, tls]

    def test_names_of_hosts_go_by_their_order(self, log: Log, opened: list[Listener]) -> None:
        opened += sockets.listen(["localhost:0", "127.0.0.1:0"], backlog=5, umask=0, log=log)
        port = opened[1].getsockname()[1]
        said = doors.decided(["https://localhost:0", f"http://127.0.0.1:{port}"], tls=True)
        inherited = sockets.with_doors([Listener(each.socket) for each in opened], said, tls=True)
        assert [listener.tls for listener in inherited] == [True, False]
