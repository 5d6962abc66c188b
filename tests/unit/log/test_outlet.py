"""A connection to a collector that may be away, full, or shared with a parent."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tricorn.config.collectors import Collector
from tricorn.log import outlet as module
from tricorn.log.outlet import Outlet

from tests.harness.deadline import until

KEPT = 4 << 20
"""Bytes of messages that the core keeps."""


def receiver(path: Path | None = None) -> socket.socket:
    made = socket.socket(socket.AF_INET if path is None else socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0) if path is None else str(path))
    made.settimeout(10)
    return made


def listener(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(str(path))
    made.listen()
    made.settimeout(10)
    return made


@pytest.fixture
def fork() -> Callable[[Callable[[], None]], None]:
    """Runs a function in a fork, which ends without the affairs of pytest."""
    made: list[int] = []

    def run(function: Callable[[], None]) -> None:
        if (pid := os.fork()) == 0:
            status = 1
            try:
                function()
                status = 0
            finally:
                os._exit(status)
        made.append(pid)

    yield run
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in made] == [0] * len(made)


def accepted(there: socket.socket) -> socket.socket | None:
    """The next connection, if it is there."""
    there.setblocking(False)
    try:
        made = there.accept()[0]
    except BlockingIOError:
        return None
    made.settimeout(10)
    return made


def test_a_datagram_is_a_message() -> None:
    with receiver() as there:
        outlet = Outlet(Collector("udp", "127.0.0.1", there.getsockname()[1]), keeps=True)
        outlet.send(b"one")
        outlet.send(b"two")
        assert (there.recv(100), there.recv(100), outlet.lost) == (b"one", b"two", 0)
        assert outlet.native.fileno() >= 0
        assert not outlet.is_stream
        outlet.close()


def test_a_port_that_nothing_listens_at_costs_messages_and_no_error() -> None:
    with receiver() as there:
        port = there.getsockname()[1]
    outlet = Outlet(Collector("udp", "127.0.0.1", port), keeps=False)
    for _ in range(4):
        outlet.send(b"unheard")
    assert outlet.lost >= 1
    outlet.close()


def test_a_name_that_is_not_known_is_told_and_costs_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(module.socket, "getaddrinfo", unknown)
    outlet = Outlet(Collector("udp", "nowhere.invalid", 514), keeps=False)
    outlet.send(b"lost")
    assert (outlet.address, outlet.trouble, outlet.lost) == (None, "Name or service not known", 1)


@pytest.mark.parametrize("kind", ["unix", "dgram", "stream"])
def test_of_a_unix_socket_the_kind_is_found_out_or_given(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "socket"
    is_stream = kind != "dgram"
    with listener(path) if is_stream else receiver(path) as there:
        outlet = Outlet(Collector(kind, str(path)), keeps=True)  # type: ignore[arg-type]  # one of three words
        outlet.send(b"here\0")
        ours = there.accept()[0] if is_stream else there
        assert ours.recv(100) == b"here\0"
        assert outlet.is_stream == is_stream
        outlet.close()
        ours.close()


def test_a_full_socket_gets_what_was_kept_later_in_order_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with listener(path) as there:
        outlet = Outlet(Collector("stream", str(path)), keeps=True)
        sent = [b"%06d" % number + b"x" * 2000 + b"\0" for number in range(150)]
        for message in sent:
            outlet.send(message)
        reading, got = there.accept()[0], b""
        while len(got) < sum(map(len, sent)):
            got += reading.recv(1 << 16)
            outlet.flush()
        assert (got, outlet.lost) == (b"".join(sent), 0)
        reading.close()
        outlet.close()


def test_what_is_too_much_to_keep_is_lost_and_counted(tmp_path: Path) -> None:
    outlet = Outlet(Collector("unix", str(tmp_path / "none")), keeps=True)
    assert "No such file" in outlet.trouble
    for _ in range(5):
        outlet.send(b"x" * (KEPT // 4))
    assert outlet.lost == 1
    outlet.close()
    assert outlet.lost == 5


def test_a_collector_that_comes_back_is_found_and_gets_what_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with listener(path) as there:
        outlet = Outlet(Collector("stream", str(path)), keeps=True)
        outlet.send(b"first\0")
        reading = there.accept()[0]
        assert reading.recv(100) == b"first\0"
        reading.close()
    path.unlink()
    for number in range(3):
        outlet.send(b"kept %d\0" % number)
    assert outlet.native.fileno() == -1
    with listener(path) as there:
        reading = until(lambda: outlet.flush() or accepted(there), "it is tried again")
        assert reading.recv(1000) == b"kept 0\0kept 1\0kept 2\0"
        assert outlet.lost == 0
        reading.close()
    outlet.close()


def test_a_message_too_long_for_a_datagram_is_lost_alone() -> None:
    with receiver() as there:
        outlet = Outlet(Collector("udp", "127.0.0.1", there.getsockname()[1]), keeps=True)
        outlet.send(b"x" * 70_000)
        outlet.send(b"next")
        assert (there.recv(100), outlet.lost) == (b"next", 1)
        outlet.close()


def test_messages_of_several_threads_are_each_sent_once(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with listener(path) as there:
        outlet = Outlet(Collector("stream", str(path)), keeps=True)
        reading = there.accept()[0]
        got: list[bytes] = []
        names = [b"%d" % number for number in range(8)]

        def send(name: bytes) -> None:
            for number in range(200):
                outlet.send(b"%b %d\n" % (name, number))

        def read() -> None:
            while piece := reading.recv(1 << 16):
                got.append(piece)

        threads = [threading.Thread(target=send, args=(name,)) for name in names]
        reader = threading.Thread(target=read)
        for thread in (reader, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        outlet.close()
        reader.join(10)
        reading.close()
    lines = b"".join(got).splitlines()
    assert outlet.lost == 0
    assert all(
        [line for line in lines if line.startswith(name)] == [b"%b %d" % (name, n) for n in range(200)]
        for name in names
    )


def test_the_end_waits_until_all_is_sent_to_a_reader_who_is_slow(tmp_path: Path) -> None:
    """A socket that has room again has not room for all."""
    path = tmp_path / "socket"
    with listener(path) as there:
        outlet = Outlet(Collector("stream", str(path)), keeps=True)
        reading = there.accept()[0]
        shared = outlet.socket()
        assert shared is not None
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        shared.close()
        count, message = 200, b"x" * 1000
        for _ in range(count):
            outlet.send(message)
        got = 0

        def read() -> None:
            nonlocal got
            while piece := reading.recv(4096):
                got += len(piece)

        closing = threading.Thread(target=outlet.close)
        closing.start()
        read()
        closing.join(10)
        reading.close()
    assert (outlet.lost, got) == (0, count * len(message))


def test_a_fork_has_a_stream_of_its_own_and_nothing_that_its_parent_keeps(
    tmp_path: Path, fork: Callable[[Callable[[], None]], None]
) -> None:
    path = tmp_path / "socket"
    outlet = Outlet(Collector("stream", str(path)), keeps=True)
    outlet.send(b"the parent's\0")

    def child() -> None:
        outlet.send(b"the child's\0")
        outlet.close()
        assert outlet.lost == 0

    with listener(path) as there:
        fork(child)
        childs = until(lambda: accepted(there), "the child connects")
        assert childs.recv(100) == b"the child's\0"
        assert childs.recv(100) == b"", "the parent's message is the parent's"
        parents = until(lambda: outlet.flush() or accepted(there), "the parent connects")
        assert parents.recv(100) == b"the parent's\0"
        fork(child)
        childs_too = until(lambda: accepted(there), "a fork of a process with a stream makes its own")
        assert childs_too.recv(100) == b"the child's\0"
        for each in (childs, childs_too, parents):
            each.close()
    outlet.close()


def tcp_listener(host: str, port: int = 0) -> socket.socket:
    made = socket.create_server((host, port))
    made.settimeout(10)
    return made


@pytest.mark.parametrize("is_full", [False, True], ids=["ended", "full"])
def test_a_stream_goes_in_every_process_where_the_arbiter_has_learned_that_its_name_leads(
    is_full: bool, monkeypatch: pytest.MonkeyPatch, fork: Callable[[Callable[[], None]], None]
) -> None:
    known = ["127.0.0.1"]
    monkeypatch.setattr(
        module.socket, "getaddrinfo", lambda host, port, *_: [(socket.AF_INET, 1, 6, "", (known[0], port))]
    )
    with tcp_listener("127.0.0.1") as here, tcp_listener("127.0.0.2", here.getsockname()[1]) as there:
        outlet = Outlet(Collector("tcp", "collector", here.getsockname()[1]), keeps=True)
        outlet.send(b"first\0")
        stream, _ = here.accept()
        reader, writer = os.pipe()

        def worker() -> None:
            os.close(writer)
            os.set_blocking(reader, False)
            message = b"x" * 50_000 + b"\0" if is_full else b"later\0"
            until(lambda: outlet.send(message) or _is_closed(reader), "the test has seen it", every=0.001)

        fork(worker)
        os.close(reader)
        old = until(lambda: accepted(here), "the worker connects")
        known[0] = "127.0.0.2"
        assert outlet.move(module.look_up(outlet.collector, outlet.family))
        assert outlet.address == ("127.0.0.2", here.getsockname()[1])
        if not is_full:
            old.close()
        new = until(lambda: accepted(there), "the worker connects anew")
        assert new.recv(1) == (b"x" if is_full else b"l"), "a message begins with its beginning"
        os.close(writer)
        for each in (stream, old, new):
            each.close()
        outlet.close()


def _is_closed(reader: int) -> bool:
    try:
        return os.read(reader, 1) == b""
    except BlockingIOError:
        return False
