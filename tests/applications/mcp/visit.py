"""Sessions of the package's own client over both transports, some of which leave while a tool is called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from browser import PATIENCE, Browser, visit
from mcp import ClientSession
from mcp.client.sse import sse_client

try:
    from mcp.client.streamable_http import streamable_http_client
except ImportError:
    from mcp.client.streamable_http import streamablehttp_client as streamable_http_client

SESSIONS = 5


async def converse(connect: Callable[[], Any]) -> dict[str, object]:
    async with connect() as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        progress: list[float] = []

        async def noted(number: float, total: float | None, message: str | None) -> None:
            progress.append(number)

        tools = await session.list_tools()
        added = await session.call_tool("add", {"a": 1, "b": 2})
        counted = await session.call_tool("count", {"to": 5}, progress_callback=noted)
        text = await session.read_resource("text://long")
        return {
            "tools": sorted(tool.name for tool in tools.tools),
            "add": added.content[0].text,
            "count": [counted.content[0].text, progress],
            "read": len(text.contents[0].text),
        }


async def leave(connect: Callable[[], Any]) -> str:
    """The client is gone while its tool runs."""
    async with connect() as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        call = asyncio.create_task(session.call_tool("wait", {}))
        await session.send_ping()
        call.cancel()
        await asyncio.wait([call])
    return "left"


async def both(base: str) -> dict[str, object]:
    seen: dict[str, object] = {}
    transports = {"http": lambda: streamable_http_client(f"{base}/mcp"), "sse": lambda: sse_client(f"{base}/sse")}
    for name, connect in transports.items():
        found = [await converse(connect) for _ in range(SESSIONS)]
        assert all(each == found[0] for each in found), found
        seen[name] = [found[0], await asyncio.gather(*(leave(connect) for _ in range(SESSIONS)))]
    return seen


def steps(browser: Browser) -> dict[str, object]:
    seen: dict[str, object] = asyncio.run(asyncio.wait_for(both(browser.base), PATIENCE))
    browser.leave("/sse", b"event: endpoint", Accept="text/event-stream")
    return seen | {"page": browser.client.get("/mcp").status_code}


visit(steps)
