"""A page with its files; clicks, a timer, an upload, downloads over both transports of socket.io; tabs that close."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from html import unescape

import socketio
from browser import PATIENCE, Browser, visit

UUID = r"[0-9a-f]{8}-[0-9a-f-]{27}"


class Tab:
    """A page that is open in a browser, and its socket."""

    def __init__(self, browser: Browser) -> None:
        page = browser.get("/").text
        raw = re.search(r"parseElements\(String\.raw`(.*?)`\)", page, re.DOTALL)
        client = re.search(rf"'client_id': '({UUID})'", page)
        assert raw, page
        assert client, page
        self.browser = browser
        self.client_id = client[1]
        self.cookies = "; ".join(f"{name}={value}" for name, value in browser.client.cookies.items())
        self.elements = json.loads(unescape(raw[1]))
        self.texts: dict[str, str] = {}
        self.downloads: list[str | bytes] = []
        self.changed = asyncio.Condition()
        self.socket = socketio.AsyncClient(reconnection=False)
        self.socket.on("update", self._update)
        self.socket.on("download", self._download)

    async def open(self, *transports: str) -> None:
        query = {
            "client_id": self.client_id,
            "tab_id": str(uuid.uuid4()),
            "document_id": str(uuid.uuid4()),
            "next_message_id": 0,
            "implicit_handshake": "true",
        }
        fields = "&".join(f"{name}={value}" for name, value in query.items())
        await self.socket.connect(
            f"{self.browser.base}/?{fields}",
            {"Cookie": self.cookies},
            transports=list(transports),
            socketio_path="/_nicegui_ws/socket.io",
        )

    async def _update(self, message: dict[str, object]) -> None:
        async with self.changed:
            for id_, each in message.items():  # beside the elements there is the number of the message
                if isinstance(each, dict) and "text" in each:
                    self.texts[id_] = each["text"]
            self.changed.notify_all()

    async def _download(self, message: dict[str, str | bytes]) -> None:
        async with self.changed:
            self.downloads.append(message["src"])
            self.changed.notify_all()

    async def click(self, label: str) -> None:
        ((id_, button),) = (
            (id_, each) for id_, each in self.elements.items() if each.get("props", {}).get("label") == label
        )
        (listener,) = (event["listener_id"] for event in button["events"])
        message = {"id": int(id_), "client_id": self.client_id, "listener_id": listener, "args": [None]}
        await self.socket.emit("event", message)

    async def shows(self, text: str) -> str:
        """Waits until one of the texts begins so: one that changes often may show only what came last."""
        found = lambda: any(each.startswith(text) for each in self.texts.values())  # noqa: E731
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(found), PATIENCE)
        return text

    async def upload(self, content: bytes) -> int:
        (url,) = (each["props"]["url"] for each in self.elements.values() if each["tag"] == "nicegui-upload")
        reply = await asyncio.to_thread(self.browser.post, url, files={"file": ("file.bin", content)})
        return reply.status_code

    async def download(self) -> str:
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(lambda: self.downloads), PATIENCE)
        source = self.downloads.pop()
        if isinstance(source, bytes):
            return f"{len(source)} bytes over the socket"
        reply = await asyncio.to_thread(self.browser.get, source)
        return f"{len(reply.content)} bytes of {reply.headers['content-type']}"


async def use(browser: Browser, *transports: str) -> dict[str, object]:
    tab = Tab(browser)
    await tab.open(*transports)
    seen: dict[str, object] = {}
    await tab.click("click me")
    await tab.click("click me")
    seen["clicks"] = await tab.shows("clicked 2 times")
    seen["timer"] = await tab.shows("ticks 1")
    seen["upload"] = [await tab.upload(b"x" * 3_000_000), await tab.shows("got 3000000 bytes")]
    await tab.click("file")
    seen["file"] = await tab.download()
    if transports == ("websocket",):  # python-socketio's client loses its session over binary packets in polls
        await tab.click("content")
        seen["content"] = await tab.download()
    seen["transport"] = tab.socket.transport()
    if seen["transport"] == "websocket":
        await tab.socket.disconnect()
    else:  # the tab is closed: engine.io would answer the poll that waits after some seconds
        await tab.socket.eio.http.close()
    return seen


async def close_suddenly(browser: Browser) -> str:
    """The process of the browser is gone: no farewell of socket.io, none of the WebSocket."""
    tab = Tab(browser)
    await tab.open("websocket")
    text = await tab.shows("ticks ")
    tab.socket.eio.ws._response.connection.transport.abort()
    await tab.socket.shutdown()
    return text


async def sockets(browser: Browser) -> dict[str, object]:
    return {
        "websocket": await use(browser, "websocket"),
        "polling": await use(browser, "polling"),
        "upgrade": await use(browser, "polling", "websocket"),
        "closed": await asyncio.gather(*(close_suddenly(browser) for _ in range(3))),
    }


def steps(browser: Browser) -> dict[str, object]:
    return {
        "assets": browser.load("/", ignoring=UUID),
        "call": browser.get("/api/answer").json(),
        "sockets": asyncio.run(sockets(browser)),
    }


visit(steps)
