"""Some sessions of its own client."""

from __future__ import annotations

import asyncio

from browser import PATIENCE, Browser, visit
from fastmcp import Client


async def converse(base: str) -> list[object]:
    async with Client(f"{base}/mcp") as client:
        tools = await client.list_tools()
        added = await client.call_tool("add", {"a": 1, "b": 2})
        return [[tool.name for tool in tools], added.data]


def steps(browser: Browser) -> dict[str, object]:
    return {"sessions": [asyncio.run(asyncio.wait_for(converse(browser.base), PATIENCE)) for _ in range(3)]}


visit(steps)
