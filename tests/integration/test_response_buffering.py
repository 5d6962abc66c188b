"""`response_buffering`: an application is done with its response although the client has not read it."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, Wire, each, proc, until
from tests.harness.classes import WSGI
from tests.harness.core import Serving, serving
from tests.harness.http2 import CANCEL, Http2Wire
from tests.harness.wire import request

SIZE = 64 * 1024
COUNT = 256
"""Pieces: 16 MiB, several times what the kernel takes for a client with a `ROOM` of its own (tcp(7): `tcp_wmem`)."""
ROOM = 1 << 20
MEMORY, DISK = 14, 15
WRITE_TIMEOUTS = 21
NEVER = 80
"""Seconds that no test waits."""

pytestmark = pytest.mark.beyond_reference("it has no buffers for responses")


def piece(number: int, size: int) -> bytes:
    """As the application `report` makes it."""
    return (bytes((number + step) % 251 for step in range(251)) * (size // 251 + 1))[:size]


@cache
def expected(count: int = COUNT, size: int = SIZE) -> str:
    digest = hashlib.sha256()
    for number in range(count):
        digest.update(piece(number, size))
    return digest.hexdigest()


def target(tag: str, *more: str, count: int = COUNT) -> str:
    return "&".join((f"/report?raw&tag={tag}&count={count}&size={SIZE}", *more))


def seen(server: Server, tag: str) -> dict[str, int]:
    # With a timeout much shorter than any wait for a client that does not read.
    with server.connect(timeout=5) as wire:
        found: dict[str, int] = wire.get(f"/report?seen={tag}").json()
        return found


def files(server: Server) -> list[int]:
    """The lengths of the temporary files that the only worker has open."""
    directory = f"/proc/{server.worker_pid()}/fd"
    found = []
    for fd in os.listdir(directory):
        try:
            if os.readlink(f"{directory}/{fd}").startswith(str(server.directory)):
                found.append(os.stat(f"{directory}/{fd}").st_size)
        except FileNotFoundError:
            continue
    return found


@pytest.fixture(scope="module", params=each(*WSGI))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options: dict[str, Any] = {} if request.param == "sync" else {"threads": 1}
    if request.param not in ("sync", "gthread"):
        options = {"response_buffering": "on"}
    options |= {"http_protocols": "h2,h1", "http2_cleartext": "prior-knowledge"}
    server = Server(worker_class=request.param, write_timeout=NEVER, keep_alive=NEVER, **options)
    server._env["TRICORN_TMP_UPLOAD_DIR"] = str(server.directory)
    with server:
        yield server


WAYS = ["how=generator", "how=generator&length", "how=write", "how=write&length", "how=file"]


@pytest.mark.parametrize("way", WAYS)
def test_clients_that_do_not_read_stop_no_application(server: Server, way: str) -> None:
    """The only thread serves others, though three clients have not read; later each gets its bytes."""
    name = "".join(letter for letter in way if letter.isalpha())
    tags = [f"{name}{number}" for number in range(3)]
    wires = [server.connect(receive_buffer=ROOM) for _ in tags]
    try:
        for wire, tag in zip(wires, tags, strict=True):
            wire.send(request("GET", target(tag, way)))
        for tag in tags:
            until(lambda tag=tag: seen(server, tag) == {"produced": COUNT, "closed": 1}, "it has run to its end")
        assert len(files(server)) == 3
        for wire in wires:
            reply = wire.reply()
            assert reply.framing == ("length" if "length" in way else "chunked")
            assert len(reply.body) == COUNT * SIZE
            assert hashlib.sha256(reply.body).hexdigest() == expected()
            assert wire.get("/hello").body == b"Hello\n", "the connection is kept"
    finally:
        for wire in wires:
            wire.close()
    until(lambda: not files(server), "the files are given back")


def test_a_client_that_reads_costs_no_file(server: Server) -> None:
    made: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            made.extend(files(server))

    with server.connect() as wire:
        wire.get("/hello")
        # Pieces that the application takes its time for: the client is never behind.
        reply = wire.get("/stream?count=20&size=20000&pause=0.01")
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            reply = wire.get("/stream?count=20&size=20000&pause=0.01")
        finally:
            done.set()
            watcher.join()
    assert len(reply.body) == 400_000
    assert made == []


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_client_that_leaves_takes_its_file_along(server: Server, leave: str) -> None:
    with closing(server.connect(receive_buffer=ROOM)) as wire:
        wire.send(request("GET", target(f"leaves-{leave}")))
        until(lambda: seen(server, f"leaves-{leave}")["closed"], "the application is done")
        assert files(server)
        before = proc.descriptors(server.worker_pid())
        if leave == "reset":
            wire.reset()
        else:
            wire.close()
    until(lambda: not files(server), "the file is gone")
    until(lambda: proc.descriptors(server.worker_pid()) < before, "the descriptors are given back")


@pytest.mark.parametrize("leave", ["close", "reset", "cancel", "cancel-unread"])
def test_an_application_is_told_that_a_client_behind_on_disk_has_left(server: Server, leave: str) -> None:
    """It has read what lay in memory before the file: the next pieces find no socket, and the file's job does.

    Or it has read nothing: what lies in memory is tried by the monitor, and by the application.
    """
    path = target(f"left-{leave}", "drip", count=4 * COUNT)
    behind = 2 * COUNT * SIZE
    with server.connect(receive_buffer=ROOM) as wire:
        if leave.startswith("cancel"):
            http2 = Http2Wire(wire)
            stream = http2.begin("GET", path)
            until(lambda: sum(files(server)) > behind, "it is on disk")
            if leave == "cancel":
                http2.read_until(lambda: len(http2.answers[stream].body) > ROOM, "content comes")
            http2.client.reset_stream(stream, CANCEL)
            http2.flush()
        else:
            wire.send(request("GET", path))
            until(lambda: sum(files(server)) > behind, "it is on disk")
            assert len(wire._exactly(6 * ROOM, "the response")) == 6 * ROOM
            assert files(server)
            wire.reset() if leave == "reset" else wire.close()
        until(lambda: seen(server, f"left-{leave}")["closed"], "the application is told")
    until(lambda: not files(server), "the file is gone")


def test_head_is_answered_without_a_body(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.ask("HEAD", target("head", "length", count=3))
        assert reply.get("content-length") == str(3 * SIZE)
        assert wire.get("/hello").status == 200
    assert files(server) == []


def test_a_worker_that_leaves_sends_what_it_has() -> None:
    """TERM ends a worker when its responses are with their clients."""
    with Server(worker_class="sync", write_timeout=NEVER, graceful_timeout=30) as server:
        with server.connect(receive_buffer=ROOM) as wire:
            wire.send(request("GET", target("drain")))
            until(lambda: seen(server, "drain")["closed"], "the application is done")
            server.signal(signal.SIGTERM)
            server.log.wait("Handling signal: term")
            assert hashlib.sha256(wire.reply().body).hexdigest() == expected()
        assert server.wait_exit() == 0


def test_graceful_timeout_is_the_end_of_a_client_that_does_not_read() -> None:
    with (
        Server(worker_class="sync", write_timeout=NEVER, graceful_timeout=1) as server,
        server.connect(receive_buffer=ROOM) as wire,
    ):
        wire.send(request("GET", target("drain")))
        until(lambda: seen(server, "drain")["closed"], "the application is done")
        server.signal(signal.SIGTERM)
        server.wait_exit()
        assert len(wire.ended()) < COUNT * SIZE


class Producer:
    """An application of one thread whose response has no end that a test would reach; the test sees how far it got."""

    def __init__(self, pieces: int = 1 << 20, size: int = SIZE) -> None:
        self.produced = 0
        self.over = threading.Event()
        self._pieces, self._size = pieces, size

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [])
        if environ["PATH_INFO"] != "/long":
            return [b"short"]
        return self._generate()

    def _generate(self) -> Iterator[bytes]:
        try:
            for number in range(self._pieces):
                self.produced += 1
                yield piece(number, self._size)
        finally:
            self.over.set()

    def stands(self) -> bool:
        """It has produced nothing for a while: it waits."""
        before = self.produced
        return not self.over.wait(0.3) and before > 0 and self.produced == before


def ask(core: Serving) -> Wire:
    return core.wire(receive_buffer=ROOM).send(request("GET", "/long"))


OPTIONS: dict[str, Any] = {"response_buffering": True, "write_timeout": 60.0}


@pytest.mark.parametrize("bound", ["response_disk_size", "response_disk_total"])
def test_beyond_the_bound_the_application_waits(bound: str) -> None:
    producer = Producer()
    limit = 4 << 20
    with serving(producer, **OPTIONS, **{bound: limit}) as core:
        with ask(core) as wire:
            until(producer.stands, "it waits")
            assert core.word(DISK) <= limit
            assert core.word(DISK) > limit - (1 << 20), "what there is is used"
            before = producer.produced
            # All that waits, and some of what comes then.
            got = 0
            while got < limit + (16 << 20):
                got += len(wire.sock.recv(1 << 20))
            until(lambda: producer.produced > before, "it goes on")
        assert producer.over.wait(20), "its client has left"
        until(lambda: core.word(DISK) == 0, "the disk is given back")
        until(lambda: core.word(MEMORY) == 0, "and the memory")


def test_off_it_waits_in_memory() -> None:
    producer = Producer()
    with serving(producer, response_buffering=False, response_buffer_size=100_000) as core, ask(core) as wire:
        until(producer.stands, "it waits")
        assert core.word(DISK) == 0
        assert core.word(MEMORY) <= 100_000 + SIZE + 1000
        wire.reset()
        assert producer.over.wait(20)


def test_a_client_that_never_reads_is_cut_off_while_it_is_produced() -> None:
    """Each piece that finds room on disk wins no time for the client."""
    producer = Producer()
    with serving(producer, response_buffering=True, write_timeout=1.0, response_disk_size=1 << 40) as core, ask(core):
        assert producer.over.wait(30), "the application is told that its client is gone"
        until(lambda: core.word(WRITE_TIMEOUTS) == 1, "it counts")
        until(lambda: core.word(DISK) == 0, "the file is gone")


def test_a_client_that_never_reads_is_cut_off_when_all_is_produced() -> None:
    producer = Producer(pieces=COUNT)
    with serving(producer, response_buffering=True, write_timeout=1.0) as core, ask(core) as wire:
        assert producer.over.wait(30)
        until(lambda: core.word(WRITE_TIMEOUTS) == 1, "it counts")
        until(lambda: core.word(DISK) == 0, "the file is gone")
        with core.wire() as other:
            assert other.get("/").body == b"short"
        assert len(wire.ended()) < COUNT * SIZE


def test_whole_responses_go_to_disk_when_memory_holds_too_many() -> None:
    body = piece(7, 16 << 20)

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    options = {**OPTIONS, "response_buffer_total": 20 << 20}
    with serving(application, **options) as core:
        wires = [core.wire().send(request("GET", "/")) for _ in range(4)]
        try:
            # The kernel has a part of each.
            until(lambda: core.word(DISK) > 20 << 20, "the memory is full")
            until(lambda: core.word(17) == 4, "all are produced")
            until(lambda: 0 < core.word(MEMORY) <= (20 << 20) + 4 * (64 << 10), "the rest is on disk")
            for wire in wires:
                assert wire.reply().body == body
        finally:
            for wire in wires:
                wire.close()
        until(lambda: (core.word(MEMORY), core.word(DISK)) == (0, 0), "all is given back")


def test_a_full_disk_is_told_once_and_the_application_waits(tmp_path: Path) -> None:
    """What cannot be written stays where it is."""
    producer = Producer(pieces=COUNT)
    directory = tmp_path / "files"
    directory.mkdir()
    with serving(producer, **OPTIONS, upload_dir=str(directory)) as core:
        directory.rmdir()
        with ask(core) as wire:
            until(producer.stands, "it waits")
            assert core.word(DISK) == 0
            reply = wire.reply()
            assert len(reply.body) == COUNT * SIZE
            assert hashlib.sha256(reply.body).hexdigest() == expected()
        with core.wire() as other:
            other.get("/")
        until(lambda: core.notices, "the notice")
    assert len(core.notices) <= 3, "one a second at most"
    assert "Cannot buffer a response on disk" in core.notices[0]
    assert "tmp_upload_dir" in core.notices[0]


def test_events_are_not_held_back() -> None:
    """A piece that the client's socket takes is sent at once, also behind a response that was on disk."""
    go = threading.Semaphore(0)

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        start_response("200 OK", [])
        for number in range(COUNT):
            yield piece(number, SIZE)
        for number in range(3):
            assert go.acquire(timeout=8)
            yield b"event %d" % number

    with serving(application, **OPTIONS) as core, ask(core) as wire:
        until(lambda: core.word(DISK) > 4 << 20, "it is behind")
        assert wire._head(False).status == 200
        for number in range(COUNT):
            assert wire._exactly(len(b"10000\r\n"), "a size") == b"10000\r\n"
            assert wire._exactly(SIZE + 2, "a chunk")[:SIZE] == piece(number, SIZE)
        for number in range(3):
            go.release()
            line = b"7\r\nevent %d\r\n" % number
            assert wire._exactly(len(line), "an event") == line
            # A client that has caught up costs no disk, however long the stream goes on.
            until(lambda: core.word(DISK) == 0, "the file is given back")
