"""Requests that carry what the application is to do with them, and what it noted (tests/apps/asgi/play.py)."""

from __future__ import annotations

import ast
import uuid
from typing import Any

from tests.harness import Server, Wire, until
from tests.harness.deadline import PATIENCE
from tests.harness.wire import Fields, Reply, request

Step = tuple[Any, ...]
Message = dict[str, Any]

TEXT = (b"content-type", b"text/plain")


def start(status: int = 200, *fields: tuple[bytes, bytes], **more: Any) -> Step:
    return ("send", head(status, *fields, **more))


def body(data: bytes = b"", more: bool | None = None) -> Step:
    return ("send", piece(data, more))


def head(status: int = 200, *fields: tuple[bytes, bytes], **more: Any) -> Message:
    return {"type": "http.response.start", "status": status, "headers": [TEXT, *fields], **more}


def piece(data: bytes = b"", more: bool | None = None) -> Message:
    return {"type": "http.response.body", "body": data, **({} if more is None else {"more_body": more})}


def length(count: int) -> tuple[bytes, bytes]:
    return (b"content-length", b"%d" % count)


ANSWER: tuple[Step, Step] = (start(200, length(4)), body(b"done"))
RECEIVE: Step = ("receive",)
REQUEST = {"type": "http.request", "body": b"", "more_body": False}
DISCONNECT = {"type": "http.disconnect"}


class Stage:
    """What one test plays, and reads the notes of, under a tag of its own."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tag = uuid.uuid4().hex

    def another(self) -> Stage:
        """The same server, and no notes yet."""
        return Stage(self.server)

    def connect(self, **options: Any) -> Wire:
        return self.server.connect(**options)

    def request(
        self,
        *steps: Step,
        method: str = "GET",
        fields: Fields = (),
        body: bytes | None = None,
        version: str = "1.1",
        tag: str = "",
    ) -> bytes:
        given = [("X-Tag", tag or self.tag), ("X-Do", ascii(list(steps))), *fields]
        return request(method, "/play", given, body, version=version)

    def play(self, *steps: Step, method: str = "GET", **more: Any) -> Reply:
        """The answer to a request on a connection of its own."""
        with self.connect() as wire:
            wire.send(self.request(*steps, method=method, **more))
            return wire.reply(method)

    def told(self, count: int = 0, tag: str = "", within: float = PATIENCE) -> list[Any]:
        """What was noted, as soon as it is so much."""

        found: list[Any] = []

        def read() -> bool:
            found[:] = literal(self.server, f"/told?tag={tag or self.tag}")
            return len(found) >= count

        until(read, f"{count} notes", within=within)
        return found

    def go(self, gate: str = "") -> None:
        """Opens a gate that a step ("wait", gate) stands before."""
        literal(self.server, f"/go?gate={gate or self.tag}")

    @property
    def gate(self) -> Step:
        return ("wait", self.tag)

    def alive(self) -> bool:
        return self.server.get("/pid").status == 200


NOTICE = "tricorn.leaving()"
"""How the one object of a scope is written that is no literal."""


def literal(server: Server, target: str, *fields: tuple[str, str], **more: Any) -> Any:
    """The Python value that the server answers with."""
    with server.connect() as wire:
        wire.send(request(more.pop("method", "GET"), target, fields, **more))
        reply = wire.reply()
    assert reply.status == 200, f"{reply.status} {reply.text}\n{server.log.text[-3000:]}"
    return ast.literal_eval(reply.body.decode().replace(NOTICE, "None"))
