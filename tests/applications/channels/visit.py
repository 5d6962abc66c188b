"""Views, an upload and a download; streams that are left; WebSockets that talk, are refused, close and vanish."""

from __future__ import annotations

import hashlib
import json
from socket import SHUT_RDWR

from browser import PATIENCE, Browser, events, visit
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

CONTENT = bytes(range(256)) * 20_000


def open_socket(browser: Browser, path: str) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{browser.port}{path}", proxy=None, open_timeout=PATIENCE)


def talk(browser: Browser) -> list[object]:
    heard = []
    with open_socket(browser, "/chat") as one, open_socket(browser, "/chat") as other:
        # A consumer has joined its group when it answers.
        for socket in (one, other):
            socket.send(json.dumps("here"))
            while json.loads(socket.recv(PATIENCE)) != "here":
                pass
        one.send(json.dumps({"said": "hello"}))
        for socket in (one, other):
            while (message := json.loads(socket.recv(PATIENCE))) == "here":
                pass
            heard.append(message)
    return heard


def echo(browser: Browser) -> list[object]:
    with open_socket(browser, "/echo") as socket:
        socket.send("text")
        socket.send(CONTENT[:200_000])
        return [socket.recv(PATIENCE), len(socket.recv(PATIENCE))]


def refused(browser: Browser) -> int:
    try:
        open_socket(browser, "/refused").close()
    except InvalidStatus as error:
        return error.response.status_code
    return 101


def vanish(browser: Browser, path: str) -> str:
    """The connection ends without a word while an answer is under way."""
    with open_socket(browser, path) as socket:
        socket.send('"gone"')
        heard = socket.recv(PATIENCE)
        socket.send('"not read any more"')
        socket.socket.shutdown(SHUT_RDWR)
    return str(heard)


def some_of(browser: Browser, path: str) -> list[object]:
    with browser.stream(path) as pieces:
        found = events(pieces)
        return [next(found) for _ in range(5)]


def steps(browser: Browser) -> dict[str, object]:
    upload = browser.post("/upload", files={"file": ("file.bin", CONTENT)}).json()
    return {
        "page": browser.load("/"),
        "answer": browser.get("/answer?question=why").json(),
        "upload": upload["file"] == hashlib.sha256(CONTENT).hexdigest(),
        "download": browser.get("/download").headers["content-disposition"],
        "missing": browser.get("/nothing", 404).status_code,
        "streams": [some_of(browser, path) for path in ("/stream", "/events") for _ in range(5)],
        "chat": talk(browser),
        "echo": echo(browser),
        "refused": refused(browser),
        "gone": [vanish(browser, path) for path in ("/chat", "/echo") for _ in range(3)],
        "after": browser.get("/answer?question=still").json(),
    }


visit(steps)
