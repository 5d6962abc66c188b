"""Servers of the protocols of Redis (RESP2) and memcached, with as many commands as a client needs for a key."""

from __future__ import annotations

import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import ClassVar


@contextmanager
def redis_server() -> Iterator[int]:
    """Its port."""
    with _serving(_Redis) as port:
        yield port


@contextmanager
def memcached_server() -> Iterator[int]:
    """Its port."""
    with _serving(_Memcached) as port:
        yield port


@contextmanager
def _serving(handler: type[_Store]) -> Iterator[int]:
    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True

    with Server(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


class _Store(socketserver.StreamRequestHandler):
    values: ClassVar[dict[bytes, bytes]] = {}
    """Of all connections: keys of a test are its own."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            self.wfile.write(self.answer(line))

    def answer(self, line: bytes) -> bytes:
        raise NotImplementedError

    def read(self, length: int) -> bytes:
        return self.rfile.read(length + len(b"\r\n"))[:length]


class _Redis(_Store):
    def answer(self, line: bytes) -> bytes:
        words = [self.read(int(self.rfile.readline()[1:])) for _ in range(int(line[1:]))]
        match words:
            case [b"PING"]:
                return b"+PONG\r\n"
            case [b"SET", key, value, *_]:
                self.values[key] = value
                return b"+OK\r\n"
            case [b"GET", key] if key in self.values:
                return b"$%d\r\n%b\r\n" % (len(self.values[key]), self.values[key])
            case [b"GET", _]:
                return b"$-1\r\n"
            case [command, *_]:
                return b"-ERR unknown command '%b'\r\n" % command
        return b"-ERR no command\r\n"


class _Memcached(_Store):
    def answer(self, line: bytes) -> bytes:
        match line.split():
            case [b"set", key, flags, _, length, *_]:
                self.values[key] = b"%b %b" % (flags, self.read(int(length)))
                return b"STORED\r\n"
            case [b"get", key] if key in self.values:
                flags, _, value = self.values[key].partition(b" ")
                return b"VALUE %b %b %d\r\n%b\r\nEND\r\n" % (key, flags, len(value), value)
            case [b"get", _]:
                return b"END\r\n"
        return b"ERROR\r\n"
