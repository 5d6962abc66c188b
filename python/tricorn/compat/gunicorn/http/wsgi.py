"""The response, and what configuration files replace of it."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

from tricorn.compat.absent import refuse
from tricorn.gateway import observe
from tricorn.gateway.wsgi import FileWrapper

from .. import SERVER, SERVER_SOFTWARE

__all__ = ["SERVER", "SERVER_SOFTWARE", "FileWrapper", "Response"]


class Response(metaclass=ABCMeta):  # noqa: B024  # instances are others, too
    """The `resp` of hooks is an instance of it.

    This server asks it once for `default_headers`: a class in its place, or another method, decides on `Server`.
    """

    def __init__(self, req: Any = None, sock: Any = None, cfg: Any = None) -> None:
        self.req = req
        self.sock = sock
        self.cfg = cfg
        self.version: str | None = SERVER
        self.status = "200 OK"
        self.headers: list[tuple[str, str]] = []
        self.headers_sent = False
        self.sent = 0

    def default_headers(self) -> list[str]:
        """Lines, as gunicorn makes them."""
        from email.utils import formatdate

        return [
            f"HTTP/1.1 {self.status}\r\n",
            f"Server: {self.version}\r\n",
            f"Date: {formatdate(usegmt=True)}\r\n",
            "Connection: keep-alive\r\n",
        ]

    def should_close(self) -> bool:
        return False

    def is_chunked(self) -> bool:
        return False


Response.register(observe.Response)

__getattr__ = refuse(__name__)
