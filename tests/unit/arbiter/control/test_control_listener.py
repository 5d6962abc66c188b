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
from tricorn.arbiter.control.listener import (
    MOST_CLIENTS,
    MOST_WAITS,
    PIECE,
    SILENCE,
    Client,
    ControlListener,
    Peer,
)
from tricorn.arbiter.control.place import Bound, bind
from tricorn.arbiter.control.session import MOST_REQUEST, Broken, Request

from tests.unit.arbiter.log import Log


class Desk:
    """Turns a listener as the arbiter's loop does, and answers every request with `answer`."""

    def __init__(self, path: Path) -> None:
        bound = bind(str(path), 0o600, name=None, environ={}, is_successor=False, log=Log())
        assert isinstance(bound, Bound)
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
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "control")
    yield made
    made.listener.close()
    assert not Path(made.path).exists()


def test_a_request_is_answered_and_its_client_known(desk: Desk) -> None:
    with desk.connected() as client:
        client.sendall(b'{"id": 1, "do": "status"}\n')
        desk.until(lambda: desk.requests)
        assert desk.requests == [Request(1, "status", {})]
        assert client.recv(100) == b'{"ok":true}\n'
        (known,) = desk.listener.clients.values()
        assert (known.peer.uid, known.peer.pid) == (os.geteuid(), os.getpid())


def test_a_client_that_leaves_is_forgotten(desk: Desk) -> None:
    desk.connected().close()
    desk.until(lambda: not desk.listener.clients)
    assert desk.listener.take_gone() == [1]
    assert desk.listener.take_gone() == []


def test_one_client_too_many_is_told_so_and_the_others_stay(desk: Desk) -> None:
    clients = [desk.connected() for _ in range(MOST_CLIENTS)]
    with desk.client() as late:
        desk.turn(1)
        assert json.loads(late.recv(1000))["kind"] == "busy"
        assert late.recv(1000) == b""
    assert len(desk.listener.clients) == MOST_CLIENTS
    clients.pop().close()
    desk.until(lambda: len(desk.listener.clients) < MOST_CLIENTS)
    clients.append(desk.connected())
    for client in clients:
        client.close()


def test_a_turn_reads_one_piece_and_takes_one_request_of_each(desk: Desk) -> None:
    one = b'{"do":"status"}\n'
    with desk.connected() as client:
        client.sendall(one * 50)
        asked = [len(desk.turn()) for _ in range(60)]
        assert max(asked) == 1
        assert sum(asked) == 50
        assert not desk.listener.has_more()


def test_braces_without_end_are_refused_when_they_are_too_many(desk: Desk) -> None:
    with desk.connected() as client:
        client.sendall(b"{" * (MOST_REQUEST + 1))
        desk.until(lambda: desk.requests)
        assert isinstance(desk.requests[0], Broken)
        desk.until(lambda: not desk.listener.clients)
        assert client.recv(100) == b'{"ok":true}\n'
    assert MOST_REQUEST // PIECE <= 2


def test_half_a_frame_is_silence(desk: Desk) -> None:
    with desk.connected() as client:
        client.sendall(b"\0\0\1")
        desk.until(lambda: desk.turn(0.01) == [] and desk.turns > 5)
        assert desk.listener.deadline() == SILENCE
        desk.now = SILENCE
        desk.turn()
        assert not desk.listener.clients
        assert client.recv(1) == b""


def test_silence_is_allowed_where_an_answer_of_ours_is_due(desk: Desk) -> None:
    with desk.connected():
        (client,) = desk.listener.clients.values()
        client.waits = 1
        assert desk.listener.deadline() == float("inf")
        client.waits, client.follows = 0, True
        assert desk.listener.deadline() == float("inf")


def test_one_that_never_reads_gets_no_more_than_its_share(desk: Desk) -> None:
    """It asks on and on. What it was not sent yet holds up its next request."""
    desk.answer = {"result": "x" * 100_000}
    with desk.connected() as client:
        client.setblocking(False)
        for _ in range(200):
            try:
                client.send(b'{"do":"status"}\n' * 100)
            except BlockingIOError:
                break
        for _ in range(200):
            desk.turn()
        (known,) = desk.listener.clients.values()
        assert len(known.unsent) == 1
        answered = len(desk.requests)
        for _ in range(50):
            desk.turn()
        assert len(desk.requests) == answered
        desk.now = SILENCE + 1
        desk.turn()
        assert not desk.listener.clients, "it is silent as one that says nothing"


def test_a_follower_that_does_not_read_is_dropped(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_UNSENT", 500_000)
    with desk.connected():
        (known,) = desk.listener.clients.values()
        known.session.feed(b"{")
        sent = 0
        while desk.listener.clients and sent < 1000:
            desk.listener.send(known, {"event": "x" * 10_000})
            sent += 1
        assert 50 < sent < 1000
        assert known.bytes_unsent > 500_000


def test_descriptors_go_with_the_first_byte_of_their_answer(desk: Desk, tmp_path: Path) -> None:
    with desk.connected() as client, (tmp_path / "given").open("w+b") as given:
        given.write(b"here")
        given.flush()
        (known,) = desk.listener.clients.values()
        known.session.feed(b"{")
        text = "x" * (3 * PIECE)
        desk.listener.send(known, {"event": text}, (given.fileno(),))
        data, ancillary, _, _ = client.recvmsg(1 << 20, socket.CMSG_SPACE(64))
        ((_, _, sent),) = ancillary
        (descriptor,) = array.array("i", sent)
        assert os.pread(descriptor, 10, 0) == b"here"
        os.close(descriptor)
        while not data.endswith(b"\n"):
            desk.turn()
            data += client.recv(1 << 20)
        assert json.loads(data) == {"event": text}


def test_no_descriptor_of_it_is_inherited(desk: Desk) -> None:
    with desk.connected():
        (known,) = desk.listener.clients.values()
        assert not known.socket.get_inheritable()
        assert not desk.listener.bound.socket.get_inheritable()


def test_rubbish_of_many_clients_leaves_it_as_it_was(desk: Desk) -> None:

    chance = random.Random(4711)
    for _ in range(150):
        clients = [desk.connected() for _ in range(chance.randrange(1, 4))]
        for client in clients:
            client.sendall(chance.choice([b"", b"{", b"\0", b"\0\0\0\x05"]) + chance.randbytes(chance.randrange(400)))
        for _ in range(3):
            desk.turn()
        for client in clients:
            client.close()
        desk.until(lambda: not desk.listener.clients)
    with desk.connected() as client:
        client.sendall(b'{"id": 1, "do": "status"}\n')
        desk.until(lambda: desk.requests[-1:] == [Request(1, "status", {})])


def test_clients_that_a_turn_did_not_come_to_are_the_first_of_the_next(desk: Desk) -> None:
    """The arbiter leaves a turn when its time is over, after one request if that took long."""
    clients = [desk.connected() for _ in range(3)]
    for client in clients:
        client.sendall(b'{"do":"status"}\n' * 4)
    served = []
    for _ in range(12):
        assert desk.listener.has_more() or not served
        ready = {each.socket.fileno() for each in desk.listener.clients.values()}
        client, request = next(desk.listener.turn(ready, 0.0))
        assert request == Request(None, "status", {})
        served.append(client.number)
    assert sorted(served[:3]) == [1, 2, 3]
    assert served == served[:3] * 4
    for each in clients:
        each.close()


def test_one_that_asks_on_and_on_is_read_no_faster_than_it_is_answered(desk: Desk) -> None:
    with desk.connected() as client:
        client.setblocking(False)
        (known,) = desk.listener.clients.values()
        for _ in range(300):
            try:
                client.send(b'{"do":"status"}\n' * 4000)
            except BlockingIOError:
                pass
            desk.turn()
            client.recv(1 << 16)
        assert len(known.session._buffer) <= MOST_REQUEST + PIECE


def test_one_with_many_answers_to_come_is_not_read_until_there_are_some(desk: Desk) -> None:
    with desk.connected() as client:
        (known,) = desk.listener.clients.values()
        known.waits = MOST_WAITS
        client.sendall(b'{"do":"status"}\n')
        for _ in range(20):
            desk.turn()
        assert not desk.requests
        assert not desk.listener.has_more()
        known.waits -= 1
        desk.until(lambda: desk.requests)
    known.waits = MOST_WAITS
    desk.until(lambda: not desk.listener.clients)  # its end is noticed all the same


def test_users_that_may_only_look_do_not_keep_the_owner_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    others = iter([7, 7, 7, 8, 8, 9, 9, 10])
    monkeypatch.setattr(limits, "_peer", lambda sock: Peer(next(others, os.geteuid()), 1))
    clients = []
    for _ in range(8):
        clients.append(desk.client())
        desk.turn(1)
    taken = [client.peer.uid for client in desk.listener.clients.values()]
    assert taken == [7, 7, 8, 8, 9, 9]
    clients += [desk.connected() for _ in range(MOST_CLIENTS - len(taken))]
    for client in clients:
        client.close()
