"""RFC 9112 section 9.6: a client that is still sending must be able to read why it is refused.

Closing a socket with unread bytes resets the connection, and a reset destroys the response on its way.
"""

from __future__ import annotations

import threading

import pytest

from tests.harness import Server
from tests.harness.wire import request

MEGABYTES = 8


@pytest.mark.parametrize("bad", ["chunk", "head"])
def test_a_refusal_is_read_while_the_client_still_sends(tcp_server: Server, bad: str) -> None:
    fields = (
        [("Transfer-Encoding", "chunked")] if bad == "chunk" else [("Content-Length", "9999999"), ("Bad Name", "x")]
    )
    for _ in range(5):
        with tcp_server.connect() as wire:
            wire.send(request("POST", "/body", fields), b"zz\r\n" if bad == "chunk" else b"")

            def flood() -> None:
                try:
                    wire.send(b"x" * (MEGABYTES << 20))
                except OSError:
                    pass  # the server may stop reading once it has waited long enough

            sender = threading.Thread(target=flood)
            sender.start()
            reply = wire.reply()
            assert reply.status == 400
            assert reply.closes
            wire.abandon()
            sender.join(10)
            assert not sender.is_alive()


def test_the_end_comes_right_after_the_answer(tcp_server: Server) -> None:
    """Half-closed at once, so that a client that reads to the end does not wait for the server's patience."""
    with tcp_server.connect(timeout=0.9) as wire:
        wire.send(request("GET", "/hello", [("Connection", "close")]))
        assert wire.reply().status == 200
        wire.closed()


@pytest.mark.beyond_reference("a client that does not close blocks others for two seconds")
def test_a_client_that_never_closes_delays_nobody(tcp_server: Server) -> None:
    with tcp_server.connect() as lazy:
        lazy.send(request("GET", "/hello", [("Connection", "close")]))
        assert lazy.reply().status == 200
        with tcp_server.connect(timeout=1) as wire:
            assert wire.get("/hello").status == 200
