"""The page with its files, chats over both transports of socket.io, an upload, and tabs that close in an answer."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import datetime, timezone

import socketio
from browser import PATIENCE, Browser, visit

CONTENT = bytes(range(256)) * 8_000


class Chat:
    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.session_id = str(uuid.uuid4())
        self.tokens: list[str] = []
        self.messages: list[str] = []
        self.changed = asyncio.Condition()
        self.socket = socketio.AsyncClient(reconnection=False)
        self.socket.on("stream_token", self._token)
        self.socket.on("new_message", self._message)
        self.socket.on("update_message", self._message)

    async def open(self, *transports: str) -> None:
        auth = {
            "sessionId": self.session_id,
            "clientType": "webapp",
            "userEnv": "{}",
            "chatProfile": "",
            "threadId": "",
        }
        await self.socket.connect(
            self.browser.base, auth=auth, transports=list(transports), socketio_path="/chainlit/ws/socket.io"
        )
        await self.socket.emit("connection_successful")

    async def _token(self, message: dict[str, str]) -> None:
        async with self.changed:
            self.tokens.append(message["token"])
            self.changed.notify_all()

    async def _message(self, message: dict[str, str]) -> None:
        async with self.changed:
            self.messages.append(message["output"])
            self.changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(condition), PATIENCE)

    async def ask(self, text: str, *files: str) -> None:
        message = {
            "id": str(uuid.uuid4()),
            "threadId": "",
            "name": "User",
            "type": "user_message",
            "output": text,
            "createdAt": datetime.now(timezone.utc).isoformat(),
        }
        await self.socket.emit(
            "client_message", {"message": message, "fileReferences": [{"id": file} for file in files]}
        )

    async def upload(self) -> str:
        path = f"/chainlit/project/file?session_id={self.session_id}"
        files = {"file": ("file.bin", CONTENT, "application/octet-stream")}
        reply = await asyncio.to_thread(self.browser.post, path, files=files)
        return str(reply.json()["id"])


async def use(browser: Browser, *transports: str) -> dict[str, object]:
    chat = Chat(browser)
    await chat.open(*transports)
    await chat.until(lambda: "What do you want?" in chat.messages)
    await chat.ask("nothing at all")
    await chat.until(lambda: "You want nothing at all " in chat.messages)
    seen: dict[str, object] = {"transport": chat.socket.transport()}
    if seen["transport"] == "websocket":  # python-socketio's client loses its session over large packets in polls
        file = await chat.upload()
        await chat.ask("this", file)
        await chat.until(lambda: f"You want this ({len(CONTENT)} bytes)" in chat.messages)
        path = f"/chainlit/project/file/{file}?session_id={chat.session_id}"
        seen["download"] = (await asyncio.to_thread(browser.get, path)).content == CONTENT
        await chat.socket.disconnect()
    else:  # the tab is closed: engine.io would answer the poll that waits after half a minute
        await chat.socket.eio.http.close()
    return seen | {"tokens": chat.tokens}


async def close_suddenly(browser: Browser) -> str:
    """The connection ends without a word while the answer is streamed."""
    chat = Chat(browser)
    await chat.open("websocket")
    await chat.ask("a long answer " * 100)
    await chat.until(lambda: len(chat.tokens) > 3)
    chat.socket.eio.ws._response.connection.transport.abort()
    await chat.socket.shutdown()
    return chat.tokens[0]


async def chats(browser: Browser) -> dict[str, object]:
    return {
        "websocket": await use(browser, "websocket"),
        "polling": await use(browser, "polling"),
        "upgrade": await use(browser, "polling", "websocket"),
        "closed": await asyncio.gather(*(close_suddenly(browser) for _ in range(3))),
    }


def steps(browser: Browser) -> dict[str, object]:
    return {
        "main": browser.get("/app").json(),
        "assets": browser.load("/chainlit/"),
        "settings": sorted(browser.get("/chainlit/project/settings?language=en-US").json()),
        "chats": asyncio.run(chats(browser)),
        "after": browser.get("/app").json(),
    }


visit(steps)
