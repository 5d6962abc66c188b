"""systemd's end of the socket that $NOTIFY_SOCKET names."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.harness.deadline import until


class Manager:
    """Notes what a service tells."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[str] = []
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.setblocking(False)
        self._sock.bind(str(path))

    @property
    def environ(self) -> dict[str, str]:
        return {"NOTIFY_SOCKET": str(self.path)}

    def listen(self) -> list[str]:
        """The first line of each message so far, without its value if that is a number."""
        try:
            while True:
                self.heard.append(self._sock.recv(4096).decode())
        except BlockingIOError:
            return [message.partition("\n")[0] for message in self.heard]

    def hears(self, *messages: str) -> None:
        """Waits until exactly these have come, in this order."""
        until(lambda: len(self.listen()) >= len(messages), f"{len(messages)} messages, not {self.heard}")
        assert self.listen() == list(messages)

    def close(self) -> None:
        self._sock.close()
