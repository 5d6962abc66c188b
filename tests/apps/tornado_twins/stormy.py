"""What storms ask of an application (tests/apps/stormy.py), for tornado."""

from __future__ import annotations

import json

import counted
import stormy
from tornado import web


class Storm(web.RequestHandler):
    def given(self) -> dict[str, str]:
        return {name: self.get_query_argument(name) for name in self.request.query_arguments}

    async def get(self, path: str) -> None:
        given = self.given()
        match path:
            case "board":
                self.tell(counted.board())
            case "fork":
                self.tell({"child": stormy.fork(given["how"])})
            case "eat":
                self.tell(await stormy.hunger(given))
            case "stream":
                for _ in range(stormy.pieces(given)):
                    self.write(stormy.PIECE)
                    await self.flush()
            case _:
                await self.count(given)

    async def post(self, path: str) -> None:
        given = self.given()
        if path == "upload":
            counted.note(given.get("id", "-"))
            self.tell(stormy.received(given, self.request.body))
        else:
            await self.count(given)

    async def count(self, given: dict[str, str]) -> None:
        counted.note(given.get("id", "-"))
        await stormy.wait(given)
        self.tell(stormy.received(given, self.request.body))

    def tell(self, what: object) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(what))


application = web.Application([("/(.*)", Storm)])
