"""The application for sanic."""

# Installed where the servers are measured, not where they are type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator"

from __future__ import annotations

import asyncio

from sanic import HTTPResponse, Request, Sanic, text

app = Sanic("classic")


@app.get("/")
async def constant(request: Request) -> HTTPResponse:
    return text("constant\n")


@app.get("/io")
async def io_bound(request: Request) -> HTTPResponse:
    await asyncio.sleep(1)
    return text("slept for a second\n")
