"""Connections over TLS that applications have taken, when the worker is busy or leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, until
from tests.harness.certificates import Authority
from tests.harness.classes import WSGI, each
from tests.harness.frames import CLOSE
from tests.harness.needs import needs
from tests.harness.tls import SecureFrames, SecureWire, client
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its sockets are Python's: no byte moves while Python is busy")

FRAMEWORKS = Path(__file__).parents[1] / "frameworks/apps"
MUCH = 50_000
"""Bytes: what `/gil` sends before it holds the interpreter's lock."""

Start = Callable[..., Server]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def start(authority: Authority) -> Iterator[Start]:
    issued = authority.issue("server")
    files = {"certfile": str(issued.certificate), "keyfile": str(issued.key)}
    with ExitStack() as stack:

        def one(alias: str, app: str = "taken:application", **options: Any) -> Server:
            server = Server(app, worker_class=alias, **files, **options)
            return stack.enter_context(server)

        yield one


def taken(server: Server, authority: Authority, target: str) -> SecureWire:
    """A connection that the application has."""
    wire = SecureWire(server.address, client(authority))
    wire.send(request("GET", target))
    assert wire._line("a line") == b"taken"
    return wire


@pytest.mark.parametrize("alias", each(*WSGI))
def test_a_worker_that_leaves_carries_on_and_ends_it_in_order(alias: str, start: Start, authority: Authority) -> None:
    server = start(alias, graceful_timeout=2, **({"threads": 2} if alias == "gthread" else {}))
    with taken(server, authority, "/echoes") as wire:
        server.signal(signal.SIGTERM)
        server.log.wait("Handling signal: term")
        wire.send(b"still there?\r\n")
        assert wire._line("a line") == b"STILL THERE?"
        assert wire.ended() in (b"", b"over\r\n"), "when graceful_timeout is over"
        assert server.wait_exit() == 0


@pytest.mark.parametrize("alias", each("sync", "gthread", "gevent"))
def test_bytes_are_carried_while_c_code_holds_the_gil(
    alias: str, start: Start, authority: Authority, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    server = start(alias, **({"threads": 2} if alias == "gthread" else {}))
    wire = SecureWire(server.address, client(authority))
    with wire, os.fdopen(os.open(fifo, os.O_RDWR), "wb", buffering=0) as held:
        wire.send(request("GET", f"/gil?count={MUCH}&fifo={fifo}"))
        assert wire._exactly(7 + MUCH, "what was sent before") == b"taken\r\n" + b"x" * MUCH
        wire.send(b"y" * MUCH)
        until(wire.is_all_read, "the server reads it, with no thread of Python's")
        held.write(b".")
        assert wire._line("a line") == b"%d" % MUCH


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 1001), (signal.SIGHUP, 1012)])
def test_websockets_of_tornados_handlers_are_told_that_their_worker_leaves(
    number: signal.Signals, code: int, start: Start, authority: Authority
) -> None:
    needs("tornado")
    server = start("tornado", "tornado_app:application", chdir=FRAMEWORKS)
    with SecureFrames(server.address, "/echo", context=client(authority)) as sock:
        sock.echoes()
        server.signal(number)
        got = sock.frame()
        assert (got.first, got.code) == (CLOSE, code)
        sock.put(CLOSE, got.payload)
        sock.closed()
        if number == signal.SIGTERM:
            assert server.wait_exit() == 0
