"""The gallery, and at `/socket` a WebSocket on a connection that the application takes: it says one word and listens.

`/gil?s=&fifo=` waits for so long, says so by the file `.in`, and keeps the GIL until the test opens the FIFO to write.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import os
import time
from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters
from gallery import application as gallery

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def keep_the_gil(seconds: float, fifo: str) -> None:
    c = ctypes.PyDLL(None)
    time.sleep(seconds)
    # No other thread gets the GIL between the two.
    c.close(c.creat(fifo.encode() + b".in", 0o600))
    c.close(c.open(fifo.encode(), os.O_RDONLY))


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/gil":
        given = parameters(environ)
        keep_the_gil(float(given["s"]), given["fifo"])
    if environ["PATH_INFO"] != "/socket":
        answer: Iterable[bytes] = gallery(environ, start_response)
        return answer
    sock = environ["gunicorn.socket"]
    key = environ["HTTP_SEC_WEBSOCKET_KEY"] + GUID
    accept = base64.b64encode(hashlib.sha1(key.encode(), usedforsecurity=False).digest())
    head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    sock.sendall(head + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n\x81\x05hello")
    while sock.recv(1024):
        pass
    return []
