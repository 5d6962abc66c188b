"""Clients that mean no good: each is bounded, and none is waited for."""

from __future__ import annotations

import array
import json
import os
import random
import select
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tricorn.arbiter.control import listener as limits
from tricorn.arbiter.control.bound_socket import BoundSocket, bind
from tricorn.arbiter.control.listener import (
    MOST_CLIENTS,
    MOST_WAITS,
    PIECE,
    SILENCE,
    Client,
    ControlListener,
    Peer,
)
from tricorn.arbiter.control.session import MOST_REQUEST, Broken, Request

from tests.unit.arbiter.log import Log


class Server:
    """Turns a listener as the arbiter's loop does, and answers every request with `answer`."""

    def __init__(self, path: Path) -> None:
        bound = bind(str(path), 0o600, name=None, environ={}, is_successor=False, log=Log())
        assert isinstance(bound, BoundSocket)
        self.path = str(path)
        self.listener = ControlListener(bound)
        self.now = 0.0
        self.requests: list[Request | Broken] = []
        self.answer: dict[str, Any] = {"ok": True}
        self.turns = 0

    def turn(self, timeout: float = 0.0) -> list[tuple[Client, Request | Broken]]:
        self.turns += 1
        poll = select.poll()
        self.listener.register(poll)
        ready = {fd for fd, _ in poll.poll(0 if self.listener.has_more() else timeout * 1000)}
        asked = list(self.listener.turn(ready, self.now))
        for client, request in asked:
            self.requests.append(request)
            self.listener.send(client, self.answer)
            if isinstance(request, Broken):
                self.listener.end(client)
        return asked

    def until(self, condition: Callable[[], object]) -> None:
        for _ in range(1000):
            if condition():
                return
            self.turn(0.01)
        raise AssertionError("it does not become true")

    def client(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(5)
        made.connect(self.path)
        return made

    def connected(self) -> socket.socket:
        before = len(self.listener.clients)
        made = self.client()
        self.until(lambda: len(self.listener.clients) > before)
        return made


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "control")
    yield made
    made.listener.close()
    assert not Path(made.path).exists()


def test_a_request_is_answered_and_its_client_known(server: Server) -> None:
    with server.connected() as client:
        client.sendall(b'{"id": 1, "do": "status"}\n')
        server.until(lambda: server.requests)
        assert server.requests == [Request(1, "status", {})]
        assert client.recv(100) == b'{"ok":true}\n'
        (known,) = server.listener.clients.values()
        assert (known.peer.uid, known.peer.pid) == (os.geteuid(), os.getpid())


def test_a_client_that_leaves_is_forgotten(server: Server) -> None:
    server.connected().close()
    server.until(lambda: not server.listener.clients)
    assert server.listener.take_gone() == [1]
    assert server.listener.take_gone() == []


def test_one_client_too_many_is_told_so_and_the_others_stay(server: Server) -> None:
    clients = [server.connected() for _ in range(MOST_CLIENTS)]
    with server.client() as late:
        server.turn(1)
        assert json.loads(late.recv(1000))["kind"] == "busy"
        assert late.recv(1000) == b""
    assert len(server.listener.clients) == MOST_CLIENTS
    clients.pop().close()
    server.until(lambda: len(server.listener.clients) < MOST_CLIENTS)
    clients.append(server.connected())
    for client in clients:
        client.close()


def test_a_turn_reads_one_piece_and_takes_one_request_of_each(server: Server) -> None:
    one = b'{"do":"status"}\n'
    with server.connected() as client:
        client.sendall(one * 50)
        asked = [len(server.turn()) for _ in range(60)]
        assert max(asked) == 1
        assert sum(asked) == 50
        assert not server.listener.has_more()


def test_braces_without_end_are_refused_when_they_are_too_many(server: Server) -> None:
    with server.connected() as client:
        client.sendall(b"{" * (MOST_REQUEST + 1))
        server.until(lambda: server.requests)
        assert isinstance(server.requests[0], Broken)
        server.until(lambda: not server.listener.clients)
        assert client.recv(100) == b'{"ok":true}\n'
    assert MOST_REQUEST // PIECE <= 2


def test_half_a_frame_is_silence(server: Server) -> None:
    with server.connected() as client:
        client.sendall(b"\0\0\1")
        server.until(lambda: server.turn(0.01) == [] and server.turns > 5)
        assert server.listener.due(0.0) == SILENCE
        server.now = SILENCE
        server.turn()
        assert not server.listener.clients
        assert client.recv(1) == b""


def test_silence_is_allowed_where_an_answer_of_ours_is_due(server: Server) -> None:
    with server.connected():
        (client,) = server.listener.clients.values()
        client.waits = 1
        assert server.listener.due(0.0) == float("inf")
        client.waits, client.follows = 0, True
        assert server.listener.due(0.0) == float("inf")


def test_one_that_never_reads_gets_no_more_than_its_share(server: Server) -> None:
    """It asks on and on. What it was not sent yet holds up its next request."""
    server.answer = {"result": "x" * 100_000}
    with server.connected() as client:
        client.setblocking(False)
        for _ in range(200):
            try:
                client.send(b'{"do":"status"}\n' * 100)
            except BlockingIOError:
                break
        for _ in range(200):
            server.turn()
        (known,) = server.listener.clients.values()
        assert len(known.unsent) == 1
        answered = len(server.requests)
        for _ in range(50):
            server.turn()
        assert len(server.requests) == answered
        server.now = SILENCE + 1
        server.turn()
        assert not server.listener.clients, "it is silent as one that says nothing"


def test_a_follower_that_does_not_read_is_dropped(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_UNSENT", 500_000)
    with server.connected():
        (known,) = server.listener.clients.values()
        known.session.feed(b"{")
        sent = 0
        while server.listener.clients and sent < 1000:
            server.listener.send(known, {"event": "x" * 10_000})
            sent += 1
        assert 50 < sent < 1000
        assert known.bytes_unsent > 500_000


def test_descriptors_go_with_the_first_byte_of_their_answer(server: Server, tmp_path: Path) -> None:
    with server.connected() as client, (tmp_path / "given").open("w+b") as given:
        given.write(b"here")
        given.flush()
        (known,) = server.listener.clients.values()
        known.session.feed(b"{")
        text = "x" * (3 * PIECE)
        server.listener.send(known, {"event": text}, (given.fileno(),))
        data, ancillary, _, _ = client.recvmsg(1 << 20, socket.CMSG_SPACE(64))
        ((_, _, sent),) = ancillary
        (descriptor,) = array.array("i", sent)
        assert os.pread(descriptor, 10, 0) == b"here"
        os.close(descriptor)
        while not data.endswith(b"\n"):
            server.turn()
            data += client.recv(1 << 20)
        assert json.loads(data) == {"event": text}


def test_no_descriptor_of_it_is_inherited(server: Server) -> None:
    with server.connected():
        (known,) = server.listener.clients.values()
        assert not known.socket.get_inheritable()
        assert not server.listener.bound.socket.get_inheritable()


def test_rubbish_of_many_clients_leaves_it_as_it_was(server: Server) -> None:

    chance = random.Random(4711)
    for _ in range(150):
        clients = [server.connected() for _ in range(chance.randrange(1, 4))]
        for client in clients:
            client.sendall(chance.choice([b"", b"{", b"\0", b"\0\0\0\x05"]) + chance.randbytes(chance.randrange(400)))
        for _ in range(3):
            server.turn()
        for client in clients:
            client.close()
        server.until(lambda: not server.listener.clients)
    with server.connected() as client:
        client.sendall(b'{"id": 1, "do": "status"}\n')
        server.until(lambda: server.requests[-1:] == [Request(1, "status", {})])


def test_clients_that_a_turn_did_not_come_to_are_the_first_of_the_next(server: Server) -> None:
    """The arbiter leaves a turn when its time is over, after one request if that took long."""
    clients = [server.connected() for _ in range(3)]
    for client in clients:
        client.sendall(b'{"do":"status"}\n' * 4)
    served = []
    for _ in range(12):
        assert server.listener.has_more() or not served
        ready = {each.socket.fileno() for each in server.listener.clients.values()}
        client, request = next(server.listener.turn(ready, 0.0))
        assert request == Request(None, "status", {})
        served.append(client.number)
    assert sorted(served[:3]) == [1, 2, 3]
    assert served == served[:3] * 4
    for each in clients:
        each.close()


def test_one_that_asks_on_and_on_is_read_no_faster_than_it_is_answered(server: Server) -> None:
    with server.connected() as client:
        client.setblocking(False)
        (known,) = server.listener.clients.values()
        for _ in range(300):
            try:
                client.send(b'{"do":"status"}\n' * 4000)
            except BlockingIOError:
                pass
            server.turn()
            client.recv(1 << 16)
        assert len(known.session._buffer) <= MOST_REQUEST + PIECE


def test_one_with_many_answers_to_come_is_not_read_until_there_are_some(server: Server) -> None:
    with server.connected() as client:
        (known,) = server.listener.clients.values()
        known.waits = MOST_WAITS
        client.sendall(b'{"do":"status"}\n')
        for _ in range(20):
            server.turn()
        assert not server.requests
        assert not server.listener.has_more()
        known.waits -= 1
        server.until(lambda: server.requests)
    known.waits = MOST_WAITS
    server.until(lambda: not server.listener.clients)  # its end is noticed all the same


def test_users_that_may_only_look_do_not_keep_the_owner_out(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    others = iter([7, 7, 7, 8, 8, 9, 9, 10])
    monkeypatch.setattr(limits, "_peer", lambda sock: Peer(next(others, os.geteuid()), 1))
    clients = []
    for _ in range(8):
        clients.append(server.client())
        server.turn(1)
    taken = [client.peer.uid for client in server.listener.clients.values()]
    assert taken == [7, 7, 8, 8, 9, 9]
    clients += [server.connected() for _ in range(MOST_CLIENTS - len(taken))]
    for client in clients:
        client.close()
