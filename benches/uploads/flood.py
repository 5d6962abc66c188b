"""Uploads: python -m benches.uploads.flood PORT CLIENTS MIB, each client one after another, until it is told to stop.

Prints the number of bytes that the server took, once a second.
"""

from __future__ import annotations

import socket
import sys
import threading
import time

PIECE = bytes(1 << 20)


class Client(threading.Thread):
    def __init__(self, port: int, mebibytes: int) -> None:
        super().__init__(daemon=True)
        self.port, self.mebibytes = port, mebibytes
        self.sent = 0

    def run(self) -> None:
        while True:
            try:
                self.upload()
            except OSError:
                time.sleep(0.05)

    def upload(self) -> None:
        length = f"Content-Length: {self.mebibytes << 20}"
        head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}\r\nConnection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(head.encode())
            for _ in range(self.mebibytes):
                connection.sendall(PIECE)
                self.sent += len(PIECE)
            while connection.recv(4096):
                pass


def main() -> None:
    port, clients, mebibytes = (int(word) for word in sys.argv[1:])
    threads = [Client(port, mebibytes) for _ in range(clients)]
    for thread in threads:
        thread.start()
    while True:
        print(*(thread.sent for thread in threads), flush=True)
        time.sleep(1)


if __name__ == "__main__":
    main()
