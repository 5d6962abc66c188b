"""Sockets that stand for a client's connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tricorn.gateway import taken_socket

FACTS: dict[str, Any] = {
    "version": "TLSv1.3",
    "cipher": ("TLS_AES_128_GCM_SHA256", "TLSv1.3", 128),
    "alpn": "http/1.1",
    "server_name": "example.com",
    "peer_certificate": None,
    "names": (("192.0.2.7", 4321), ("192.0.2.1", 443)),
}


@pytest.fixture
def ends() -> Iterator[tuple[int, socket.socket]]:
    """A descriptor for the application, and the server's end."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        yield ours.detach(), theirs


def test_a_socket_of_a_session_is_called_as_the_clients_connection(ends: tuple[int, socket.socket]) -> None:
    fd, theirs = ends
    with taken_socket.take(fd, b"", blocks=True, told=FACTS) as taken:
        assert (taken.getpeername(), taken.getsockname()) == FACTS["names"]
        told: Any = taken
        assert (told.version(), told.selected_alpn_protocol(), told.cipher()) == (
            "TLSv1.3",
            "http/1.1",
            FACTS["cipher"],
        )
        assert told.getpeercert() is told.getpeercert(binary_form=True) is None
        assert taken.gettimeout() is None
        taken.sendall(b"hello")
        assert theirs.recv(16) == b"hello"
    assert theirs.recv(16) == b"", "nothing holds it open"


def test_a_client_that_had_left_has_no_name(ends: tuple[int, socket.socket]) -> None:
    told = FACTS | {"names": (None, ("192.0.2.1", 443))}
    with (
        taken_socket.take(ends[0], b"", blocks=False, told=told) as taken,
        pytest.raises(OSError, match="not connected"),
    ):
        taken.getpeername()


def test_names_are_those_of_both_ends_and_the_descriptor_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        client.settimeout(60)
        client.connect(listener.getsockname())
        server, _ = listener.accept()
        assert taken_socket.names(server.detach()) == (client.getsockname(), listener.getsockname())
        assert client.recv(1) == b"", "it was the only one"
    with socket.socket() as alone:
        assert taken_socket.names(alone.detach()) == (None, ("0.0.0.0", 0))


def test_what_was_read_before_is_received_first(ends: tuple[int, socket.socket]) -> None:
    fd, theirs = ends
    with taken_socket.take(fd, b"early", blocks=True) as taken:
        theirs.sendall(b" later")
        assert taken.recv(2, socket.MSG_PEEK) == b"ea"
        assert taken.recv(2) == b"ea"
        buffer = bytearray(8)
        assert (taken.recv_into(buffer), buffer[:3]) == (3, b"rly")
        assert taken.recv(16) == b" later"
