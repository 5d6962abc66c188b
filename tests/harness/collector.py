"""A collector: what a server sends to statsd or syslog, message by message."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tests.harness.deadline import PATIENCE, until

if TYPE_CHECKING:
    from typing_extensions import Self


class Collector:
    """Listens for datagrams at a port of its own, or at a path; for streams with `stream`. Messages are whole."""

    def __init__(
        self, path: Path | None = None, *, stream: bool = False, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        family = socket.AF_INET if path is None else socket.AF_UNIX
        self._open = True
        self._socket = socket.socket(family, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((host, port) if path is None else str(path))
        self.port: int = self._socket.getsockname()[1] if path is None else 0
        self.datagrams: list[bytes] = []
        self._streams: list[socket.socket] = []
        self._thread = threading.Thread(target=self._listen if stream else self._receive, daemon=True)
        if stream:
            self._socket.listen()
        self._socket.settimeout(0.05)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def lines(self) -> list[str]:
        """Of statsd, or of syslog without NUL: datagrams taken apart."""
        texts = [datagram.decode() for datagram in self.datagrams if not datagram.endswith(b"\0")]
        return [line for text in texts for line in text.split("\n")]

    @property
    def messages(self) -> list[str]:
        """Of syslog: each ends with NUL, also where a stream has several of them."""
        whole = b"".join(self.datagrams).decode()
        return whole.split("\0")[:-1]

    def wait(self, pattern: str, *, count: int = 1, within: float = PATIENCE) -> list[str]:
        """The lines and messages that match as a whole, when there are so many."""

        def found() -> list[str]:
            matching = [each for each in (*self.lines, *self.messages) if re.fullmatch(pattern, each, re.DOTALL)]
            return matching if len(matching) >= count else []

        try:
            return until(found, pattern, within=within)
        except AssertionError as error:
            raise AssertionError(f"{error}; got {self.datagrams!r}") from None

    def close(self) -> None:
        self._open = False
        self._thread.join()  # or the address stays taken as long as it waits
        for each in (self._socket, *self._streams):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _receive(self) -> None:
        while self._open:
            with suppress(TimeoutError):
                datagram = self._socket.recv(1 << 16)
                if datagram:
                    self.datagrams.append(datagram)

    def _listen(self) -> None:
        while self._open:
            with suppress(TimeoutError):
                stream = self._socket.accept()[0]
                stream.setblocking(True)
                self._streams.append(stream)
                threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: socket.socket) -> None:
        with suppress(OSError):
            while piece := stream.recv(1 << 16):
                self.datagrams.append(piece)
