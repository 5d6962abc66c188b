"""A server of the Model Context Protocol, over streamable HTTP at /mcp and server-sent events at /sse."""

from __future__ import annotations

import asyncio
import os

try:
    from mcp.server.mcpserver import Context, MCPServer
except ImportError:  # mcp 1
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("everyday")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
def where() -> int:
    """The process that has this session."""
    return os.getpid()


@server.tool()
async def count(to: int, context: Context) -> str:
    for number in range(to):
        await context.report_progress(number, to)
    return f"counted to {to}"


@server.tool()
async def wait() -> str:
    await asyncio.sleep(3600)
    return "an hour later"


@server.resource("text://long")
def long_text() -> str:
    return "All work and no play. " * 20_000


app = server.streamable_http_app()
app.router.routes.extend(server.sse_app().routes)
