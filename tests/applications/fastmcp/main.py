"""A server of FastMCP."""

from __future__ import annotations

from fastmcp import FastMCP

server: FastMCP = FastMCP("everyday")


@server.tool
def add(a: int, b: int) -> int:
    return a + b


app = server.http_app(stateless_http=True)
