"""Requests of the setting `warmup` for ASGI applications."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from tricorn.errors import BootError
from tricorn.gateway.warmup import CLIENT, Target
from tricorn.shutdown import NOTICE

SPEC_VERSION = "2.3"
"""Version of the HTTP specification in the scopes of the core."""


def make_scope(target: Target, root_path: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the scope of a request as the core does, without the extensions of a connection."""
    root = root_path.rstrip("/")
    path = target.decoded.decode("utf-8", "replace")
    is_below = not root or path == root or path.startswith(f"{root}/")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": SPEC_VERSION},
        "http_version": "1.1",
        "method": "GET",
        "scheme": target.scheme,
        "path": path if is_below else root + path,
        "raw_path": target.path.encode(),
        "query_string": target.query.encode(),
        "root_path": root,
        "headers": [(name.encode(), value.encode()) for name, value in target.headers],
        "client": (CLIENT, 0),
        "server": target.server,
        "state": dict(state),
        "extensions": {"tricorn": {"leaving": NOTICE, "queue_time": 0.0}},
    }


class Call:
    """One call of the application, and its answer."""

    def __init__(self, application: Callable[..., Any], scope: dict[str, Any]) -> None:
        self.status: int | None = None
        self._application = application
        self._scope = scope
        self._is_asked = False
        self._is_answered = asyncio.Event()

    async def run(self) -> None:
        """Returns when the application does, also from background work after the response."""
        await self._application(self._scope, self._receive, self._send)
        if self.status is None:
            raise BootError("The application did not start a response")

    async def _receive(self) -> dict[str, Any]:
        if not self._is_asked:
            self._is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._is_answered.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Mapping[str, Any]) -> None:
        match message["type"]:
            case "http.response.start":
                self.status = message["status"]
            case "http.response.body" if not message.get("more_body", False):
                self._is_answered.set()
