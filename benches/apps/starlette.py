"""The applications for Starlette: three middlewares around an endpoint, and a stream."""

# Installed where the servers are measured, not where they are type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,misc"

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from benches.apps.wsgi import CHUNK


class Passing(BaseHTTPMiddleware):
    async def dispatch(self, request: Request, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-passed"] = "yes"
        return response


async def answer(request: Request) -> JSONResponse:
    return JSONResponse({"message": "Hello, World!", "items": [1, 2, 3]})


async def stream(request: Request) -> StreamingResponse:
    return StreamingResponse(chunks(), media_type="text/plain")


async def chunks() -> AsyncIterator[bytes]:
    for _ in range(100):
        yield CHUNK


app = Starlette(routes=[Route("/", answer), Route("/stream", stream)])
behind_middlewares = Starlette(routes=[Route("/", answer)], middleware=[Middleware(Passing) for _ in range(3)])
